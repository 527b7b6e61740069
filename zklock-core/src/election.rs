//! The election: one leads, the others are ready to.
//!
//! It stands in the same queue as Curator's `LeaderLatch`. To campaign is to [acquire](Lock::acquire), to resign is to
//! release, and [`Lock::observe`] tells who leads.

use crate::client::Client;
use crate::error::Error;
use crate::lock::Lock;
use crate::lock_options::LockOptions;
use crate::machine::claim::Claim;
use crate::machine::name::Scheme;
use crate::path::check_lock_path;

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
        self.election_with(path, LockOptions::new())
    }

    /// As [`election`](Self::election), with options.
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn election_with(&self, path: &str, options: LockOptions) -> Result<Lock, Error> {
        check_lock_path(path)?;
        options.refuse_permits(path)?;
        options.refuse_dialect(path, "an election")?;
        let claim = options.apply(Claim::new(path, Scheme::Latch));
        Ok(self.lock(path, vec![claim], options))
    }
}
