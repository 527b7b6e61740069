//! Observing the holder of a lock from a thread.

use super::lazy::Lazy;
use crate::base::error::{Error, ErrorKind};
use crate::base::wait::Wait;
use crate::operator::contenders::QueuedContender;
use crate::threads::call::Call;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// An [`Observer`](crate::Observer) whose calls block the calling thread.
///
/// # Examples
///
/// ```no_run
/// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
/// let observer = client.election("/election/scheduler")?.observe()?;
/// match observer.next(None)? {
///     Some(leader) => println!("{} leads", leader.identity),
///     None => println!("nobody leads"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Observer {
    pub(super) core: Lazy<Mutex<crate::Observer>>,
}

impl Observer {
    /// Makes the call of [`next`](Self::next).
    #[doc(hidden)]
    pub fn next_call(&self, wait: Wait) -> Call<Option<QueuedContender>> {
        let next = async |observer: Arc<Mutex<crate::Observer>>| observer.lock().await.next().await;
        self.core.call(wait, move |observer| wait.bound(next(observer)))
    }

    /// Returns the holder of the lock: the present one on the first call, and the new one after
    /// each change; `None` if there is no holder. It blocks no longer than `timeout`; without one
    /// it waits for ever. See [`Observer::next`](crate::Observer::next).
    ///
    /// # Errors
    ///
    /// Fails like [`Observer::next`](crate::Observer::next) does, and as [the module](super#errors)
    /// says; and with [`ErrorKind::Timeout`] if nothing changed in that time.
    ///
    /// # Examples
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
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<QueuedContender>, Error> {
        self.next_within(Wait::at_most(timeout))
    }

    /// Like [`next`](Self::next).
    #[doc(hidden)]
    pub fn next_within(&self, wait: Wait) -> Result<Option<QueuedContender>, Error> {
        self.next_call(wait).wait(None).map_err(|error| match error.kind() {
            ErrorKind::Timeout => Error::new(ErrorKind::Timeout, format!("nothing changed {wait}")),
            _ => error,
        })
    }
}
