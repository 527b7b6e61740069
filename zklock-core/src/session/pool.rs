//! The sessions of a client. It opens the first one when it is needed, has one at a time, and opens the next one when that is
//! over.

use crate::base::clock;
use crate::base::error::{Error, ErrorKind};
use crate::base::platform;
use crate::base::stats::Counters;
use crate::base::sync::replace_if;
use crate::base::wait::Wait;
use crate::connect::options::ClientOptions;
use crate::session::attachment::GOOD_BYE;
use crate::session::session_keeper::{SessionKeeper, Shared};
use crate::session::slot::{Slot, SlotState};
use crate::threads::io::Io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// How much longer one who waits does so than the keeper, which knows what is wrong. The keeper's thread may be starved.
const LATE: Duration = Duration::from_millis(250);

pub(crate) struct Pool {
    shared: Shared,
    /// The name that others see. It stays as it was when the client was made, or equal locks would have unequal claims.
    identity: String,
    /// Whether there is a guardian.
    pub(super) has_guardian: Arc<watch::Sender<bool>>,
}

impl Pool {
    pub(crate) fn new(options: ClientOptions, io: Io, counters: Arc<Counters>) -> Self {
        let identity = options.identity.clone().unwrap_or_else(platform::identity);
        let shared = Shared::new(options, Arc::new(Slot::new(SlotState::Unopened, io)), counters);
        Self { shared, identity, has_guardian: Arc::default() }
    }

    /// Returns whether there has been a session.
    pub(crate) fn has_opened(&self) -> bool {
        self.shared.counters.sessions.read() > 0
    }

    /// Returns when there has been a session. The first to call this begins to open it; that goes on even if nobody waits, until
    /// it has succeeded or failed, or the client is closed. A failure is reported to all who wait, and the next call tries again.
    pub(crate) async fn opened(&self, wait: Wait) -> Result<(), Error> {
        if self.has_opened() {
            return Ok(());
        }
        let (first, begins) = self.shared.slot.first(&self.shared.running);
        if begins {
            self.open();
        }
        let patience = self.shared.options.connect_timeout;
        // The keeper itself ends then, but its runtime may not let it run.
        let (late, named) = (Wait::at_most(patience.checked_add(LATE)), Wait::at_most(Some(patience)));
        tokio::select! {
            biased;
            opened = first => opened.unwrap_or_else(|_| Err(Error::closed())),
            _ = wait.over() => Err(self.unopened(wait)),
            _ = late.over() => Err(self.unopened(named)),
        }
    }

    fn open(&self) {
        self.runtime().spawn(SessionKeeper { shared: self.shared.clone(), failure: None }.run());
    }

    /// Returns the error for a session that was not opened in time, as far as the one who waits can know the reason. While a
    /// shared object is being loaded, the loader lets no new thread begin.
    fn unopened(&self, wait: Wait) -> Error {
        let advice = if self.shared.has_begun.load(Ordering::Relaxed) {
            "check hosts and network"
        } else {
            "the thread for it waits until a shared object is loaded: connect after that, not in its constructors"
        };
        let hosts = self.shared.options.hosts.connect_string();
        let message = format!("no session with {hosts} was opened {wait}: {advice}");
        Error::new(ErrorKind::Unreachable, message)
    }

    /// Returns a pool whose sessions a test opens.
    #[cfg(test)]
    pub(crate) fn of(slot: Arc<Slot>) -> Self {
        let shared = Shared::new(ClientOptions::new("none:1").checked().unwrap(), slot, Arc::default());
        Self { shared, identity: String::new(), has_guardian: Arc::default() }
    }

    pub(crate) fn options(&self) -> &ClientOptions {
        &self.shared.options
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn runtime(&self) -> &Handle {
        self.shared.slot.io.runtime()
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.shared.closing.borrow()
    }

    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.shared.slot
    }

    /// Begins to close the session.
    pub(crate) fn close(&self) {
        self.shared.closing.send_replace(true);
        // Or nobody would.
        replace_if(&self.shared.slot.state, SlotState::Closed, |state| matches!(state, SlotState::Unopened));
    }

    /// Nobody has the client any more, so nobody needs to know that it is closed.
    pub(crate) fn abandon(&self) {
        self.shared.closing.send_replace(true);
    }

    /// Waits until it is closed.
    pub(crate) async fn closed(&self) {
        // It cannot fail, since we have a sender.
        let _ = self.shared.running.subscribe().wait_for(|running| !running).await;
        // Its guardian is dismissed then, and ends in a moment.
        let mut has_guardian = self.has_guardian.subscribe();
        let _ = clock::timeout(GOOD_BYE, has_guardian.wait_for(|has_guardian| !has_guardian)).await;
    }
}
