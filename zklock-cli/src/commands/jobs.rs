//! `zklock jobs`: the jobs that run once in each period.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde::Serialize;
use zklock_core::{Client, OnceSpec, Record, RunOutcome};

use crate::commands::contenders;
use crate::commands::run::period;
use crate::connect::Connection;
use crate::duration;
use crate::failure::Failure;
use crate::output::{columns, harmless, print, print_json};

/// The name of the node below a job that has its record.
const RECORD: &str = "last-run";

/// Show the jobs below a path that run once in each period (run --every): the last run, and when the next one is due
///
/// It looks at every node below the path, one after the other. HOLDER holds the job's mutex now. A job that is running although
/// nobody holds it has crashed. Times are compared with the clock of this machine.
#[derive(Args, Debug)]
pub(crate) struct Jobs {
    /// Where to begin
    #[arg(default_value = "/")]
    path: String,

    /// Write JSON: an array of jobs, with times in seconds since 1970
    #[arg(long)]
    json: bool,
}

/// A job as programs read it.
#[derive(Debug, Serialize)]
struct Job {
    path: String,
    outcome: String,
    failure: Option<String>,
    began: f64,
    ended: Option<f64>,
    next: f64,
    by: String,
    token: u64,
    holder: Option<String>,
    #[serde(skip)]
    record: Record,
}

impl Jobs {
    pub(crate) async fn execute(&self, connection: &Connection) -> Result<(), Failure> {
        let jobs = connection.with_client(async |client| below(client, &self.path).await).await?;
        if self.json {
            return print_json(&jobs);
        }
        if jobs.is_empty() {
            return print(&format!("no job below {} has run yet\n", self.path));
        }
        let heads = ["JOB", "LAST", "BEGAN", "TOOK", "BY", "NEXT", "HOLDER"].map(str::to_owned).to_vec();
        let rows: Vec<_> = [heads].into_iter().chain(jobs.iter().map(Job::row)).collect();
        print(&columns(&rows))
    }
}

impl Job {
    fn new(path: String, record: Record, holder: Option<String>) -> Self {
        let seconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Self {
            path,
            outcome: record.outcome.to_string(),
            failure: if let RunOutcome::Failed(why) = &record.outcome { Some(why.clone()) } else { None },
            began: seconds(record.began),
            ended: record.ended.map(seconds),
            next: seconds(record.next()),
            by: record.identity.clone(),
            token: record.token.value(),
            holder,
            record,
        }
    }

    fn row(&self) -> Vec<String> {
        let short = |duration: Option<Duration>| duration.map_or("-".to_owned(), duration::short);
        let age = SystemTime::now().duration_since(self.record.began).unwrap_or_default();
        let took = self.record.ended.map(|ended| ended.duration_since(self.record.began).unwrap_or_default());
        let holder = self.holder.as_deref().unwrap_or("-");
        vec![
            harmless(&self.path),
            self.outcome.clone(),
            format!("{} ago", duration::short(age)),
            short(took),
            harmless(&self.by),
            period::due(&self.record),
            harmless(holder),
        ]
    }
}

/// Lists the jobs below a path, in alphabetical order.
async fn below(client: &Client, path: &str) -> Result<Vec<Job>, Failure> {
    let mut jobs = Vec::new();
    let mut unseen = vec![path.to_owned()];
    while let Some(path) = unseen.pop() {
        let children = client.children(&path).await?;
        if zklock_core::check_lock_path(&path).is_ok() && children.iter().any(|child| child == RECORD) {
            // Periods are those of the record.
            let job = client.once(&OnceSpec::new(&path, Duration::from_secs(1))?)?;
            if let Some(record) = job.last().await? {
                let holders = contenders::entries(&contenders::at(client, &path).await?);
                let holder = holders.into_iter().find(|entry| entry.holds).map(|holder| holder.identity);
                jobs.push(Job::new(path.clone(), record, holder));
            }
        }
        let base = if path == "/" { "" } else { &path };
        let next = children.iter().rev().map(|name| format!("{base}/{name}"));
        unseen.extend(next.filter(|node| node != "/zookeeper"));
    }
    Ok(jobs)
}
