//! The exclusive lock: one plain node, which is there or not. For jobs that are tried once.
//!
//! There is no queue: when the node goes, all waiters are woken, and the first to create it again has the lock. To wait in
//! order, and without waking others, use a [mutex](Client::mutex). Nor can its hold guard writes, because the next holder
//! has a node of the same name. (For the same reason an operator who deletes the node just when it is being released may
//! take it from the next holder, which learns of that within a heartbeat. And so may a release whose reply is lost while the
//! follower that has it is cut off from its leader, if the client comes to the same follower again in vain: it asks all other
//! hosts first, but cannot tell servers apart that stand behind one address. Name each server.)

use crate::client::Client;
use crate::error::Error;
use crate::lock::Lock;
use crate::spec::{Kind, LockSpec};

impl Client {
    /// The exclusive lock at `path`: the client that creates the node `lock` below it holds the lock.
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
