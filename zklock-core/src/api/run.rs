//! A run of a job.

use super::hold::Hold;
#[cfg(doc)]
use crate::base::error::ErrorKind;
use crate::client::record::RunOutcome;
use crate::client::run::RunEntry;
use crate::threads::call::Call;

/// A run of a job, which holds the job's mutex. End it with [`done`](Self::done) or [`failed`](Self::failed). A run that is
/// dropped without either counts as failed.
///
/// # Examples
///
/// ```no_run
/// # async fn example(run: zklock_core::Run) -> Result<(), zklock_core::Error> {
/// match run.hold().run(write_the_report()).await {
///     Ok(Ok(())) => run.done().await,
///     Ok(Err(why)) => run.failed(why).await,
///     // Another host may run it by now.
///     Err(lost) => panic!("{lost}"),
/// }
/// # }
/// # async fn write_the_report() -> Result<(), &'static str> { Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a run that is dropped counts as failed: end it with done() or failed()"]
pub struct Run {
    hold: Hold,
    entry: RunEntry,
}

impl Run {
    pub(super) fn new(hold: Hold, entry: RunEntry) -> Self {
        Self { hold, entry }
    }

    /// Returns the hold of the job's mutex. It is lost like any other, and its token is for [fences](crate::fence). Do not
    /// release it: the run could not be recorded as done then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(run: &zklock_core::Run) {
    /// println!("running with token {}", run.hold().token());
    /// # }
    /// ```
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Records that the job is done in this period, and releases its mutex. The record is only written if the mutex is still
    /// held.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Lost`] if the hold is lost. The run stays recorded as running, and counts as failed: another host may
    ///   have begun to run the job again;
    /// * [`ErrorKind::NotHeld`] if the run has been ended before;
    /// * [`ErrorKind::Conflict`] if somebody else has written the record, or deleted it;
    /// * [`ErrorKind::Unreachable`] if the ensemble does not answer, so that nobody knows whether it is recorded;
    /// * [`ErrorKind::Uncertain`] if the answer was lost, and then the hold, and another host has run the job before anybody could
    ///   see whether it is recorded;
    /// * [`ErrorKind::Refused`] and [`ErrorKind::Timeout`] as for [`Hold::release`].
    ///
    /// In every case the mutex is released, or is being released in the background.
    ///
    /// # Cancel safety
    ///
    /// If the call is dropped, the run may or may not be recorded as done. The mutex is released when the run is dropped.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(run: zklock_core::Run) -> Result<(), zklock_core::Error> {
    /// run.done().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn done(&self) -> Call<()> {
        self.entry.end(&self.hold, RunOutcome::Done)
    }

    /// Records that the job has failed, and why, and releases its mutex. The text is kept in one line of at most 500
    /// characters. [`AfterFailure`](crate::AfterFailure) says when the job runs again.
    ///
    /// # Errors
    ///
    /// Fails like [`done`](Self::done) does.
    ///
    /// # Cancel safety
    ///
    /// As for [`done`](Self::done).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(run: zklock_core::Run) -> Result<(), zklock_core::Error> {
    /// run.failed("the disk is full").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn failed(&self, why: &str) -> Call<()> {
        self.entry.end(&self.hold, RunOutcome::Failed(why.to_owned()))
    }

    /// Takes it apart. It is hidden, because only other languages and the command have a hold of their own kind.
    #[doc(hidden)]
    pub fn into_parts(self) -> (Hold, RunEntry) {
        (self.hold, self.entry)
    }
}

impl RunEntry {
    /// Records how the run ended, and releases the hold.
    #[doc(hidden)]
    pub fn end(&self, hold: &Hold, outcome: RunOutcome) -> Call<()> {
        let entry = self.clone();
        hold.core.call(move |hold| async move { entry.end_with(&hold, outcome).await })
    }

    /// Records how the run ended.
    #[doc(hidden)]
    pub fn write(&self, hold: &Hold, outcome: RunOutcome) -> Call<()> {
        let entry = self.clone();
        hold.core.call(move |hold| async move { entry.write_with(&hold, outcome).await })
    }
}
