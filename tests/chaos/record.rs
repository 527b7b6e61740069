//! The lines of workers: see README.md.

use crate::handover::HandOvers;
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
}

#[derive(Debug)]
struct Turn {
    path: String,
    mode: Mode,
    wanted: u64,
    has: bool,
}

impl Book {
    /// Records a line of a worker.
    pub(crate) fn hear(&mut self, worker: &str, line: &str) {
        if self.take(worker, line).is_none() {
            self.unread.push(format!("{worker}: {line}"));
        }
    }

    /// Whether two of zklock's workers have claimed a lock that only one can have.
    pub(crate) fn is_against_zklock(&self) -> bool {
        self.judge.violations.iter().any(|violation| violation.workers.iter().all(|worker| is_ours(worker)))
    }

    /// The paths that nobody claims while a worker waits, since when it waits, and which worker it is.
    pub(crate) fn free_and_wanted(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        let waiting = self.turns.iter().filter(|(_, turn)| !turn.has);
        waiting.map(|((worker, _), turn)| {
            (&*turn.path, turn.wanted.max(self.hand_overs.claimed_until(&turn.path)), &**worker)
        })
    }

    fn take(&mut self, worker: &str, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let word = words.next()?;
        let turn: u64 = words.next()?.parse().ok()?;
        let key = (worker.to_owned(), turn);
        let mut words = words.map(str::to_owned);
        match word {
            "want" => {
                let (path, mode) = lock(&words.next()?)?;
                let wanted = words.next()?.parse().ok()?;
                self.hand_overs.is_wanted(&path, !is_ours(worker));
                self.turns.insert(key, Turn { path, mode, wanted, has: false });
            }
            "have" => {
                let token = words.next()?.parse().ok()?;
                let node = words.next()?;
                let begin = words.next()?.parse().ok()?;
                let waiting = self.turns.get_mut(&key)?;
                waiting.has = true;
                let Turn { path, mode, wanted, .. } = waiting;
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
}

/// The path and the mode of a lock, from a worker's word for it.
fn lock(text: &str) -> Option<(String, Mode)> {
    let (kind, path) = text.split_once(':')?;
    let mode = match kind.split_once('=') {
        Some(("semaphore", count)) => Mode::Counted(count.parse().ok()?),
        None if kind == "read" => Mode::Shared,
        None if matches!(kind, "mutex" | "lingering" | "write" | "exclusive") => Mode::Alone,
        _ => return None,
    };
    Some((path.to_owned(), mode))
}
