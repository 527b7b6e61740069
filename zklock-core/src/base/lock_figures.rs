//! What the locks of one name do.
//!
//! A call adds to a few atomics. A grant is noted under a short mutex, because the age of the oldest one needs all of them. That
//! a grant was lost is found when somebody reads the figures, or when its last hold is dropped: so a loss that hits thousands of
//! holds at once costs nothing here.

use crate::base::clock;
use crate::base::error::LossReason;
use crate::base::histogram::Histogram;
use crate::base::outcome::AcquireOutcome;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::base::tally::{ByOutcome, ByReason, Counter, Tally, figures};
use crate::machine::Moment;
use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

figures! {
    /// The figures of the locks with one [name](crate::LockSpec::metrics_name) in a client. They are part of
    /// [`Stats`](crate::further::Stats).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock::Client) {
    /// for lock in client.stats().locks {
    ///     println!("{}: {} held, {} waiting", lock.name, lock.held, lock.waiting);
    /// }
    /// # }
    /// ```
    LockStats {
        /// The name.
        pub name: String,
        /// Grants that are held now.
        /// A reentrant owner has one, however often it acquires, and a lost hold is not held.
        pub held: u64 = "lock_held",
        /// Calls that wait for the lock now.
        /// A call that gets a hold without a request never waits.
        pub waiting: u64 = "lock_waiting",
        /// Age of the oldest grant that is held now.
        /// `None` if nothing is held.
        pub oldest_hold: Option<Duration> = "lock_oldest_hold_seconds",
        /// Calls that acquire a lock, by how they ended.
        acquires: ByOutcome = "lock_acquires_total",
        /// Holds lost, by the reason.
        losses_by: ByReason = "lock_losses_total",
        /// From a call that acquires a lock to its hold.
        /// See [`Stats::acquire_wait`](crate::further::Stats::acquire_wait).
        pub acquire_wait: Histogram = "lock_wait_seconds",
        /// From a grant to its release or loss.
        /// See [`Stats::hold_time`](crate::further::Stats::hold_time).
        pub hold_time: Histogram = "lock_hold_seconds",
    }
}

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
    pub(crate) tally: Tally,
    pub(crate) waiting: Counter,
    /// The grants that are held, the oldest first.
    held: Mutex<BTreeMap<Key, Weak<dyn Losable>>>,
}

impl LockFigures {
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
            waiting: self.waiting.read(),
            oldest_hold: oldest.map(|since| clock::now().since(since)),
            acquire_wait: self.tally.acquire_wait.times(),
            hold_time: self.tally.hold_time.times(),
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
