//! Whether a hold was released: what it and those who follow it look at.

use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::session::session::HoldingState;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// Whether a hold was released. Not a channel of `watch`: with that, a fifth of an acquire and release that send nothing was spent on
/// telling nobody.
#[derive(Default, Debug)]
pub(super) struct Released {
    is_set: AtomicBool,
    is_before: AtomicBool,
    told: Notify,
}

impl Released {
    /// Notes that it is released; `false` if it was before.
    pub(super) fn set(&self) -> bool {
        let is_first = !self.is_set.swap(true, Ordering::AcqRel);
        if is_first {
            self.told.notify_waiters();
        }
        is_first
    }

    /// Notes that other holds of the owner go on, or that its node was passed on. What happens to that node later is not this
    /// hold's concern.
    pub(super) fn set_before(&self) {
        self.is_before.store(true, Ordering::Release);
    }

    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    pub(super) fn is_before(&self) -> bool {
        self.is_before.load(Ordering::Acquire)
    }

    /// Waits until it is released.
    pub(super) async fn come(&self) {
        let mut told = pin!(self.told.notified());
        told.as_mut().enable();
        if !self.is_set() {
            told.await;
        }
    }
}

/// What is looked at by those who follow a hold, and do not keep it.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) state: watch::Receiver<HoldingState>,
    pub(super) released: Arc<Released>,
}
