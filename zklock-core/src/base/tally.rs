//! What is counted of acquires and holds, for a client and for each name.

use crate::base::error::LossReason;
use crate::base::histogram::Recorder;
use crate::base::outcome::AcquireOutcome;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How acquires ended, how long they and their holds took, and why holds were lost.
pub(super) struct Tally {
    acquires: [AtomicU64; AcquireOutcome::ALL.len()],
    losses: [AtomicU64; LossReason::ALL.len()],
    pub(super) acquire_wait: Recorder,
    pub(super) hold_time: Recorder,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            acquires: Default::default(),
            losses: Default::default(),
            acquire_wait: Recorder::of_times(),
            hold_time: Recorder::of_times(),
        }
    }
}

impl Tally {
    /// Counts an acquire that has ended, after this long.
    pub(super) fn count_acquire(&self, outcome: AcquireOutcome, waited: Duration) {
        count(&self.acquires[outcome as usize]);
        if outcome == AcquireOutcome::Granted {
            self.acquire_wait.add_time(waited);
        }
    }

    pub(super) fn count_hold(&self, held: Duration) {
        self.hold_time.add_time(held);
    }

    pub(super) fn count_loss(&self, reason: LossReason) {
        count(&self.losses[reason as usize]);
    }

    pub(super) fn acquires(&self) -> [u64; AcquireOutcome::ALL.len()] {
        self.acquires.each_ref().map(read)
    }

    pub(super) fn losses(&self) -> [u64; LossReason::ALL.len()] {
        self.losses.each_ref().map(read)
    }
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
