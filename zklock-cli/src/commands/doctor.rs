//! `zklock doctor`: whether locks would work here, and what to do if not.

mod each;
mod finding;
mod limits;
mod server;

use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use tokio::time::timeout;
use zklock::face::{longest, times};
use zklock::{Client, ClientOptions, ErrorKind, Hold};

use crate::commands::contenders::lock_path;
use crate::commands::jobs;
use crate::connect::{Connection, Source, called, options_for};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::processes::orders::Limits;
use finding::Finding;

/// A write that takes longer than this makes every lock slow.
const SLOW: Duration = Duration::from_millis(100);
const WRITES: usize = 20;
/// If clocks differ by more than this, jobs may run at a wrong time, and ages in `zklock ls` mislead. Locks do not mind.
const APART: Duration = Duration::from_secs(2);
/// How long it looks for jobs.
const SEARCH: Duration = Duration::from_secs(5);
/// How long it waits for a lock.
const TO_ACQUIRE: Duration = Duration::from_secs(10);
/// Where it tries a lock if nobody says where.
const ANYWHERE: &str = "/zklock-doctor";

/// Check whether locks would work here, and say what to do if not
///
/// It asks each server, opens a session, and acquires and releases a lock at the path. If there are several servers, it asks
/// each one separately for the nodes below the path, to find a server that lags behind or belongs to another ensemble. It also looks at the
/// records of jobs (run --every) below the path, or of all jobs if no path is given. It ends with code 1 if anything is wrong.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Where to try a lock. Choose a path below the node that your programs use, so that the same rights apply
    #[arg(default_value = ANYWHERE, value_parser = lock_path)]
    path: String,

    /// Write JSON: an array of findings
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) async fn execute(&self, connection: &Connection) -> Result<Exit, Failure> {
        let options = connection.options()?;
        let mut findings = vec![configuration(&connection.source)];
        let reached = server::look_at_all(connection, &mut findings).await?;
        if let Err(worst) = self.look_at_session(connection, options, &reached, &mut findings).await {
            findings.push(worst);
        }
        if self.json {
            print_json(&findings)?;
        } else {
            print(&finding::text(&findings))?;
        }
        Ok(if findings.iter().any(Finding::is_bad) { Exit::Finding } else { Exit::Done })
    }

    /// Fails with the finding that lets it look at nothing else.
    async fn look_at_session(
        &self,
        connection: &Connection,
        options: ClientOptions,
        servers: &[String],
        findings: &mut Vec<Finding>,
    ) -> Result<(), Finding> {
        let client = Client::connect(options).await.map_err(|error| {
            let begin = "without a session there are no locks: begin with the servers above";
            let advice = advice(&error, begin);
            Finding::bad("session", error, advice)
        })?;
        findings.extend(session_timeout(&client, connection.time("session-timeout")));
        findings.push(encryption(connection));
        if let Err(worst) = self.look_at_lock(&client, connection, servers, findings).await {
            findings.push(worst);
        }
        self.look_at_jobs(&client, findings).await;
        let _ = client.close().await;
        Ok(())
    }

    /// Finds jobs that do not run, because of what is recorded of their last run.
    async fn look_at_jobs(&self, client: &Client, findings: &mut Vec<Finding>) {
        let path = if self.path == ANYWHERE { "/" } else { &self.path };
        let Ok(Ok(jobs)) = timeout(SEARCH, jobs::below(client, path)).await else {
            let advice = "see what `zklock jobs` says of paths that have jobs";
            let text = format!("not all below {path} could be seen");
            return findings.push(Finding::warning("jobs", text, advice));
        };
        let wrong = jobs.into_iter().filter_map(|job| job.error);
        findings.extend(wrong.map(|error| Finding::bad("jobs", error, "until then it runs nowhere")));
    }

    /// Does everything once that programs must be allowed to do.
    async fn look_at_lock(
        &self,
        client: &Client,
        connection: &Connection,
        servers: &[String],
        findings: &mut Vec<Finding>,
    ) -> Result<(), Finding> {
        let path = &self.path;
        let lock = client.mutex(path).map_err(|error| Finding::bad("rights", error, "give another path"))?;
        let before = SystemTime::now();
        let hold = lock.acquire_timeout(TO_ACQUIRE).await.map_err(|error| {
            let advice = match error.kind() {
                ErrorKind::Refused => "give this user the rights that docs/securing.md lists for a mutex",
                ErrorKind::Timeout => "give a path that is not in use",
                _ => "see what the servers' logs say",
            };
            Finding::bad("rights", error, advice)
        })?;
        let after = SystemTime::now();
        match lock.contenders().await {
            Ok(contenders) => {
                findings.push(Finding::good("rights", format!("may create and read below {path}")));
                let own = contenders.iter().find(|contender| contender.node == hold.node());
                findings.extend(own.map(|own| clock(before, own.since, after)));
            }
            Err(error) => {
                findings.push(Finding::bad("rights", error, "give this user the right to read (r) there"));
            }
        }
        findings.push(writes(&hold).await);
        findings.push(self.new_lock(client, &hold).await);
        // Done while there is a node that all of them must show.
        if servers.len() > 1 {
            findings.extend(each::compare(connection, servers, path).await);
        }
        let released = hold.release().await;
        released
            .map_err(|error| Finding::bad("rights", error, "give this user the right to delete (d) there"))?;
        findings.push(Finding::good("rights", format!("may delete below {path}")));
        Ok(())
    }

    /// Tries whether a lock that nobody has used can be created, which needs a new node above the contenders' nodes. It is
    /// tried at a path of our own, because the lock's own node may already exist.
    async fn new_lock(&self, client: &Client, hold: &Hold) -> Finding {
        let path = &self.path;
        let scratch = format!("{}/zklock-doctor-{}", path.trim_end_matches('/'), hold.token());
        let created = async { client.mutex(&scratch)?.acquire_timeout(TO_ACQUIRE).await?.release().await };
        if let Err(error) = created.await {
            let advice =
                "give this user the right to create (c) there, or create the nodes of locks beforehand";
            return Finding::bad("rights", format!("no new lock below {path}: {error}"), advice);
        }
        match hold.guarded().delete(&scratch, None).commit().await {
            Ok(_) => Finding::good("rights", format!("may create new locks below {path}, and delete them")),
            Err(error) => {
                let advice = "give this user the right to delete (d) there; servers from 3.5 on delete it in a minute or so";
                Finding::warning("rights", format!("{scratch} is left: {error}"), advice)
            }
        }
    }
}

