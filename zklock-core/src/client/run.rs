//! A run of a job that runs once in each period.

use crate::base::error::{Error, ErrorKind};
use crate::client::record::{self, NAME, Record, RunOutcome};
use crate::hold::hold::Hold;
use crate::zookeeper::ensemble::Write;

/// The answer to [`Once::begin`](crate::Once::begin).
///
/// # Examples
///
/// ```no_run
/// # async fn example(job: zklock_core::Once) -> Result<(), zklock_core::Error> {
/// use zklock_core::Begun;
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

impl RunEntry {
    /// Records how the run ended, and releases the hold.
    pub(crate) async fn end_with(&self, hold: &Hold, outcome: RunOutcome) -> Result<(), Error> {
        if let Err(error) = self.write_with(hold, outcome).await {
            // Nothing more can be recorded, and others wait.
            hold.let_go();
            return Err(error);
        }
        release(hold).await
    }

    /// Records how the run ended.
    pub(crate) async fn write_with(&self, hold: &Hold, outcome: RunOutcome) -> Result<(), Error> {
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
    loop {
        let data = text.as_bytes().to_vec();
        let record = Write::SetData { path: node.clone(), data, version: Some(version) };
        match hold.commit(vec![record]).await {
            Err(error) if error.kind() == ErrorKind::Uncertain => {
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
