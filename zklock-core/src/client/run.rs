//! A run of a job that runs once in each period.

use crate::base::error::{Error, ErrorKind};
use crate::client::record::{self, NAME, Record, RunOutcome};
use crate::hold::hold::Hold;
use crate::threads::call::Call;

/// The answer to [`Job::begin`](crate::Job::begin).
///
/// # Examples
///
/// ```no_run
/// # async fn example(job: zklock::Job) -> Result<(), zklock::Error> {
/// use zklock::Begun;
///
/// match job.begin().await? {
///     Begun::Run(run) => {
///         // ... write the report ...
///         run.done().await?;
///     }
///     Begun::Done(record) => println!("{} has done it", record.identity),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub enum Begun<R> {
    /// The job is this caller's in this period: it runs now.
    Run(R),
    /// Nothing is left to do in this period, and this is the last run.
    Done(Record),
}

/// What is recorded of a run, to be written again at its end.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct RunEntry {
    pub(super) record: Record,
    /// The version of the node.
    pub(super) version: i32,
}

/// A run of a job, which holds the job's mutex. End it with [`done`](Self::done) or [`failed`](Self::failed). A run that is
/// dropped without either counts as failed.
///
/// # Examples
///
/// ```no_run
/// # async fn example(run: zklock::Run) -> Result<(), zklock::Error> {
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
    pub(super) hold: Hold,
    pub(super) entry: RunEntry,
}

impl Run {
    /// Returns the hold of the job's mutex. It is lost like any other, and its token is for [fences](crate::fence). Do not
    /// release it: the run could not be recorded as done then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(run: &zklock::Run) {
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
    /// # async fn example(run: zklock::Run) -> Result<(), zklock::Error> {
    /// run.done().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn done(&self) -> Call<()> {
        self.entry.end(&self.hold, RunOutcome::Done)
    }

    /// Records that the job has failed, and why, and releases its mutex. The text is kept in one line of at most 500
    /// characters. [`AfterFailure`](crate::further::AfterFailure) says when the job runs again.
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
    /// # async fn example(run: zklock::Run) -> Result<(), zklock::Error> {
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
        hold.call(move |hold| async move {
            if let Err(error) = entry.write_with(&hold, outcome).await {
                // Nothing more can be recorded, and others wait.
                hold.let_go();
                return Err(error);
            }
            release(&hold).await
        })
    }

    /// Records how the run ended.
    #[doc(hidden)]
    pub fn write(&self, hold: &Hold, outcome: RunOutcome) -> Call<()> {
        let entry = self.clone();
        hold.call(move |hold| async move { entry.write_with(&hold, outcome).await })
    }

    async fn write_with(&self, hold: &Hold, outcome: RunOutcome) -> Result<(), Error> {
        let text = Record { outcome, ..self.record.clone() }.to_text();
        write(hold, &text, self.version).await.map(drop).map_err(|error| {
            let path = hold.path();
            let place = match error.kind() {
                ErrorKind::Lost(_) => {
                    format!("the run of the job {path} stays recorded as running, and counts as failed")
                }
                ErrorKind::Unreachable | ErrorKind::Uncertain => {
                    format!("nobody knows whether the end of the run of the job {path} is recorded")
                }
                _ => format!("the end of the run of the job {path} is not recorded"),
            };
            error.within(&place)
        })
    }
}

/// Releases a hold that was held when its last word was written. What became of it later changes nothing.
pub(crate) async fn release(hold: &Hold) -> Result<(), Error> {
    match hold.release().await {
        Err(error) if matches!(error.kind(), ErrorKind::Lost(_)) => Ok(()),
        released => released,
    }
}

/// Writes the record if the hold is still held, in place of the one with this version, and returns the next version.
pub(crate) async fn write(hold: &Hold, text: &str, version: i32) -> Result<i32, Error> {
    let node = format!("{}/{NAME}", hold.path());
    let mut may_come_late = false;
    loop {
        match hold.guarded().set_data(&node, text.as_bytes(), Some(version)).commit().await {
            // A server that was cut off may have done the earlier write after we read, and so before this one.
            Err(error)
                if error.kind() == ErrorKind::Uncertain
                    || may_come_late && error.kind() == ErrorKind::Conflict =>
            {
                may_come_late = error.kind() == ErrorKind::Uncertain;
                match hold.read(&node).await? {
                    Some(written) if written.version == version => {}
                    Some(written) if record::is_of(&written, text) => return Ok(written.version),
                    // The hold is lost, and its record may have been there in between.
                    Some(_) => return Err(error.within("somebody else has written the record since")),
                    None => {}
                }
            }
            written => return Ok(written?.versions().first().copied().flatten().unwrap_or(version)),
        }
    }
}
