//! What the locks of one name do.
//!
//! A call adds to a few atomics. A grant is noted under a short mutex, because the age of the oldest one needs all of them. That
//! a grant was lost is found when somebody reads the figures, or when its last hold is dropped: so a loss that hits thousands of
//! holds at once costs nothing here.

use crate::base::clock;
use crate::base::error::LossReason;
use crate::base::lock_stats::LockStats;
use crate::base::outcome::AcquireOutcome;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::base::tally::{Tally, count, read};
use crate::machine::Moment;
use std::collections::BTreeMap;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A grant that is counted.
pub(crate) trait Losable: Send + Sync {
    /// Returns why it was lost; `None` if it was not.
    fn loss(&self) -> Option<LossReason>;
}

/// When a grant was given, and its address. No other one has both while it is noted.
type Key = (Moment, usize);

/// The figures of the locks of one name.
#[derive(Default)]
pub(crate) struct LockFigures {
    tally: Tally,
    waiting: AtomicU64,
    /// The grants that are held, the oldest first.
    held: Mutex<BTreeMap<Key, Weak<dyn Losable>>>,
}

impl LockFigures {
    pub(crate) fn count_waiter(&self) {
        count(&self.waiting);
    }

    pub(crate) fn forget_waiter(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn count_acquire(&self, outcome: AcquireOutcome, waited: Duration) {
        self.tally.count_acquire(outcome, waited);
    }

    /// Notes a grant, until [`count_hold`](Self::count_hold).
    pub(crate) fn count_grant(&self, since: Moment, grant: Weak<dyn Losable>) {
        lock_ignoring_poison(&self.held).insert((since, grant.as_ptr().addr()), grant);
    }

    /// Counts a grant whose last hold is gone.
    pub(crate) fn count_hold(&self, since: Moment, grant: &dyn Losable, held: Duration) {
        self.tally.count_hold(held);
        let was_held = lock_ignoring_poison(&self.held).remove(&(since, std::ptr::from_ref(grant).addr()));
        // Otherwise its loss was counted before.
        if let Some(reason) = was_held.and_then(|_| grant.loss()) {
            self.tally.count_loss(reason);
        }
    }

    pub(super) fn read(&self, name: &str) -> LockStats {
        let mut grants = lock_ignoring_poison(&self.held);
        grants.retain(|_, grant| {
            let loss = grant.upgrade().and_then(|grant| grant.loss());
            loss.into_iter().for_each(|reason| self.tally.count_loss(reason));
            loss.is_none()
        });
        let (held, oldest) = (grants.len() as u64, grants.keys().next().map(|(since, _)| *since));
        drop(grants);
        LockStats {
            name: name.to_owned(),
            held,
            waiting: read(&self.waiting),
            oldest_hold: oldest.map(|since| clock::now().since(since)),
            acquire_wait: self.tally.acquire_wait.read(),
            hold_time: self.tally.hold_time.read(),
            acquires: self.tally.acquires(),
            losses_by: self.tally.losses(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, OnceLock};

    /// A grant that is lost when this is set.
    #[derive(Default)]
    struct Grant(OnceLock<LossReason>);

    impl Losable for Grant {
        fn loss(&self) -> Option<LossReason> {
            self.0.get().copied()
        }
    }

    fn noted(figures: &LockFigures, since: Moment) -> Arc<Grant> {
        let grant = Arc::new(Grant::default());
        let counted: Weak<Grant> = Arc::downgrade(&grant);
        figures.count_grant(since, counted);
        grant
    }

    #[test]
    fn the_oldest_hold_is_the_one_that_has_been_held_for_the_longest() {
        let (figures, now) = (LockFigures::default(), clock::now());
        let (minute, second) = (Duration::from_secs(60), Duration::from_secs(1));
        let before = |ago: Duration| Moment::at(now.since(Moment::default()).saturating_sub(ago));
        let grants = [second, minute, second].map(|ago| noted(&figures, before(ago)));
        let read = figures.read("report");
        assert_eq!(read.held, 3, "those of one moment are two");
        assert!(read.oldest_hold >= Some(minute), "{read:?}");
        figures.count_hold(before(minute), &*grants[1], minute);
        let read = figures.read("report");
        assert!(read.held == 2 && read.oldest_hold >= Some(second), "{read:?}");
        assert!(read.oldest_hold < Some(minute) && read.hold_time.count() == 1, "{read:?}");
    }

    #[test]
    fn a_loss_counts_once_whether_it_is_read_or_the_hold_dropped_first() {
        let (figures, now) = (LockFigures::default(), clock::now());
        let losses = || {
            let read = figures.read("report");
            (read.held, read.losses_by(LossReason::NodeDeleted), read.hold_time.count())
        };
        let grants = [(); 2].map(|()| noted(&figures, now));
        let lose = |grant: &Grant| grant.0.set(LossReason::NodeDeleted).unwrap();
        lose(&grants[0]);
        assert_eq!(losses(), (1, 1, 0));
        figures.count_hold(now, &*grants[0], Duration::ZERO);
        assert_eq!(losses(), (1, 1, 1));
        lose(&grants[1]);
        figures.count_hold(now, &*grants[1], Duration::ZERO);
        assert_eq!(losses(), (0, 2, 2));
    }
}
