//! The exclusive lock: a single node, which exists or not. It is for jobs that are tried once.
//!
//! There is no queue. When the node is deleted, all waiters are woken, and the first to create it again has the lock. To wait in
//! order, without waking others, use a [mutex](Client::mutex).
//!
//! The nodes of all holders have the same path. So each holder has a second node beside it, its companion
//! `holder-<uuid>-of-lock`. Both are created in one transaction, and deleted in one. So a holder deletes its own node and no
//! other, even if replies are lost, and its hold can guard writes. If an operator deletes the node by hand, the companion stays.
//! A holder that is just releasing the lock may then delete the node of the next one, which learns of that within a heartbeat.
//! ([Breaking](crate::Lock::break_lock) the lock deletes both.)
//!
//! On servers of version 3.4 there is no companion, because the client library sends them no transaction that creates
//! nodes. So a hold cannot guard writes there. And the next holder's node can be deleted by mistake: if the reply to a
//! release is lost, and then either a server loses that deletion, or a follower that was cut off from its leader passes it
//! on late.

use crate::base::error::Error;
use crate::client::client::Client;
use crate::client::lock::Lock;
use crate::client::spec::{Kind, LockSpec};

impl Client {
    /// Makes the exclusive lock at `path`. The client that creates the node `lock` below that path holds it. This call costs
    /// no request.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
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
    pub fn exclusive(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::exclusive(path)?)
    }
}

impl LockSpec {
    /// Describes an [exclusive lock](Client::exclusive).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    pub fn exclusive(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Exclusive)
    }
}
