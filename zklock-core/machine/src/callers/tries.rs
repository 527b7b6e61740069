//! What the tries of a process have found out: whether the next one may be told without a request that the lock is busy.

use crate::Moment;
use crate::lease::Lease;
use crate::memory::Memory;

/// The session that is open and connected at the moment of a call.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a> {
    /// Its name.
    pub session: i64,
    /// Its lease.
    pub lease: &'a Lease,
}

/// A try that found the lock busy, and the watch that it has left in a session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Remembered {
    session: i64,
    memory: Memory,
}

impl Remembered {
    /// The watch was set in this session, by a request that was sent at `since`: see
    /// [`busy_since`](crate::drive::Machine::busy_since).
    pub fn new(session: i64, since: Moment) -> Self {
        Self { session, memory: Memory::new(since) }
    }

    fn is_good(&self, open: Open<'_>, now: Moment) -> bool {
        open.session == self.session && self.memory.is_good(open.lease, now)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Tries {
    /// Whether a try has found the lock busy.
    pub(super) was_busy: bool,
    remembered: Option<Remembered>,
}

impl Tries {
    /// Whether a try would find the lock busy, as a server has already said. `Err` if it was remembered until now.
    pub(super) fn is_known_busy(&mut self, open: Option<Open<'_>>, now: Moment) -> Result<bool, Forgotten> {
        let Some(remembered) = &self.remembered else { return Ok(false) };
        if open.is_some_and(|open| remembered.is_good(open, now)) {
            return Ok(true);
        }
        self.remembered = None;
        Err(Forgotten)
    }

    /// A try has found the lock busy, and nothing is left of it but, perhaps, a watch.
    pub(super) fn note_busy(&mut self, remembered: Option<Remembered>) {
        self.was_busy = true;
        if remembered.is_some() {
            self.remembered = remembered;
        }
    }

    /// Forgets it. Returns whether there was anything to forget.
    pub(super) fn forget(&mut self) -> bool {
        self.remembered.take().is_some()
    }
}

/// A memory was just found to be too old.
#[derive(Debug)]
pub(super) struct Forgotten;
