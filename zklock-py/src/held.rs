//! What all objects of one hold share.

use crate::calls::anchor::AnchoredCallbacks;
use crate::calls::hold_callbacks::HoldCallbacks;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock, Weak};
use zklock::Hold;
use zklock::HoldState;
use zklock::further::Owner;

/// A hold, and what Python needs to know about it.
pub(crate) struct Held {
    pub(crate) hold: Hold,
    pub(crate) owner: Owner,
    /// The thread in which it was granted, as long as that exists. If the owner is a task, it is the thread of its
    /// loop.
    pub(crate) thread: Weak<()>,
    pub(crate) is_reentrant: bool,
    /// `None` until a callback is added: most holds end without one.
    callbacks: OnceLock<Arc<HoldCallbacks>>,
    of_client: Arc<AnchoredCallbacks>,
    of_value: OnceLock<Arc<AnchoredCallbacks>>,
}

impl Held {
    pub(crate) fn new(
        hold: Hold,
        owner: Owner,
        is_reentrant: bool,
        of_client: &Arc<AnchoredCallbacks>,
    ) -> Arc<Self> {
        let thread = Arc::downgrade(&this_thread());
        let of_client = of_client.clone();
        let (callbacks, of_value) = (OnceLock::new(), OnceLock::new());
        Arc::new(Self { hold, owner, thread, is_reentrant, callbacks, of_client, of_value })
    }

    /// Lets the objects that refer to it keep it alive from now on, and not the client.
    pub(crate) fn become_value(&self) {
        self.of_value.get_or_init(|| AnchoredCallbacks::of_hold(&self.of_client));
    }

    /// Returns the collector's view of its callbacks: they go with the objects that keep it, or with the client.
    pub(crate) fn anchored(&self) -> &Arc<AnchoredCallbacks> {
        self.of_value.get().unwrap_or(&self.of_client)
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.hold.state(), HoldState::Held | HoldState::AtRisk)
    }

    /// Whether it was released, even if it was lost before.
    pub(crate) fn is_released(&self) -> bool {
        self.hold.is_released()
    }

    /// Returns the functions to call when it is lost or wanted.
    pub(crate) fn callbacks(&self) -> &Arc<HoldCallbacks> {
        self.callbacks.get_or_init(HoldCallbacks::new)
    }

    /// Drops its callbacks if it was released, so that none of them is called any more.
    pub(crate) fn forget_callbacks(&self, py: Python<'_>) {
        if let Some(callbacks) = self.callbacks.get().filter(|_| self.is_released()) {
            callbacks.forget(py);
        }
    }
}

/// Returns a marker that exists as long as this thread does.
pub(crate) fn this_thread() -> Arc<()> {
    thread_local! {
        static THREAD: Arc<()> = Arc::new(());
    }
    // When a thread is ending, its marker may already be gone.
    THREAD.try_with(Arc::clone).unwrap_or_default()
}
