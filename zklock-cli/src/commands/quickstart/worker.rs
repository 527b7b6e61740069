//! The work of one worker. This is all that a program has to do for a lock and a fenced resource.

use std::io::{Lines, StdinLock};
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};
use zklock_core::ErrorKind;
use zklock_core::blocking::Client;

use super::LOCK;
use super::stage::{ACCEPTED, GO_ON};
use crate::connect::Connection;
use crate::exit::Exit;
use crate::failure::Failure;

const PATIENCE: Duration = Duration::from_secs(60);

/// The most bytes that are written in one piece to a pipe to which others write, too.
const IN_ONE_PIECE: usize = 4096;

pub(super) fn work(connection: &Connection, name: &str) -> Result<(), Failure> {
    let mut ledger = Ledger::open(name)?;
    let client = Client::connect(connection.options()?.identity(name)?)?;
    let lock = client.mutex(LOCK)?;

    let hold = lock.acquire_timeout(PATIENCE)?;
    let token = hold.token().value();
    ledger.say(&format!("holds {token}"))?;
    ledger.write(token)?;
    ledger.wait_until_the_work_is_done()?;

    // Whatever happened meanwhile, even if the process was paused: the ledger knows a late write by its token.
    let is_accepted = ledger.write(token)?;
    // Said before it is done, so that it has been read when the next worker says that it holds the lock.
    if is_accepted {
        ledger.say("releases")?;
    }
    match hold.release() {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::Lost(_)) => ledger.say(&format!("lost {error}"))?,
        Err(error) => return Err(error.into()),
    }
    client.close()?;
    Ok(())
}

/// The worker's end of the resource that the lock is for: here pipes from and to the process that started it. All workers write to
/// the same pipe.
struct Ledger {
    name: String,
    answers: Lines<StdinLock<'static>>,
}

impl Ledger {
    fn open(name: &str) -> Result<Self, Failure> {
        // A stopped worker could not notice the end of the others.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(std::io::Error::from)?;
        Ok(Self { name: name.to_owned(), answers: std::io::stdin().lines() })
    }

    fn wait_until_the_work_is_done(&mut self) -> Result<(), Failure> {
        match &*self.answer()? {
            GO_ON => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Writes, and returns whether that is accepted.
    fn write(&mut self, token: u64) -> Result<bool, Failure> {
        self.say(&format!("writes {token}"))?;
        Ok(self.answer()? == ACCEPTED)
    }

    fn answer(&mut self) -> Result<String, Failure> {
        Ok(self.answers.next().ok_or_else(|| unexpected("nothing any more"))??)
    }

    fn say(&self, line: &str) -> Result<(), Failure> {
        let line = format!("{} {}\n", self.name, line.replace('\n', " "));
        let bytes = line.as_bytes();
        let written = rustix::io::write(rustix::stdio::stdout(), bytes).map_err(std::io::Error::from)?;
        if written < bytes.len() || written > IN_ONE_PIECE {
            return Err(Failure::new(Exit::Other, "a report is too long"));
        }
        Ok(())
    }
}

fn unexpected(answer: &str) -> Failure {
    Failure::new(Exit::Other, format!("the ledger says {answer}"))
}
