//! The place of a client's current session.

use crate::base::error::Error;
use crate::base::sync::{Mutex, lock_ignoring_poison, replace_if};
use crate::session::session::Session;
use crate::threads::io::Io;
#[cfg(test)]
use crate::threads::thread::host_runtime;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// The place for one session after the other.
pub(crate) struct Slot {
    /// Where the client's tasks run.
    pub(crate) io: Io,
    pub(super) state: watch::Sender<SlotState>,
    /// Why some servers seem not to be ZooKeeper.
    not_zookeeper: Mutex<BTreeMap<String, String>>,
    /// The callers that wait for the first session.
    waiting: Mutex<Vec<oneshot::Sender<Result<(), Error>>>>,
}

#[derive(Clone)]
pub(crate) enum SlotState {
    /// Nobody has needed a session yet; or the first one could not be opened, and nobody tries any more.
    Unopened,
    /// The first session is being opened. Why the last try failed, if there was one.
    First(Option<Arc<str>>),
    Open(Arc<Session>),
    /// The next session is being opened.
    Next(Option<Arc<str>>),
    Closed,
}

impl Slot {
    pub(crate) fn new(state: SlotState, io: Io) -> Self {
        Self {
            io,
            state: watch::Sender::new(state),
            not_zookeeper: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// Makes one for a test.
    #[cfg(test)]
    pub(crate) fn of(state: SlotState) -> Self {
        Self::new(state, host_runtime().map_or_else(Io::start, Io::of).unwrap())
    }

    /// Notes why this server seems not to be ZooKeeper.
    pub(super) fn is_not_zookeeper(&self, server: String, why: String) {
        lock_ignoring_poison(&self.not_zookeeper).insert(server, why);
    }

    /// Forgets that, since there is a session: the problem may have been a passing one.
    pub(super) fn is_zookeeper(&self) {
        lock_ignoring_poison(&self.not_zookeeper).clear();
    }

    /// Returns why this server seems not to be ZooKeeper, if so.
    pub(crate) fn not_zookeeper(&self, server: &str) -> Option<String> {
        lock_ignoring_poison(&self.not_zookeeper).get(server).cloned()
    }

    pub(crate) fn state(&self) -> SlotState {
        self.state.borrow().clone()
    }

    /// Returns the current state, and those that follow.
    pub(crate) fn watch(&self) -> watch::Receiver<SlotState> {
        self.state.subscribe()
    }

    #[cfg(test)]
    pub(crate) fn set(&self, state: SlotState) {
        self.state.send_replace(state);
    }

    /// Returns what will be answered once the first session is open, or cannot be; and whether the caller must start the keeper
    /// that opens it. Those who wait are answered in the order in which they came.
    pub(super) fn first(
        &self,
        running: &watch::Sender<bool>,
    ) -> (oneshot::Receiver<Result<(), Error>>, bool) {
        let (sender, receiver) = oneshot::channel();
        lock_ignoring_poison(&self.waiting).push(sender);
        let begins = replace_if(&self.state, SlotState::First(None), |state| {
            let begins = matches!(state, SlotState::Unopened);
            if begins {
                running.send_replace(true);
            }
            begins
        });
        match self.state() {
            SlotState::Unopened | SlotState::First(_) => {}
            // Its keeper may not have seen us.
            SlotState::Open(_) | SlotState::Next(_) => self.answer(&Ok(())),
            SlotState::Closed => self.answer(&Err(Error::closed())),
        }
        (receiver, begins)
    }

    /// Answers all who wait for the first session.
    pub(super) fn answer(&self, outcome: &Result<(), Error>) {
        let waiting = std::mem::take(&mut *lock_ignoring_poison(&self.waiting));
        for waits in waiting {
            // One that waits no more needs no answer.
            let _ = waits.send(outcome.clone());
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.current().is_some_and(|session| session.is_connected())
    }

    /// Returns the session that is open now.
    pub(crate) fn current(&self) -> Option<Arc<Session>> {
        match &*self.state.borrow() {
            SlotState::Open(session) if !session.is_over() => Some(session.clone()),
            _ => None,
        }
    }

    /// Returns the session, as soon as there is one.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Error> {
        let mut state = self.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                SlotState::Open(session) if !session.is_over() => return Ok(session.clone()),
                SlotState::Closed => return Err(Error::closed()),
                _ => {}
            }
            if state.changed().await.is_err() {
                return Err(Error::closed());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::{self, virtual_clock};
    use crate::base::error::LossReason;
    use crate::session::fake::FakeEnsemble;
    use std::time::Duration;

    #[test]
    fn whoever_wants_a_session_waits_until_there_is_one_that_is_not_over() {
        virtual_clock::run(async {
            let (ensemble, start) = (FakeEnsemble::new(), clock::now());
            let old = ensemble.session();
            old.end(LossReason::SessionExpired);
            let slot = Arc::new(Slot::of(SlotState::Open(old)));
            let other = slot.clone();
            let next = ensemble.session();
            let opened = next.clone();
            tokio::spawn(async move {
                clock::sleep(Duration::from_secs(2)).await;
                other.state.send_replace(SlotState::Next(None));
                clock::sleep(Duration::from_secs(2)).await;
                other.state.send_replace(SlotState::Open(opened));
            });
            assert!(Arc::ptr_eq(&slot.session().await.unwrap(), &next));
            assert_eq!(clock::now().since(start), Duration::from_secs(4));
        });
    }
}
