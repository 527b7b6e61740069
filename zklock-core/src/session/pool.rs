//! The sessions of a client. It has one at a time, and opens the next one when that is over.

use crate::base::clock;
use crate::base::platform;
use crate::base::stats::Counters;
use crate::connect::options::ClientOptions;
use crate::session::attachment::GOOD_BYE;
use crate::session::session_keeper::SessionKeeper;
use crate::session::slot::{Slot, SlotState};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;

pub(crate) struct Pool {
    options: Arc<ClientOptions>,
    /// The name that others see. It stays as it was when the client connected, or equal locks would have unequal claims.
    identity: String,
    runtime: Handle,
    slot: Arc<Slot>,
    closing: Arc<watch::Sender<bool>>,
    /// Whether the keeper is still running.
    running: watch::Receiver<bool>,
    /// Whether there is a guardian.
    has_guardian: Arc<watch::Sender<bool>>,
}

impl Pool {
    pub(crate) fn new(options: ClientOptions, runtime: Handle, counters: Arc<Counters>) -> Self {
        let options = Arc::new(options);
        let identity = options.identity.clone().unwrap_or_else(platform::identity);
        let slot = Arc::new(Slot::new(SlotState::Opening(None)));
        let closing = Arc::new(watch::Sender::new(false));
        let (keeps, running) = watch::channel(true);
        let keeper = SessionKeeper {
            slot: slot.clone(),
            options: options.clone(),
            closing: closing.clone(),
            running: keeps,
            counters,
        };
        runtime.spawn(keeper.run());
        Self { options, identity, runtime, slot, closing, running, has_guardian: Arc::default() }
    }

    /// Returns a pool whose sessions a test opens.
    #[cfg(test)]
    pub(crate) fn of(slot: Arc<Slot>) -> Self {
        let (_, running) = watch::channel(true);
        let options = Arc::new(ClientOptions::new("none:1").unwrap());
        let (runtime, closing) = (Handle::current(), Arc::new(watch::Sender::new(false)));
        Self {
            options,
            identity: String::new(),
            runtime,
            slot,
            closing,
            running,
            has_guardian: Arc::default(),
        }
    }

    pub(crate) fn options(&self) -> &ClientOptions {
        &self.options
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closing.borrow()
    }

    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Begins to close the session.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until it is closed.
    pub(crate) async fn closed(&self) {
        // If this fails, the keeper is gone, and the session with it.
        let _ = self.running.clone().wait_for(|running| !running).await;
        // Its guardian is dismissed then, and ends in a moment.
        let mut has_guardian = self.has_guardian.subscribe();
        let _ = clock::timeout(GOOD_BYE, has_guardian.wait_for(|has_guardian| !has_guardian)).await;
    }

    pub(crate) fn has_guardian(&self) -> &Arc<watch::Sender<bool>> {
        &self.has_guardian
    }
}
