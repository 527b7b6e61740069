//! The election: one leads, the others are ready to.
//!
//! It stands in the same queue as Curator's `LeaderLatch`. To campaign is to [acquire](Lock::acquire), to resign is to
//! release, and [`Lock::observe`] tells who leads.

use crate::client::Client;
use crate::error::Error;
use crate::lock::Lock;
use crate::spec::{Kind, LockSpec};

impl Client {
    /// The lead of the election at `path`.
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
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn election(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::election(path)?)
    }
}

impl LockSpec {
    /// The lead of an [election](Client::election).
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn election(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Election)
    }
}