fn configuration(source: &Source) -> Finding {
    let text = source.description();
    if source.unreadable.is_empty() {
        return Finding::good("configuration", text);
    }
    let advice = "let this user read it, or name another file with --config (/dev/null for none)";
    Finding::warning("configuration", text, advice)
}

fn session_timeout(client: &Client, asked: Option<Duration>) -> Vec<Finding> {
    let asked = asked.unwrap_or(ClientOptions::DEFAULT_SESSION_TIMEOUT);
    let Some(granted) = client.session_timeout() else {
        let advice = "see what the servers' logs say";
        return vec![Finding::bad("session", "it ended right after it was opened", advice)];
    };
    vec![granted_timeout(granted, asked), without_servers(granted)]
}

/// Says how long holds and jobs survive without servers. The last heartbeat before may be due, and a
/// job that gets TERM may take all the time that it can be given.
fn without_servers(timeout: Duration) -> Finding {
    let hold = longest(timeout).saturating_sub(times::BEAT.of(timeout));
    let job = hold.saturating_sub(Limits { grace: Duration::MAX, session_timeout: timeout }.least_lease());
    let (hold, job) = (duration::short(hold), duration::short(job));
    let text =
        format!("survives without servers: a hold {hold} or longer, a job of `zklock run` {job} or longer");
    Finding::good("session", text)
}

fn granted_timeout(granted: Duration, asked: Duration) -> Finding {
    let short = duration::short(granted);
    if granted == asked {
        return Finding::good("session", format!("timeout {short}, as asked for"));
    }
    let text = format!("timeout {short}, {} was asked for", duration::short(asked));
    let (limit, effect) = if granted > asked {
        ("minSessionTimeout", "after a crash, a lock is only free when that time is over")
    } else {
        ("maxSessionTimeout", "locks are lost in shorter network outages")
    };
    Finding::warning("session", text, format!("{effect}; the limit is tickTime or {limit} in zoo.cfg"))
}

fn encryption(connection: &Connection) -> Finding {
    if connection.is_encrypted() {
        return Finding::good("TLS", "the servers' certificates are checked");
    }
    let see = called(&["tls", "ca"], true);
    Finding::warning("TLS", "not used", format!("passwords and locks are readable on the network: see {see}"))
}

/// Returns what to do about why no session was opened.
fn advice(error: &zklock::Error, otherwise: &str) -> String {
    match options_for(error) {
        [] => otherwise.to_owned(),
        names => format!("see {}", called(names, true)),
    }
}

/// Compares the servers' clock with ours. The node was created between two looks at our clock.
fn clock(before: SystemTime, created: SystemTime, after: SystemTime) -> Finding {
    let outside = |early: SystemTime, late: SystemTime| late.duration_since(early).unwrap_or_default();
    let apart = outside(created, before).max(outside(after, created));
    let text = format!("the servers' and this machine's differ by {}", duration::short(apart));
    if apart > APART {
        let advice = "this does not matter to locks, but jobs (run --every) go by the leader's clock, and the ages that \
                      `zklock ls` shows are wrong by that: check NTP on the servers and here";
        return Finding::warning("clocks", text, advice);
    }
    Finding::good("clocks", text)
}

/// Measures writes, which every lock needs.
async fn writes(hold: &Hold) -> Finding {
    let mut times = [Duration::ZERO; WRITES];
    for time in &mut times {
        let begun = Instant::now();
        if let Err(error) = hold.confirm().await {
            return Finding::bad("writes", error, "see whether the ensemble has a leader");
        }
        *time = begun.elapsed();
    }
    times.sort_unstable();
    let (median, slowest) = (times[WRITES / 2], times[WRITES - 1]);
    let text = format!("a write takes {median:.1?}, the slowest of {WRITES} took {slowest:.1?}");
    if median > SLOW {
        let advice = "each lock takes two: check the disks of the servers' dataLogDir, and the network";
        return Finding::warning("writes", text, advice);
    }
    Finding::good("writes", text)
}
