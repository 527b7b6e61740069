//! What both faces of a hold share.

use crate::anchor::AnchoredCallbacks;
use crate::hold_callbacks::HoldCallbacks;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock, Weak};
use zklock_core::blocking::Hold;
use zklock_core::{HoldState, Owner};

/// A hold, and what Python has to know of it.
pub(crate) struct SharedHold {
    pub(crate) hold: Hold,
    pub(crate) owner: Owner,
    /// The thread in which it was granted, as long as that is there: that of the loop, if the owner is a task.
    pub(crate) thread: Weak<()>,
    pub(crate) is_reentrant: bool,
    /// None as long as nobody has given any: most holds end without.
    callbacks: OnceLock<Arc<HoldCallbacks>>,
    of_client: Arc<AnchoredCallbacks>,
    of_value: OnceLock<Arc<AnchoredCallbacks>>,
}

impl SharedHold {
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

    /// From now on the objects that have it keep it, and not the client.
    pub(crate) fn become_value(&self) {
        self.of_value.get_or_init(|| AnchoredCallbacks::of_hold(&self.of_client));
    }

    /// What the collector sees of its callbacks: they go with the objects that keep it, or with the client.
    pub(crate) fn anchored(&self) -> &Arc<AnchoredCallbacks> {
        self.of_value.get().unwrap_or(&self.of_client)
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.hold.state(), HoldState::Held | HoldState::AtRisk)
    }

    /// Whether it was released, be it that it was lost before.
    pub(crate) fn is_released(&self) -> bool {
        self.hold.is_released()
    }

    /// What is called when it is lost or wanted.
    pub(crate) fn callbacks(&self) -> &Arc<HoldCallbacks> {
        self.callbacks.get_or_init(HoldCallbacks::new)
    }

    /// After its release no callback of it is called any more.
    pub(crate) fn forget_callbacks(&self, py: Python<'_>) {
        if let Some(callbacks) = self.callbacks.get().filter(|_| self.is_released()) {
            callbacks.forget(py);
        }
    }
}

/// Stands for this thread as long as it is there.
pub(crate) fn this_thread() -> Arc<()> {
    thread_local! {
        static THREAD: Arc<()> = Arc::new(());
    }
    // At the very end of a thread nobody is there any more.
    THREAD.try_with(Arc::clone).unwrap_or_default()
}
