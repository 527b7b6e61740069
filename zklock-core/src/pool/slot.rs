//! Where the sessions of a client are, one after the other.

use crate::error::{Error, ErrorKind};
use crate::session::Session;
use crate::sync::lock_ignoring_poison;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// A place for one session after the other.
pub(crate) struct Slot {
    pub(super) state: watch::Sender<SlotState>,
    /// What was found out about servers that are no ZooKeeper.
    not_zookeeper: Mutex<BTreeMap<String, String>>,
}

#[derive(Clone)]
pub(crate) enum SlotState {
    /// Why the last try failed, if there was one.
    Opening(Option<Arc<str>>),
    Open(Arc<Session>),
    Closed,
    /// The chroot does not exist.
    NoRoot,
    /// The servers let the client not in, or it has nothing to show them: why.
    Refused(Arc<str>),
}

impl Slot {
    pub(crate) fn new(state: SlotState) -> Self {
        Self { state: watch::Sender::new(state), not_zookeeper: Mutex::default() }
    }

    /// This server is taken for something else than ZooKeeper: why.
    pub(super) fn is_not_zookeeper(&self, server: String, why: String) {
        lock_ignoring_poison(&self.not_zookeeper).insert(server, why);
    }

    /// There is a session: what was found out before may have been of a moment.
    pub(super) fn is_zookeeper(&self) {
        lock_ignoring_poison(&self.not_zookeeper).clear();
    }

    /// Why this server is taken for something else than ZooKeeper, if it is.
    pub(crate) fn not_zookeeper(&self, server: &str) -> Option<String> {
        lock_ignoring_poison(&self.not_zookeeper).get(server).cloned()
    }

    pub(crate) fn state(&self) -> SlotState {
        self.state.borrow().clone()
    }

    /// The states that follow, and the present one.
    pub(crate) fn watch(&self) -> watch::Receiver<SlotState> {
        self.state.subscribe()
    }

    #[cfg(test)]
    pub(crate) fn set(&self, state: SlotState) {
        self.state.send_replace(state);
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.current().is_some_and(|session| session.is_connected())
    }

    /// The session that is open now.
    pub(crate) fn current(&self) -> Option<Arc<Session>> {
        match &*self.state.borrow() {
            SlotState::Open(session) if !session.is_over() => Some(session.clone()),
            _ => None,
        }
    }

    /// The session, as soon as there is one.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Error> {
        let mut state = self.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                SlotState::Open(session) if !session.is_over() => return Ok(session.clone()),
                SlotState::Closed => return Err(Error::closed()),
                SlotState::NoRoot => return Err(Error::new(ErrorKind::Refused, "the chroot does not exist")),
                SlotState::Refused(why) => return Err(Error::new(ErrorKind::Refused, &**why)),
                SlotState::Open(_) | SlotState::Opening(_) => {}
            }
            if state.changed().await.is_err() {
                return Err(Error::closed());
            }
        }
    }
}
