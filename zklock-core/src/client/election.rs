//! The election: one contender leads, and the others are ready to take over.
//!
//! It shares its queue with Curator's `LeaderLatch`. [Acquire](Lock::acquire) to campaign, release
//! to resign. [`Lock::observe`] reports who leads.

use crate::base::error::Error;
use crate::client::client::Client;
use crate::client::lock::Lock;
use crate::client::spec::{Kind, LockSpec};

impl Client {
    /// Makes the lock whose holder leads the election at `path`.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let lead = client.election("/election/scheduler")?.acquire().await?;
    /// tokio::select! {
    ///     _ = async { /* lead */ } => lead.release().await?,
    ///     reason = lead.lost() => eprintln!("not the leader any more: {reason:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn election(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::election(path)?)
    }
}

impl LockSpec {
    /// Describes the leadership of an [election](Client::election).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    pub fn election(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Election)
    }
}
