//! The play: leads the workers through their fates, and tells what happens as it happens.

use std::thread;
use std::time::{Duration, Instant};

use zklock_core::ClientOptions;
use zklock_core::blocking::{Client, Lock};

use super::LOCK;
use super::ledger::Ledger;
use super::screen::{Picture, Screen, Tone};
use super::stage::{Heard, Stage, name};
use crate::exit::Exit;
use crate::failure::Failure;

const WORKERS: usize = 4;

/// How long a worker works.
const WORK: Duration = Duration::from_millis(400);

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often to update the picture, and to look after the workers.
const LOOK: Duration = Duration::from_millis(100);

/// The fate of a worker while it holds the lock. Fates follow the order of the grants.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Works,
    IsKilled,
    IsStopped,
}

const FATES: [Fate; WORKERS] = [Fate::Works, Fate::IsKilled, Fate::IsStopped, Fate::Works];
/// How many writes of each worker are accepted, in the order of the grants.
const ACCEPTED: [u32; WORKERS] = [2, 1, 1, 2];

/// Makes the failure if something was not as promised.
pub(super) fn failed(text: impl Into<String>) -> Failure {
    Failure::new(Exit::Other, text)
}

pub(super) struct Play {
    screen: Screen,
    client: Client,
    /// The lock, for looking at its queue.
    lock: Lock,
    ledger: Ledger,
    /// The order of the queue, once all workers were in it.
    queue: Vec<usize>,
    /// The workers that were granted the lock, in order, and their tokens.
    grants: Vec<(usize, u64)>,
    accepted: [u32; WORKERS],
    refused: Vec<usize>,
    lost: Vec<usize>,
    killed: Option<usize>,
    stopped: Option<usize>,
    /// The worker that was stopped, until it has been told that it has lost the lock.
    late: Option<usize>,
}

impl Play {
    pub(super) fn new(options: ClientOptions) -> Result<Self, Failure> {
        let client = Client::connect(options)?;
        Ok(Self {
            screen: Screen::new(),
            lock: client.mutex(LOCK)?,
            client,
            ledger: Ledger::default(),
            queue: Vec::new(),
            grants: Vec::new(),
            accepted: [0; WORKERS],
            refused: Vec::new(),
            lost: Vec::new(),
            killed: None,
            stopped: None,
            late: None,
        })
    }

    pub(super) fn perform(
        mut self,
        start: impl FnOnce(usize) -> Result<Stage, Failure>,
    ) -> Result<(), Failure> {
        self.tell(Tone::Plain, &format!("{WORKERS} workers want the lock {LOCK}"))?;
        let mut stage = start(WORKERS)?;
        while let Some((index, line)) = self.next(&mut stage)? {
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match word {
                "holds" => self.granted(index, number(rest)?)?,
                "writes" => self.writes(&mut stage, index, number(rest)?)?,
                "releases" => self.say(Tone::Plain, index, "releases the lock")?,
                "lost" => self.loses(&mut stage, index, rest)?,
                _ => return Err(failed(format!("{} says {line:?}", name(index)))),
            }
        }
        self.judge(&mut stage)?;
        self.tell(
            Tone::Good,
            "done: one holder at a time, in the order of the queue, and the late write did no harm",
        )?;
        self.client.close()?;
        Ok(())
    }

    fn granted(&mut self, index: usize, token: u64) -> Result<(), Failure> {
        if self.grants.len() == WORKERS {
            return Err(failed("more grants than workers"));
        }
        if self.grants.is_empty() {
            self.wait_for_a_queue()?;
        }
        self.grants.push((index, token));
        let waiting = match &*self.queue_now()?.1 {
            [] => "nobody waits".to_owned(),
            [one] => format!("{one} waits"),
            several => format!("{} wait", several.join(", ")),
        };
        self.say(Tone::Grant, index, &format!("holds the lock, token {token}; {waiting}"))
    }

    fn writes(&mut self, stage: &mut Stage, index: usize, token: u64) -> Result<(), Failure> {
        let is_accepted = self.ledger.write(token);
        if !is_accepted {
            self.refused.push(index);
            let greatest = self.ledger.greatest;
            let text = format!("writes with token {token}: REFUSED, {greatest} has written");
            self.say(Tone::Bad, index, &text)?;
            return stage.answer(index, is_accepted);
        }
        self.accepted[index] += 1;
        self.say(Tone::Good, index, &format!("writes with token {token}: accepted"))?;
        stage.answer(index, is_accepted)?;
        // A worker is done after its second write.
        if self.accepted[index] == 1 {
            self.pause(stage, index)?;
            self.strike(stage, index)?;
        }
        Ok(())
    }

    /// Lets the fate of the holder take its course. A holder that works wakes the worker that was
    /// stopped before.
    fn strike(&mut self, stage: &mut Stage, index: usize) -> Result<(), Failure> {
        match FATES[self.grants.len() - 1] {
            Fate::Works => match self.stopped.take() {
                // The holder goes on when that worker has been told what has happened.
                Some(stopped) => {
                    self.say(Tone::Trouble, stopped, "wakes up")?;
                    stage.wake(stopped)
                }
                None => stage.go_on(index),
            },
            Fate::IsKilled => {
                stage.kill(index)?;
                self.killed = Some(index);
                self.say(Tone::Trouble, index, "is killed; the lock is free when its session is over")
            }
            Fate::IsStopped => {
                stage.stop(index)?;
                // It will read this when it wakes, and believe that it may write.
                stage.go_on(index)?;
                (self.stopped, self.late) = (Some(index), Some(index));
                self.say(Tone::Trouble, index, "is stopped where it is, and knows nothing of it")
            }
        }
    }

