//! `zklock jobs`: the jobs that run once in each period.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde::Serialize;
use zklock::further::{Record, RunOutcome};
use zklock::{Client, Error, ErrorKind, JobSpec};

use crate::commands::contenders;
use crate::commands::run::period;
use crate::duration;
use crate::failure::Failure;
use crate::output::{columns, harmless, print, print_json};

/// The name of the node below a job that has its record.
const RECORD: &str = "last-run";

/// Show the jobs below a path (run --every), with the last run and when the next one is due
///
/// It looks at every node below the path, one after the other. HOLDER holds the job's mutex now. A job that is running although
/// nobody holds it has crashed. Times are compared with the clock of this machine. A job whose record cannot be read, or is from
/// the future by more than a period, is shown with the reason, and the code is 125 then.
#[derive(Args, Debug)]
pub(crate) struct Jobs {
    /// Where to begin
    #[arg(default_value = "/")]
    path: String,

    /// Write JSON: an array of jobs, with times in seconds since 1970
    #[arg(long)]
    json: bool,
}

/// A job as programs read it: its last run, and why it does not run again.
#[derive(Debug, Serialize)]
pub(super) struct Job {
    path: String,
    #[serde(flatten)]
    last: Option<Last>,
    pub(super) error: Option<String>,
    holder: Option<String>,
}

/// The last run of a job.
#[derive(Debug, Serialize)]
struct Last {
    outcome: String,
    failure: Option<String>,
    began: f64,
    ended: Option<f64>,
    next: f64,
    by: String,
    token: u64,
    #[serde(skip)]
    record: Record,
}

impl Jobs {
    pub(crate) async fn execute(&self, client: &Client) -> Result<(), Failure> {
        let jobs = below(client, &self.path).await?;
        if self.json {
            print_json(&jobs)?;
        } else if jobs.is_empty() {
            print(&format!("no job below {} has run yet\n", self.path))?;
        } else {
            let heads = ["JOB", "LAST", "BEGAN", "TOOK", "BY", "NEXT", "HOLDER"];
            print(&columns(&heads, jobs.iter().map(Job::row)))?;
        }
        match jobs.iter().filter(|job| job.error.is_some()).count() {
            0 => Ok(()),
            wrong => {
                let message = format!("{wrong} of {} jobs do not run: see above", jobs.len());
                Err(Failure::other(message))
            }
        }
    }
}

impl Job {
    fn new(path: String, last: Result<Record, Error>, holder: Option<String>) -> Self {
        let error = match &last {
            Ok(record) => record.check(&path, SystemTime::now()).err(),
            Err(error) => Some(error.clone()),
        };
        Self { path, last: last.ok().map(Last::new), error: error.map(|error| error.to_string()), holder }
    }

    /// Returns the cells of its row. An error has a column of its own, without a head, for a long one would make another column
    /// wide.
    fn row(&self) -> Vec<String> {
        let last = self
            .last
            .as_ref()
            .map_or_else(|| ["unreadable", "-", "-", "-", "-"].map(str::to_owned), Last::cells);
        let mut row = vec![harmless(&self.path)];
        row.extend(last);
        row.push(harmless(self.holder.as_deref().unwrap_or("-")));
        row.extend(self.error.as_deref().map(harmless));
        row
    }
}

impl Last {
    fn new(record: Record) -> Self {
        let seconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Self {
            outcome: record.outcome.to_string(),
            failure: if let RunOutcome::Failed(why) = &record.outcome { Some(why.clone()) } else { None },
            began: seconds(record.began),
            ended: record.ended.map(seconds),
            next: seconds(record.next()),
            by: record.identity.clone(),
            token: record.token.value(),
            record,
        }
    }

    fn cells(&self) -> [String; 5] {
        let short = |duration: Option<Duration>| duration.map_or("-".to_owned(), duration::short);
        let began = match SystemTime::now().duration_since(self.record.began) {
            Ok(age) => format!("{} ago", duration::short(age)),
            Err(ahead) => format!("in {}", duration::short(ahead.duration())),
        };
        let took = self.record.ended.map(|ended| ended.duration_since(self.record.began).unwrap_or_default());
        [self.outcome.clone(), began, short(took), harmless(&self.by), period::due(&self.record)]
    }
}

/// Lists the jobs below a path, in alphabetical order.
pub(super) async fn below(client: &Client, path: &str) -> Result<Vec<Job>, Failure> {
    let mut jobs = Vec::new();
    let look = async |path: &str, children: &[String]| {
        if !children.iter().any(|child| child == RECORD) {
            return Ok(Vec::new());
        }
        // Periods are those of the record.
        let job = client.job(&JobSpec::new(path, Duration::from_secs(1))?)?;
        let last = match job.last().await {
            // The others can still be listed.
            Err(error) if error.kind() == ErrorKind::Refused => Some(Err(error)),
            last => last?.map(Ok),
        };
        if let Some(last) = last {
            let holders = contenders::entries(&contenders::at(client, path).await?);
            let holder = holders.into_iter().find(|entry| entry.holds).map(|holder| holder.identity);
            jobs.push(Job::new(path.to_owned(), last, holder));
        }
        Ok(Vec::new())
    };
    contenders::walk(client, path, look).await?;
    Ok(jobs)
}
