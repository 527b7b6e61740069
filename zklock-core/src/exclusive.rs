//! The exclusive lock: one plain node, which is there or not. For jobs that are tried once.
//!
//! There is no queue: whoever comes first when the node goes has the lock, and all who wait are woken. To wait in
//! order, and without waking others, use a [mutex](Client::mutex). Nor can its hold guard writes: whoever comes next
//! has a node of the same name. (For the same reason an operator who deletes the node just when it is being released may
//! take it from the next holder, who is told so within a heartbeat.)

use crate::client::Client;
use crate::error::Error;
use crate::lock::Lock;
use crate::lock_options::LockOptions;
use crate::machine::claim::Claim;
use crate::machine::name::Scheme;
use crate::path::check_lock_path;

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
        self.exclusive_with(path, LockOptions::new())
    }

    /// As [`exclusive`](Self::exclusive), with options. Where there is no queue, what to watch in it and what to do about
    /// others' contenders in it mean nothing.
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn exclusive_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        check_lock_path(path)?;
        options.refuse_permits(path)?;
        options.refuse_dialect(path, "an exclusive lock")?;
        // Whatever the options: all locks of this path are one line then, in which there is one attempt at a time. Two
        // could not tell the node of the other from their own, and one that recovers from a lost reply would take it.
        Ok(self.lock(path, vec![Claim::new(path, Scheme::Single)], options))
    }
}
