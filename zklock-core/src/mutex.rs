//! The mutex: one holder at a time, in the order of arrival.
//!
//! It stands in the same queue as Curator's `InterProcessMutex` and `LeaderSelector` of that path.

use crate::client::Client;
use crate::error::Error;
use crate::lock::Lock;
use crate::lock_options::LockOptions;
use crate::machine::name::Role;

impl Client {
    /// The mutex at `path`. It costs no request: the node is created by the first acquire.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let hold = client.mutex("/locks/report")?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the path is not one for a lock, or the options
    /// are not for this kind of lock.
    pub fn mutex(&self, path: &str) -> Result<Lock, Error> {
        self.mutex_with(path, LockOptions::new())
    }

    /// The mutex at `path`, with options.
    ///
    /// ```no_run
    /// use zklock_core::LockOptions;
    ///
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let lock = client.mutex_with("/locks/report", LockOptions::new().reentrant(true))?;
    /// let outer = lock.acquire().await?;
    /// let inner = lock.acquire().await?;
    /// assert_eq!(outer.token(), inner.token());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn mutex_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        let claim = options.claim(path, Role::Exclusive)?;
        Ok(self.lock(path, vec![claim], options))
    }
}
