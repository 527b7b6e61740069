//! The counters of a client, for its operators.

use crate::base::attempts::Attempts;
use crate::base::error::LossReason;
use crate::base::histogram::{Histogram, Recorder};
use crate::base::lock_figures::{LockFigures, LockStats};
use crate::base::outcome::AcquireOutcome;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::base::tally::{ByOutcome, ByReason, Counter, Tally, figures};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most names for figures in a client. Each costs a Prometheus server 69 time series.
const NAMES: usize = 100;
/// The name under which locks are counted that come too late for one of their own.
const OTHER: &str = "other";

figures! {
    /// The counters of a client and its clones since the client was made.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) {
    /// use zklock::LossReason;
    /// use zklock::further::AcquireOutcome;
    ///
    /// let stats = client.stats();
    /// println!("{} grants, {} nodes still to be deleted", stats.grants, stats.owed);
    /// println!("{} acquires timed out", stats.acquires(AcquireOutcome::TimedOut));
    /// println!("{} holds lost to an operator", stats.losses_by(LossReason::NodeDeleted));
    /// # }
    /// ```
    Stats {
        /// Sessions opened.
        pub sessions: u64 = "sessions_total",
        /// Connections that replaced a broken one within the same session.
        pub reconnects: u64 = "reconnects_total",
        /// Calls that acquire a lock, by how they ended.
        acquires: ByOutcome = "acquires_total",
        /// Locks granted, including grants whose caller had just given up.
        /// A hold that a reentrant owner acquires inside its own hold shares the grant, and is not counted.
        pub grants: u64 = "grants_total",
        /// Holds lost.
        pub losses: u64,
        /// Holds lost, by the reason.
        losses_by: ByReason = "losses_total",
        /// Attempts whose caller has its answer, but whose node may still exist.
        /// The client is deleting these nodes.
        pub owed: u64 = "cleanups_owed",
        /// Seconds from the start of a call that acquires a lock to its hold.
        /// Only calls that got one are counted.
        pub acquire_wait: Histogram = "acquire_wait_seconds",
        /// Seconds from a grant to its release or loss.
        /// It is counted when the hold is released or dropped, even if it had been lost.
        pub hold_time: Histogram = "hold_seconds",
        /// Seconds from a heartbeat to its answer.
        /// Heartbeats are sent only while something is held.
        pub heartbeat_lag: Histogram = "heartbeat_lag_seconds",
        /// How many contenders were ahead of a node in its queue when it had just been created.
        /// Zero means that the lock was free. For a set of locks, it is the longest of their queues; for a semaphore, the
        /// contenders that are about to take permits. Callers of this client that wait without a node are not counted, and an
        /// single-node lock has no queue.
        pub queue_length: Histogram = "queue_length",
        /// The figures of locks that have a [name](crate::LockSpec::metrics_name) for them, in the order of the names.
        pub locks: Vec<LockStats>,
    }
}

impl Stats {
    /// Returns the figures of the locks with this [name](crate::LockSpec::metrics_name); `None` if the client has made no lock
    /// with it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock::Client) {
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
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) sessions: Counter,
    pub(crate) reconnects: Counter,
    pub(crate) grants: Counter,
    /// What all locks have done together.
    pub(crate) tally: Tally,
    pub(crate) heartbeat_lag: Recorder,
    /// How many contenders are before a new node.
    pub(crate) queue_length: Recorder,
    /// What the locks of each name have done. Names stay, because counters that go back to zero mean a new process.
    locks: Mutex<BTreeMap<Arc<str>, Arc<LockFigures>>>,
    pub(crate) attempts: Attempts,
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

    pub(crate) fn read(&self) -> Stats {
        let losses_by = self.tally.losses();
        // Copied, so that reading thousands of holds keeps no lock from being made.
        let locks = lock_ignoring_poison(&self.locks).clone();
        Stats {
            sessions: self.sessions.read(),
            reconnects: self.reconnects.read(),
            grants: self.grants.read(),
            losses: losses_by.0.iter().sum(),
            owed: self.attempts.owed(),
            acquire_wait: self.tally.acquire_wait.times(),
            hold_time: self.tally.hold_time.times(),
            heartbeat_lag: self.heartbeat_lag.times(),
            queue_length: self.queue_length.contenders(),
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
            counters.of_locks(&format!("name-{number:03}")).waiting.add();
        }
        counters.of_locks("name-000").waiting.add();
        let stats = counters.read();
        let waiting = |name| stats.lock(name).map(|lock| lock.waiting);
        assert_eq!(stats.locks.len(), NAMES + 1);
        assert_eq!([waiting("name-000"), waiting("name-099"), waiting(OTHER)], [Some(2), Some(1), Some(2)]);
        assert_eq!(waiting("name-100"), None);
    }
}
