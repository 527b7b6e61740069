//! Observing the holder of a lock, without taking part.

use super::lazy::Lazy;
#[cfg(doc)]
use crate::base::error::ErrorKind;
use crate::base::wait::Wait;
use crate::operator::contenders::QueuedContender;
use crate::operator::observe::Observer as CoreObserver;
use crate::threads::call::Call;
use tokio::sync::Mutex;

/// Reports who holds a lock, and each new holder. See [`Lock::observe`](crate::Lock::observe).
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
/// let mut observer = client.election("/election/scheduler")?.observe()?;
/// let leader = observer.next().await?;
/// println!("{} leads", leader.map_or("nobody".to_owned(), |leader| leader.identity));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Observer {
    pub(super) core: Lazy<Mutex<CoreObserver>>,
}

impl Observer {
    /// Returns the holder; `None` if nobody holds the lock. The first call returns the present holder at once. Each later
    /// call waits until the holder changes.
    ///
    /// Changes that follow one another quickly may be reported as one. While no server answers, it waits.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the client is closed;
    /// * [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the access list does not allow reading the lock.
    ///
    /// # Cancel safety
    ///
    /// The call may be dropped, and made again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(lock: zklock_core::Lock) -> Result<(), zklock_core::Error> {
    /// let mut observer = lock.observe()?;
    /// // At once, and then each time that another one holds the lock.
    /// while let Some(holder) = observer.next().await? {
    ///     println!("{} holds it", holder.identity);
    /// }
    /// println!("it is free");
    /// # Ok(())
    /// # }
    /// ```
    pub fn next(&self) -> Call<Option<QueuedContender>> {
        self.core.call(Wait::Forever, |observer| async move { observer.fixed().lock().await.next().await })
    }
}
