//! The worker processes: their programs, and the locks that each takes.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::servers::variable;

/// The locks of zklock's workers. There are few paths, so that workers meet.
const OURS: &[&str] = &[
    "mutex:/PLACE/mutex",
    "lingering:/PLACE/mutex",
    "lingering:/PLACE/lingering",
    "read:/PLACE/sides",
    "write:/PLACE/sides",
    "semaphore=2:/PLACE/permits",
    "exclusive:/PLACE/exclusive",
];
/// Jobs that run once in each period of so many milliseconds. All workers that run jobs run the same.
pub(crate) const JOBS: &[&str] = &[
    "job=1000:/quick/every-second",
    "job-next=2000:/quick/every-two-seconds",
    "job=6000:/quick/every-six-seconds",
    "job=86400000:/quick/every-day",
];
/// By how many seconds the dates of workers that run jobs are wrong.
const DATES: [&str; 3] = ["0", "3600", "-3600"];
/// Additional locks of Curator's workers.
const CURATORS: &[&str] =
    &["mutex:/PLACE/mutex", "read:/PLACE/sides", "write:/PLACE/sides", "semaphore=2:/PLACE/permits"];
/// The locks of peers, where they are alone.
const CURATORS_ALONE: &[&str] = &[
    "mutex:/PLACE/curator",
    "read:/PLACE/curator-sides",
    "write:/PLACE/curator-sides",
    "semaphore=2:/PLACE/curator-permits",
];
const KAZOOS: &[&str] = &[
    "mutex:/PLACE/kazoo",
    "read:/PLACE/kazoo-sides",
    "write:/PLACE/kazoo-sides",
    "semaphore=2:/PLACE/kazoo-permits",
];
/// Places for locks that are held for a moment, so long that much goes wrong meanwhile, or so briefly that they are granted
/// often, with the times of their workers, in microseconds: for how long they hold a lock at most, and now and then, and how often
/// they say so. The workers of a program are spread over them.
pub(crate) const PLACES: [(&str, &str); 4] = [
    ("quick", "5000,200000,2000"),
    // Three session timeouts.
    ("slow", "6000000,6000000,20000"),
    ("swift-1", "1000,1000,200"),
    ("swift-2", "1000,1000,200"),
];
/// The times of workers that run jobs.
const OF_JOBS: &str = "5000,6000000,2000";

/// A program that takes locks.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    locks: &'static [&'static str],
    /// The last arguments of its command line.
    more: &'static [&'static str],
    /// Whether its claims come from zklock.
    pub(crate) is_ours: bool,
}

impl Program {
    pub(crate) fn runs_jobs(&self) -> bool {
        self.locks == JOBS
    }
}

const fn ours(name: &'static str) -> Program {
    Program { name, locks: OURS, more: &[], is_ours: true }
}

const fn peer(name: &'static str, locks: &'static [&'static str], more: &'static [&'static str]) -> Program {
    Program { name, locks, more, is_ours: false }
}

/// With this argument a worker heeds its library's reports of a loss. Otherwise it is deaf.
const LISTENS: &[&str] = &["--listens"];

pub(crate) const PROGRAMS: &[Program] = &[
    ours("rust"),
    ours("python"),
    ours("c"),
    Program { locks: JOBS, ..ours("rust-once") },
    peer("curator", CURATORS, LISTENS),
    peer("curator-alone", CURATORS_ALONE, LISTENS),
    peer("curator-deaf", CURATORS_ALONE, &[]),
    peer("kazoo", KAZOOS, LISTENS),
    peer("kazoo-deaf", KAZOOS, &[]),
];

/// Whether this worker's claims come from zklock.
pub(crate) fn is_ours(worker: &str) -> bool {
    let name = worker.rsplit_once('-').map_or("", |split| split.0);
    PROGRAMS.iter().any(|program| program.name == name && program.is_ours)
}

/// The command that starts a program, from the environment that `tests/chaos/run` sets.
fn command(program: &Program) -> io::Result<Command> {
    let family = program.name.split('-').next().unwrap_or_default();
    let words = variable(&format!("CHAOS_{}", family.to_uppercase())).map_err(io::Error::other)?;
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    Ok(command)
}

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) program: &'static Program,
    /// The group with which it shares its ways to the servers.
    pub(crate) group: usize,
    child: Child,
}