    fn loses(&mut self, stage: &mut Stage, index: usize, reason: &str) -> Result<(), Failure> {
        self.lost.push(index);
        self.say(Tone::Trouble, index, &format!("learns: {reason}"))?;
        if self.late.take() != Some(index) {
            return Err(failed(format!("{} has lost the lock", name(index))));
        }
        let (holder, _) = *self.grants.last().ok_or_else(|| failed("nobody holds the lock"))?;
        stage.go_on(holder)
    }

    /// Waits until all workers are in the queue, so that there is somebody to show in it.
    fn wait_for_a_queue(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        while self.queue.len() < WORKERS {
            if Instant::now() > end {
                return Err(failed(format!("not all workers are in the queue after {PATIENCE:?}")));
            }
            thread::sleep(Duration::from_millis(10));
            let all: Vec<_> =
                self.lock.contenders()?.into_iter().map(|contender| contender.identity).collect();
            let place = |identity: &String| (0..WORKERS).find(|index| name(*index) == *identity);
            self.queue = all.iter().filter_map(place).collect();
        }
        Ok(())
    }

    /// Returns the holder, and the waiters in order.
    fn queue_now(&self) -> Result<(Option<String>, Vec<String>), Failure> {
        let (holders, waiting): (Vec<_>, Vec<_>) =
            self.lock.contenders()?.into_iter().partition(|contender| contender.holds);
        let holder = holders.into_iter().next().map(|holder| holder.identity);
        Ok((holder, waiting.into_iter().map(|contender| contender.identity).collect()))
    }

    /// Returns what a worker says next, and the worker; `None` when all have ended.
    fn next(&mut self, stage: &mut Stage) -> Result<Option<(usize, String)>, Failure> {
        let end = Instant::now() + PATIENCE;
        loop {
            match stage.hear(LOOK)? {
                Heard::Line(index, line) => return Ok(Some((index, line))),
                Heard::TheEnd => return Ok(None),
                Heard::Nothing if Instant::now() > end => {
                    return Err(failed(format!("no worker says anything for {PATIENCE:?}")));
                }
                Heard::Nothing => self.look(stage)?,
            }
        }
    }

    /// Lets time pass while the holder works. Nobody may have anything to say meanwhile.
    fn pause(&mut self, stage: &mut Stage, holder: usize) -> Result<(), Failure> {
        let end = Instant::now() + WORK;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            match stage.hear(left.min(LOOK))? {
                Heard::Line(index, line) => {
                    let (other, holder) = (name(index), name(holder));
                    return Err(failed(format!("{other} {line} while {holder} works")));
                }
                _ => self.look(stage)?,
            }
        }
        Ok(())
    }

    /// Brings the picture up to date, and looks after the workers.
    fn look(&mut self, stage: &mut Stage) -> Result<(), Failure> {
        for index in (0..WORKERS).filter(|index| self.killed != Some(*index)) {
            match stage.has_ended(index)? {
                Some(status) if !status.success() => return Err(has_ended(index, status)),
                _ => {}
            }
        }
        match self.picture()? {
            Some(picture) => self.screen.show(picture),
            None => Ok(()),
        }
    }

    /// Returns the present picture, if there is a terminal to show it on.
    fn picture(&self) -> Result<Option<Picture>, Failure> {
        if !self.screen.has_picture() {
            return Ok(None);
        }
        let (holder, waiting) = self.queue_now()?;
        let killed = self.killed.map(name);
        let is_killed = holder.is_some() && holder == killed;
        let stopped = self.stopped.map(name);
        Ok(Some(Picture { holder, is_killed, waiting, stopped, greatest: self.ledger.greatest }))
    }

    fn say(&mut self, tone: Tone, index: usize, text: &str) -> Result<(), Failure> {
        self.tell(tone, &format!("{} {text}", name(index)))
    }

    fn tell(&mut self, tone: Tone, text: &str) -> Result<(), Failure> {
        let picture = self.picture()?;
        self.screen.say(tone, text, picture)
    }

    /// Checks whether everything was as promised.
    fn judge(&mut self, stage: &mut Stage) -> Result<(), Failure> {
        for index in 0..WORKERS {
            let status = stage.status(index)?;
            if status.success() == (self.killed == Some(index)) {
                return Err(has_ended(index, status));
            }
        }
        let order: Vec<_> = self.grants.iter().map(|(index, _)| *index).collect();
        if order != self.queue || !self.grants.is_sorted_by(|(_, before), (_, after)| before < after) {
            return Err(failed(format!("the queue was {:?}, the grants were {:?}", self.queue, self.grants)));
        }
        let accepted = order.iter().map(|index| self.accepted[*index]);
        if !accepted.eq(ACCEPTED) || self.refused != [order[2]] || self.lost != [order[2]] {
            return Err(failed("the late write, and it alone, was to be refused, and its writer to be told"));
        }
        Ok(())
    }
}

fn has_ended(index: usize, status: std::process::ExitStatus) -> Failure {
    failed(format!("{} has ended with {status}", name(index)))
}

fn number(text: &str) -> Result<u64, Failure> {
    text.parse().map_err(|_| failed(format!("{text:?} is not a token")))
}
