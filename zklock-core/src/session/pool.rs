//! The sessions of a client. It has one at a time, and opens the next one when that is over.

use crate::base::clock;
use crate::base::platform;
use crate::base::stats::Counters;
use crate::connect::options::ClientOptions;
use crate::session::session_keeper::SessionKeeper;
use crate::session::slot::{Slot, SlotState};
use crate::session::tie::GOOD_BYE;
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
    kept: watch::Receiver<bool>,
    /// Whether there is a guardian.
    guarded: Arc<watch::Sender<bool>>,
}

impl Pool {
    pub(crate) fn new(options: ClientOptions, runtime: Handle, counters: Arc<Counters>) -> Self {
        let options = Arc::new(options);
        let identity = options.identity.clone().unwrap_or_else(platform::identity);
        let slot = Arc::new(Slot::new(SlotState::Opening(None)));
        let closing = Arc::new(watch::Sender::new(false));
        let (keeps, kept) = watch::channel(true);
        let keeper = SessionKeeper {
            slot: slot.clone(),
            options: options.clone(),
            closing: closing.clone(),
            kept: keeps,
            counters,
        };
        runtime.spawn(keeper.run());
        Self { options, identity, runtime, slot, closing, kept, guarded: Arc::default() }
    }

    /// Returns a pool whose sessions a test opens.
    #[cfg(test)]
    pub(crate) fn of(slot: Arc<Slot>) -> Self {
        let (_, kept) = watch::channel(true);
        let options = Arc::new(ClientOptions::new("none:1").unwrap());
        let (runtime, closing) = (Handle::current(), Arc::new(watch::Sender::new(false)));
        Self { options, identity: String::new(), runtime, slot, closing, kept, guarded: Arc::default() }
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
        let _ = self.kept.clone().wait_for(|kept| !kept).await;
        // Its guardian is dismissed then, and ends in a moment.
        let mut guarded = self.guarded.subscribe();
        let _ = clock::timeout(GOOD_BYE, guarded.wait_for(|guarded| !guarded)).await;
    }

    pub(crate) fn guarded(&self) -> &Arc<watch::Sender<bool>> {
        &self.guarded
    }
}