impl Worker {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // If the worker has ended, `ended` reports that.
        let _ = pid.map(|pid| kill_process(pid, signal));
    }

    pub(crate) fn pause(&mut self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn resume(&mut self) {
        self.signal(Signal::CONT);
    }
}

/// All running workers. Dropping it kills them.
pub(crate) struct Workers {
    pub(crate) running: Vec<Worker>,
    numbers: BTreeMap<&'static str, u64>,
    register: SocketAddr,
    session: Duration,
    logs: PathBuf,
}

impl Workers {
    pub(crate) fn new(register: SocketAddr, session: Duration, logs: &Path) -> Self {
        Self { running: Vec::new(), numbers: BTreeMap::new(), register, session, logs: logs.to_owned() }
    }

    /// Starts one.
    pub(crate) fn start(
        &mut self,
        program: &'static Program,
        hosts: &str,
        group: usize,
        seed: u64,
    ) -> io::Result<()> {
        let number = self.numbers.entry(program.name).or_default();
        *number += 1;
        let name = format!("{}-{number}", program.name);
        let (place, times) = PLACES[usize::try_from(*number).unwrap_or_default() % PLACES.len()];
        let locks = program.locks.iter().map(|lock| lock.replace("PLACE", place));
        let log = File::create(self.logs.join(&name))?;
        let mut command = command(program)?;
        if program.runs_jobs() {
            let wrong = DATES[usize::try_from(*number).unwrap_or_default() % DATES.len()];
            command
                .env("LD_PRELOAD", variable("CHAOS_DATE_LIBRARY").map_err(io::Error::other)?)
                .env("CHAOS_DATE", wrong);
        }
        let child = command
            .args([hosts, &self.session.as_millis().to_string(), &self.register.to_string(), &name])
            .arg(seed.to_string())
            .arg(if program.runs_jobs() { OF_JOBS } else { times })
            .args(locks)
            .args(program.more)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.running.push(Worker { name, program, group, child });
        Ok(())
    }

    /// Kills a worker and returns it.
    pub(crate) fn kill(&mut self, at: usize) -> io::Result<Worker> {
        let mut worker = self.running.remove(at);
        worker.child.kill()?;
        worker.child.wait()?;
        Ok(worker)
    }

    /// Workers that ended by themselves, with the end of their output.
    pub(crate) fn ended(&mut self) -> Vec<String> {
        let mut ended = Vec::new();
        for worker in &mut self.running {
            if let Ok(Some(status)) = worker.child.try_wait() {
                ended.push(format!(
                    "{} has ended with {status}: {}",
                    worker.name,
                    said(&self.logs, &worker.name)
                ));
            }
        }
        self.running.retain_mut(|worker| matches!(worker.child.try_wait(), Ok(None)));
        ended
    }

    /// Waits until all have ended, after they were told to. Returns those that did not end well.
    pub(crate) fn finish(&mut self, within: Duration) -> Vec<String> {
        let mut bad = Vec::new();
        let all_ended = |workers: &mut Vec<Worker>| {
            workers.iter_mut().all(|worker| matches!(worker.child.try_wait(), Ok(Some(_))))
        };
        ground::until(within, || all_ended(&mut self.running));
        for mut worker in self.running.drain(..) {
            match worker.child.try_wait() {
                Ok(Some(status)) if status.success() => {}
                status => {
                    let _ = worker.child.kill();
                    let _ = worker.child.wait();
                    let how = status.ok().flatten().map_or("does not end".to_owned(), describe);
                    bad.push(format!("{} {how}: {}", worker.name, said(&self.logs, &worker.name)));
                }
            }
        }
        bad
    }
}

fn describe(status: ExitStatus) -> String {
    format!("has ended with {status}")
}

/// The end of a worker's output.
fn said(logs: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(logs.join(name)).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" | ")
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.running {
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}
