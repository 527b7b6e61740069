//! The holder of a lock, observed by threads.

use crate::contenders::QueuedContender;
use crate::error::{Error, ErrorKind};
use crate::threads::fork_safe::ForkSafe;
use crate::wait::Wait;
use std::time::Duration;
use tokio::sync::Mutex;

/// An [`Observer`](crate::Observer) for threads.
#[derive(Clone, Debug)]
pub struct Observer {
    pub(super) core: ForkSafe<Mutex<crate::Observer>>,
}

impl Observer {
    /// The observer of the core.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<Mutex<crate::Observer>> {
        &self.core
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
    /// As there, and [`ErrorKind::Timeout`] if nothing changed in that time.
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
