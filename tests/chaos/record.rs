//! The lines of workers: see README.md.

use crate::handover::HandOvers;
use crate::jobs::{Between, Jobs, Outcome, Terms};
use crate::judge::{Claim, Judge, Mode};
use crate::workers::is_ours;
use std::collections::HashMap;

/// The outcomes of the turns of all workers.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) judge: Judge,
    /// The turns that are not over.
    turns: HashMap<(String, u64), Turn>,
    /// By reason.
    pub(crate) gave: HashMap<String, u64>,
    pub(crate) lost: HashMap<String, u64>,
    /// When each worker last got a lock.
    pub(crate) latest: HashMap<String, u64>,
    /// Lines that could not be read.
    pub(crate) unread: Vec<String>,
    pub(crate) hand_overs: HandOvers,
    pub(crate) jobs: Jobs,
}

#[derive(Debug)]
struct Turn {
    path: String,
    mode: Mode,
    wanted: u64,
    /// If it is a job's.
    terms: Option<Terms>,
    /// If it is a job's and runs it.
    token: i64,
}

impl Book {
    /// Makes it for a monotonic clock that is so far behind the time since 1970.
    pub(crate) fn new(since_1970: u64) -> Self {
        Self { jobs: Jobs::new(since_1970), ..Self::default() }
    }

    /// Records a line of a worker.
    pub(crate) fn hear(&mut self, worker: &str, line: &str) {
        if self.take(worker, line).is_none() {
            self.unread.push(format!("{worker}: {line}"));
        }
    }

    /// Whether two of zklock's workers have claimed a lock that only one can have, or a job has run when it must not, or has not
    /// run when it must. All that was said until `heard` has been heard.
    pub(crate) fn is_against_zklock(&self, heard: u64) -> bool {
        let all_are_ours = |workers: &[String]| workers.iter().all(|worker| is_ours(worker));
        self.judge.violations.iter().any(|violation| all_are_ours(&violation.workers))
            || !self.jobs.violations(heard).is_empty()
    }

    fn take(&mut self, worker: &str, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let word = words.next()?;
        let turn: u64 = words.next()?.parse().ok()?;
        let key = (worker.to_owned(), turn);
        let mut words = words.map(str::to_owned);
        match word {
            "want" => {
                let (path, mode, terms) = lock(&words.next()?)?;
                let wanted = words.next()?.parse().ok()?;
                self.hand_overs.is_wanted(&path, !is_ours(worker));
                self.turns.insert(key, Turn { path, mode, wanted, terms, token: 0 });
            }
            "runs" => {
                let Turn { path, terms, wanted, token, .. } = self.turns.get_mut(&key)?;
                *token = words.next()?.parse().ok()?;
                let began = Between(*wanted, words.next()?.parse().ok()?);
                self.jobs.begins(path, (*terms)?, worker, *token, began);
            }
            "ends" => self.ends(&key, Outcome::Perhaps)?,
            "ended" => {
                let outcome = match &*words.nth(1)? {
                    "done" => Outcome::Done,
                    "failed" => Outcome::Failed,
                    "unknown" => Outcome::Perhaps,
                    _ => return None,
                };
                self.ends(&key, outcome)?;
            }
            "over" => {
                let Turn { path, terms, wanted, .. } = self.turns.remove(&key)?;
                let last = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let at = words.next()?.parse().ok()?;
                // It had the job's lock for a moment.
                self.hand_overs.is_got(&path, wanted, at);
                self.hand_overs.is_claimed(&path, at);
                self.jobs.answers(&path, terms?, worker, Between(wanted, at), last);
                self.latest.insert(worker.to_owned(), at);
            }
            "have" => {
                let token = words.next()?.parse().ok()?;
                let node = words.next()?;
                let begin = words.next()?.parse().ok()?;
                let Turn { path, mode, wanted, .. } = self.turns.get(&key)?;
                self.hand_overs.is_got(path, *wanted, begin);
                self.hand_overs.is_claimed(path, begin);
                let claim =
                    Claim { worker: worker.to_owned(), turn, mode: *mode, token, node, begin, end: begin };
                self.judge.begins(path, claim);
                self.latest.insert(worker.to_owned(), begin);
            }
            "still" | "done" => {
                let until = words.next()?.parse().ok()?;
                let path = &self.turns.get(&key)?.path;
                self.judge.goes_on(path, worker, turn, until);
                self.hand_overs.is_claimed(path, until);
            }
            "lost" => *self.lost.entry(words.nth(1)?).or_default() += 1,
            "free" => drop(self.turns.remove(&key)),
            "gave" => {
                let (at, reason) = (words.next()?.parse().ok()?, words.next()?);
                let turn = self.turns.remove(&key);
                if let Some(Turn { path, wanted, .. }) = turn.filter(|_| reason == "timeout") {
                    self.hand_overs.is_given_up(&path, wanted, at);
                }
                *self.gave.entry(reason).or_default() += 1;
            }
            _ => return None,
        }
        Some(())
    }

    /// Notes how a turn's run of a job ends.
    fn ends(&mut self, key: &(String, u64), outcome: Outcome) -> Option<()> {
        let turn = self.turns.get(key)?;
        self.jobs.ends(&turn.path, turn.token, outcome);
        Some(())
    }
}

/// The path and the mode of a lock, from a worker's word for it, and the terms of a job.
pub(crate) fn lock(text: &str) -> Option<(String, Mode, Option<Terms>)> {
    let (kind, path) = text.split_once(':')?;
    let mut terms = None;
    let mode = match kind.split_once('=') {
        Some((kind @ ("job" | "job-next"), every)) => {
            let every = every.parse::<u64>().ok()? * 1_000_000;
            terms = Some(Terms { every, again: kind == "job" });
            Mode::Alone
        }
        Some(("semaphore", count)) => Mode::Counted(count.parse().ok()?),
        None if kind == "read" => Mode::Shared,
        None if matches!(kind, "mutex" | "lingering" | "write" | "exclusive") => Mode::Alone,
        _ => return None,
    };
    Some((path.to_owned(), mode, terms))
}
