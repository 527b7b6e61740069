//! The mutex: one holder at a time, in the order of arrival.
//!
//! It stands in the same queue as Curator's `InterProcessMutex` and `LeaderSelector` of that path.

use crate::client::Client;
use crate::error::Error;
use crate::lock::Lock;
use crate::spec::{Kind, LockSpec};

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
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the path is not one for a lock.
    pub fn mutex(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::mutex(path)?)
    }
}

impl LockSpec {
    /// A [mutex](Client::mutex).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the path is not one for a lock.
    pub fn mutex(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Mutex)
    }
}
