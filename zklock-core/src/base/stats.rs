//! The counters of a client, for its operators.

use crate::base::attempts::Attempts;
use crate::base::error::LossReason;
use crate::base::histogram::{Histogram, Recorder};
use crate::base::lock_figures::LockFigures;
use crate::base::lock_stats::LockStats;
use crate::base::outcome::AcquireOutcome;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::base::tally::{Tally, count, read};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The most names for figures in a client. Each costs a Prometheus server 69 time series.
const NAMES: usize = 100;
/// The name under which locks are counted that come too late for one of their own.
const OTHER: &str = "other";

/// The counters of a client and its clones since the client was made.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock_core::Client) {
/// use zklock_core::{AcquireOutcome, LossReason};
///
/// let stats = client.stats();
/// println!("{} grants, {} nodes still to be deleted", stats.grants, stats.owed);
/// println!("{} acquires timed out", stats.acquires(AcquireOutcome::TimedOut));
/// println!("{} holds lost to an operator", stats.losses_by(LossReason::NodeDeleted));
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Sessions opened.
    pub sessions: u64,
    /// Connections that replaced a broken one within the same session.
    pub reconnects: u64,
    /// Locks granted, including grants whose caller had just given up. A hold that a reentrant owner acquires inside its
    /// own hold shares the grant, and is not counted.
    pub grants: u64,
    /// Holds lost.
    pub losses: u64,
    /// Attempts whose caller has its answer, but whose node may still exist. The client is deleting
    /// these nodes.
    pub owed: u64,
    /// Seconds from the start of a call that acquires a lock to its hold. Only calls that got one are counted.
    pub acquire_wait: Histogram,
    /// Seconds from a grant to its release or loss. It is counted when the hold is released or dropped, even if it had been
    /// lost.
    pub hold_time: Histogram,
    /// Seconds from a heartbeat to its answer. Heartbeats are sent only while something is held.
    pub heartbeat_lag: Histogram,
    /// How many contenders were ahead of a node in its queue when it had just been created. Zero means that the lock was free.
    /// For a set of locks, it is the longest of their queues; for a semaphore, the contenders that are about to take permits.
    /// Callers of this client that wait without a node are not counted, and an exclusive lock has no queue.
    pub queue_length: Histogram,
    /// The figures of locks that have a [name](crate::LockSpec::figures) for them, in the order of the names.
    pub locks: Vec<LockStats>,
    acquires: [u64; AcquireOutcome::ALL.len()],
    losses_by: [u64; LossReason::ALL.len()],
}

impl Stats {
    /// Returns how many calls that acquire a lock ended in this way. A call for one of several locks counts once. The inner
    /// calls of a reentrant owner count too.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock_core::{AcquireOutcome, Stats};
    ///
    /// assert_eq!(Stats::default().acquires(AcquireOutcome::Granted), 0);
    /// ```
    pub fn acquires(&self, outcome: AcquireOutcome) -> u64 {
        self.acquires[outcome as usize]
    }

    /// Returns how many holds were lost for this reason.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock_core::{LossReason, Stats};
    ///
    /// assert_eq!(Stats::default().losses_by(LossReason::SessionExpired), 0);
    /// ```
    pub fn losses_by(&self, reason: LossReason) -> u64 {
        self.losses_by[reason as usize]
    }

    /// Returns the figures of the locks with this [name](crate::LockSpec::figures); `None` if the client has made no lock
    /// with it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::Client) {
    /// if let Some(age) = client.stats().lock("report").and_then(|lock| lock.oldest_hold) {
    ///     println!("somebody has been writing the report for {age:?}");
    /// }
    /// # }
    /// ```
    pub fn lock(&self, name: &str) -> Option<&LockStats> {
        self.locks.iter().find(|lock| lock.name == name)
    }
}

/// The counters of a client that has done nothing.
impl Default for Stats {
    fn default() -> Self {
        Counters::default().read()
    }
}

