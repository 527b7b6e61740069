//! The mutex: one holder at a time, in the order of arrival.
//!
//! It shares its queue with Curator's `InterProcessMutex` and `LeaderSelector` at the same path.

use crate::base::error::Error;
use crate::client::client::Client;
use crate::client::lock::Lock;
use crate::client::spec::{Kind, LockSpec};

impl Client {
    /// Makes the mutex at `path`. It costs no request; the first acquire creates the node.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `path` cannot be the path of
    /// a lock.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let hold = client.mutex("/locks/report")?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mutex(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::mutex(path)?)
    }
}

impl LockSpec {
    /// Describes a [mutex](Client::mutex).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `path` cannot be the path of
    /// a lock.
    pub fn mutex(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Mutex)
    }
}
