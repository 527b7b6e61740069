//! A run of a job, for threads.

use super::hold::Hold;
use crate::base::error::Error;
use crate::client::record::RunOutcome;
use crate::client::run::RunEntry;
use crate::threads::call::Call;

/// A [`Run`](crate::Run) whose calls block the calling thread. A run that is dropped without [`done`](Self::done) or
/// [`failed`](Self::failed) counts as failed.
///
/// # Examples
///
/// ```no_run
/// # fn example(run: zklock_core::blocking::Run) -> Result<(), zklock_core::Error> {
/// match std::fs::write("report", "all is well") {
///     Ok(()) => run.done(),
///     Err(why) => run.failed(&why.to_string()),
/// }
/// # }
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

    /// Takes it apart. It is hidden, because only the layers for other languages have a hold of their own kind.
    #[doc(hidden)]
    pub fn into_parts(self) -> (Hold, RunEntry) {
        (self.hold, self.entry)
    }

    /// Returns the hold of the job's mutex. See [`Run::hold`](crate::Run::hold).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(run: &zklock_core::blocking::Run) {
    /// println!("running with token {}", run.hold().token());
    /// # }
    /// ```
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Records that the job is done in this period, and releases its mutex. See [`Run::done`](crate::Run::done).
    ///
    /// # Errors
    ///
    /// Fails like [`Run::done`](crate::Run::done) does, and as [the module](super#errors) says.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(run: zklock_core::blocking::Run) -> Result<(), zklock_core::Error> {
    /// run.done()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn done(&self) -> Result<(), Error> {
        self.entry.end_call(&self.hold, RunOutcome::Done).wait(None)
    }

    /// Records that the job has failed, and why, and releases its mutex. See [`Run::failed`](crate::Run::failed).
    ///
    /// # Errors
    ///
    /// Fails like [`done`](Self::done) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(run: zklock_core::blocking::Run) -> Result<(), zklock_core::Error> {
    /// run.failed("the disk is full")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn failed(&self, why: &str) -> Result<(), Error> {
        self.entry.end_call(&self.hold, RunOutcome::Failed(why.to_owned())).wait(None)
    }
}

impl RunEntry {
    /// Makes the call that records how the run ended, and releases the hold.
    #[doc(hidden)]
    pub fn end_call(&self, hold: &Hold, outcome: RunOutcome) -> Call<()> {
        let entry = self.clone();
        hold.core().call(move |hold| async move { entry.end(&hold, outcome).await })
    }
}
