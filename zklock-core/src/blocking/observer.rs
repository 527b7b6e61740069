//! The holder of a lock, observed by threads.

use super::Lazy;
use crate::contenders::QueuedContender;
use crate::error::{Error, ErrorKind};
use crate::threads::call::Call;
use crate::wait::Wait;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// An [`Observer`](crate::Observer) for threads.
#[derive(Clone, Debug)]
pub struct Observer {
    pub(super) core: Lazy<Mutex<crate::Observer>>,
}

impl Observer {
    /// Begins what [`next`](Self::next) does. `ready` is called when the call has its result: on the I/O thread, so it must
    /// not block.
    #[doc(hidden)]
    pub fn start(
        &self,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Option<QueuedContender>>, Error> {
        let next = |observer: Arc<Mutex<crate::Observer>>| async move { observer.lock().await.next().await };
        self.core.start(ready, Wait::Forever, next)
    }

    /// See [`Observer::next`](crate::Observer::next); for no longer than `timeout`.
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let observer = client.election("/election/scheduler")?.observe()?;
    /// while let Ok(leader) = observer.next(None) {
    ///     println!("{:?} leads", leader.map(|leader| leader.identity));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the asynchronous call, and [`ErrorKind::Timeout`] if nothing changed in that time.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<QueuedContender>, Error> {
        self.next_within(Wait::at_most(timeout))
    }

    /// As [`next`](Self::next).
    #[doc(hidden)]
    pub fn next_within(&self, wait: Wait) -> Result<Option<QueuedContender>, Error> {
        let next = self.core.wait(wait, None, |observer| async { observer.lock().await.next().await });
        next.map_err(|error| match error.kind() {
            ErrorKind::Timeout => Error::new(ErrorKind::Timeout, format!("nothing changed {wait}")),
            _ => error,
        })
    }
}
