//! A job that runs once in each period.

use std::time::{Duration, SystemTime};

use clap::Args;
use zklock::further::{Owner, Record, RunEntry, RunOutcome, Wait};
use zklock::{Begun, Client, Hold, Job, JobSpec, Lock};

use crate::commands::choice::Choice;
use crate::duration;
use crate::failure::Failure;
use crate::output::harmless;

#[derive(Args, Debug)]
pub(crate) struct Period {
    /// Run the command on one host in each period of this length.
    ///
    /// If it is done in this period, say so (unless --quiet), and end
    /// with code 0. Periods are counted from 1970-01-01T00:00:00Z, on the clocks of the servers. The command has done its work if
    /// it ends with code 0
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    every: Option<Duration>,

    /// Let periods begin so much later. Clocks differ, so do not start a job where a period begins: for a daily job that cron
    /// starts at midnight UTC, 12h is good
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = duration::parse, default_value = "0", hide_default_value = true, requires = "every")]
    offset: Duration,

    /// When the command runs again after it has failed, its host has died, or the lock was lost: in the same period, as soon as
    /// a host starts it, or in the next one
    #[arg(hide_short_help = true, long, value_name = "WHEN", value_parser = ["again", "next"], default_value = "again", requires = "every")]
    after_failure: String,
}

impl Period {
    /// Returns the job whose runs hold this mutex; `None` if the command runs whenever it has the lock.
    pub(crate) fn job(&self, choice: &Choice, lock: &Lock) -> Result<Option<Job>, Failure> {
        let Some(every) = self.every else { return Ok(None) };
        // The parser does not ask for what another option excludes.
        let Some(path) = &choice.mutex else {
            return Err(Failure::usage("--every needs a mutex: name the job with --mutex PATH"));
        };
        if choice.naming.is_some() {
            return Err(Failure::usage(
                "--every has a record in the lock's node, so it takes no --naming: leave one out",
            ));
        }
        let spec =
            JobSpec::new(path, every)?.offset(self.offset)?.set("after-failure", &self.after_failure)?;
        Ok(Some(Job::new(lock.clone(), spec)?))
    }
}

/// Begins a run of the job, or acquires the lock if there is none.
pub(crate) async fn begin(
    job: Option<&Job>,
    choice: &Choice,
    client: &Client,
    lock: &Lock,
    wait: Wait,
) -> Result<Begun<(Hold, Option<RunEntry>)>, Failure> {
    let Some(job) = job else {
        return Ok(Begun::Run((choice.acquire(client, lock, wait).await?, None)));
    };
    Ok(match choice.begin(client, wait, |wait| job.begin_as(Owner::current(), wait)).await? {
        Begun::Run(run) => {
            let (hold, entry) = run.into_parts();
            Begun::Run((hold, Some(entry)))
        }
        Begun::Done(record) => Begun::Done(record),
    })
}

/// Says that nothing is left to do.
pub(crate) fn tell(path: &str, record: &Record) {
    let (by, due) = (harmless(&record.identity), due(record));
    if record.outcome == RunOutcome::Done {
        say!("the job {path} is done in this period, by {by}: it runs again {due}");
    } else {
        say!("the job {path} has failed in this period, at {by}: it runs again {due} (--after-failure next)");
    }
}

/// Writes when the job is due, as seen from now.
pub(crate) fn due(record: &Record) -> String {
    match record.next().duration_since(SystemTime::now()) {
        Ok(left) => format!("in {}", duration::short(left)),
        Err(_) => "now".to_owned(),
    }
}
