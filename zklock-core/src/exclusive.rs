//! The exclusive lock: one plain node, which is there or not. For jobs that are tried once.
//!
//! There is no queue: when the node goes, all waiters are woken, and the first to create it again has the lock. To wait in
//! order, and without waking others, use a [mutex](Client::mutex).
//!
//! All holders have a node of the same path. So each has a companion beside it, `holder-<uuid>-of-lock`, which is created and
//! deleted in one transaction with it. By that a holder deletes its own node and no other, whatever becomes of the replies, and
//! its hold can guard writes. An operator who deletes the node by hand leaves the companion: a holder that is just releasing the
//! lock may then delete the node of the next, which learns of that within a heartbeat. ([Breaking](crate::Lock::break_lock) the
//! lock deletes both.)
//!
//! On servers of version 3.4 there is no companion, because the client library sends them no transaction that creates nodes. A
//! hold cannot guard writes there. And the node of the next holder is in danger also if the reply to a release is lost, and then
//! a server has lost that deletion, or a follower that was cut off from its leader passes it on late.

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