/// The counters. No decision depends on them, except on whether a session was ever open.
pub(crate) struct Counters {
    sessions: AtomicU64,
    reconnects: AtomicU64,
    grants: AtomicU64,
    /// What all locks have done together.
    tally: Tally,
    heartbeat_lag: Recorder,
    queue_length: Recorder,
    /// What the locks of each name have done. Names stay, because counters that go back to zero mean a new process.
    locks: Mutex<BTreeMap<Arc<str>, Arc<LockFigures>>>,
    pub(crate) attempts: Attempts,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            sessions: AtomicU64::default(),
            reconnects: AtomicU64::default(),
            grants: AtomicU64::default(),
            tally: Tally::default(),
            heartbeat_lag: Recorder::of_times(),
            queue_length: Recorder::of_contenders(),
            locks: Mutex::default(),
            attempts: Attempts::default(),
        }
    }
}

impl Counters {
    /// Returns the figures of the locks with this name, or those of all that come too late for a name of their own.
    pub(crate) fn of_locks(&self, name: &str) -> Arc<LockFigures> {
        let mut locks = lock_ignoring_poison(&self.locks);
        let has_room = locks.len() < NAMES || locks.contains_key(name);
        let is_new = !has_room && !locks.contains_key(OTHER);
        let figures = locks.entry(if has_room { name } else { OTHER }.into()).or_default().clone();
        drop(locks);
        if is_new {
            tracing::warn!(
                name,
                "the client has {NAMES} names for figures: all further locks are counted as {OTHER}"
            );
        }
        figures
    }

    pub(crate) fn count_session(&self) {
        count(&self.sessions);
    }

    /// Returns how many sessions have been opened.
    pub(crate) fn sessions(&self) -> u64 {
        read(&self.sessions)
    }

    pub(crate) fn count_reconnect(&self) {
        count(&self.reconnects);
    }

    pub(crate) fn count_grant(&self) {
        count(&self.grants);
    }

    pub(crate) fn count_loss(&self, reason: LossReason) {
        self.tally.count_loss(reason);
    }

    pub(crate) fn count_hold(&self, held: Duration) {
        self.tally.count_hold(held);
    }

    pub(crate) fn count_heartbeat(&self, lag: Duration) {
        self.heartbeat_lag.add_time(lag);
    }

    /// Counts a new node, with this many contenders before it.
    pub(crate) fn count_entry(&self, ahead: usize) {
        self.queue_length.add(ahead as u64);
    }

    pub(crate) fn count_acquire(&self, outcome: AcquireOutcome, waited: Duration) {
        self.tally.count_acquire(outcome, waited);
    }

    pub(crate) fn read(&self) -> Stats {
        let losses_by = self.tally.losses();
        // Copied, so that reading thousands of holds keeps no lock from being made.
        let locks = lock_ignoring_poison(&self.locks).clone();
        Stats {
            sessions: self.sessions(),
            reconnects: read(&self.reconnects),
            grants: read(&self.grants),
            losses: losses_by.iter().sum(),
            owed: self.attempts.owed(),
            acquire_wait: self.tally.acquire_wait.read(),
            hold_time: self.tally.hold_time.read(),
            heartbeat_lag: self.heartbeat_lag.read(),
            queue_length: self.queue_length.read(),
            locks: locks.iter().map(|(name, figures)| figures.read(name)).collect(),
            acquires: self.tally.acquires(),
            losses_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_comes_too_late_is_counted_as_other() {
        let counters = Counters::default();
        for number in 0..NAMES + 2 {
            counters.of_locks(&format!("name-{number:03}")).count_waiter();
        }
        counters.of_locks("name-000").count_waiter();
        let stats = counters.read();
        let waiting = |name| stats.lock(name).map(|lock| lock.waiting);
        assert_eq!(stats.locks.len(), NAMES + 1);
        assert_eq!([waiting("name-000"), waiting("name-099"), waiting(OTHER)], [Some(2), Some(1), Some(2)]);
        assert_eq!(waiting("name-100"), None);
    }
}
