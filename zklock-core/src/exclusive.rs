//! The exclusive lock: one plain node, which is there or not. For jobs that are tried once.
//!
//! There is no queue: whoever comes first when the node goes has the lock, and all who wait are woken. To wait in
//! order, and without waking others, use a [mutex](Client::mutex). Nor can its hold guard writes: whoever comes next
//! has a node of the same name. (For the same reason an operator who deletes the node just when it is being released may
//! take it from the next holder, who is told so within a heartbeat.)

use crate::client::Client;
use crate::error::Error;
use crate::lock::Lock;
use crate::spec::{Kind, LockSpec};

impl Client {
    /// The lock that is held by whoever has created the node `lock` below `path`.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// if let Some(hold) = client.exclusive("/jobs/nightly")?.try_acquire().await? {
    ///     // ... nobody else does the job ...
    ///     hold.release().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn exclusive(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::exclusive(path)?)
    }
}

impl LockSpec {
    /// An [exclusive lock](Client::exclusive).
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn exclusive(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Exclusive)
    }
}
