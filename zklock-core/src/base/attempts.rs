//! What the attempts of a client have left to do.

use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of a client's attempts that still owe something, and whether its holds are handed over.
#[derive(Default)]
pub(crate) struct Attempts {
    pub(super) owed: AtomicU64,
    /// Whether an owner has released what another acquired. Then an owner that acquires again may not be waiting for
    /// itself.
    handed_over: AtomicBool,
}

impl Attempts {
    /// Returns the number of attempts whose caller has its answer, but whose node may still exist.
    pub(crate) fn owed(&self) -> u64 {
        self.owed.load(Ordering::Acquire)
    }

    /// Notes that an owner has released what another acquired.
    pub(crate) fn set_handed_over(&self) {
        self.handed_over.store(true, Ordering::Relaxed);
    }

    /// Whether an owner has released what another acquired.
    pub(crate) fn hands_over(&self) -> bool {
        self.handed_over.load(Ordering::Relaxed)
    }

    /// Logs that an owner waits for something that it holds itself, unless another may well release it.
    pub(crate) fn warn_of_own(&self, path: &str) {
        if !self.hands_over() {
            tracing::warn!(
                path,
                "this thread or task holds the lock and waits for it again: unless another thread or task releases \
                 that hold, it waits for itself; release it first"
            );
        }
    }
}
