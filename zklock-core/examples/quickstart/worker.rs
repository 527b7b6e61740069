//! What one worker does. This is all that a program has to do for a lock and a fenced resource.

use std::io::Write;
use std::time::Duration;

use zklock_core::blocking::Client;
use zklock_core::{ClientOptions, ErrorKind};

use crate::Result;

pub(crate) const LOCK: &str = "/zklock-quickstart";

/// Short, so that nobody waits long for the lock of a worker that was killed. A real server may grant more.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn work(hosts: &str, name: &str) -> Result<()> {
    let options = ClientOptions::new(hosts)?.session_timeout(SESSION_TIMEOUT)?.identity(name)?;
    let client = Client::connect(options)?;
    let lock = client.mutex(LOCK)?;

    let hold = lock.acquire_timeout(PATIENCE)?;
    let mut ledger = Ledger::open();
    ledger.say(&format!("holds {}", hold.token()))?;
    ledger.wait_until_the_work_is_done()?;

    // Whatever happened meanwhile, pauses of the process included: with its token the ledger knows a late write.
    ledger.write(hold.token().value())?;

    match hold.release() {
        Ok(()) => ledger.say("released")?,
        Err(error) if matches!(error.kind(), ErrorKind::Lost(_)) => ledger.say(&format!("lost {error}"))?,
        Err(error) => return Err(error.into()),
    }
    client.close()?;
    Ok(())
}

/// The worker's end of the resource that the lock is for: here a pair of pipes to the process that started it.
struct Ledger {
    answers: std::io::Lines<std::io::StdinLock<'static>>,
}

impl Ledger {
    fn open() -> Self {
        Self { answers: std::io::stdin().lines() }
    }

    fn wait_until_the_work_is_done(&mut self) -> Result<()> {
        self.answers.next().ok_or("nobody is there any more")??;
        Ok(())
    }

    fn write(&mut self, token: u64) -> Result<()> {
        self.say(&format!("writes {token}"))
    }

    fn say(&mut self, line: &str) -> Result<()> {
        let mut output = std::io::stdout();
        writeln!(output, "{line}")?;
        output.flush()?;
        Ok(())
    }
}
