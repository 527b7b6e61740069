//! The counters of a client, for its operators.

use crate::base::attempts::Attempts;
use crate::base::error::LossReason;
use crate::base::histogram::{Histogram, Recorder};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use zklock_machine::listed;

listed! {
    /// How a call that acquires a lock ended. See [`Stats::acquires`].
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(zklock_core::AcquireOutcome::TimedOut.to_string(), "timed_out");
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[non_exhaustive]
    pub enum AcquireOutcome {
        /// It got a hold.
        Granted,
        /// Somebody else had the lock, and the call was not meant to wait.
        Busy,
        /// Others had the lock for as long as the call was willing to wait.
        TimedOut,
        /// It failed with any other error.
        Failed,
        /// The caller went away, or was interrupted.
        Cancelled,
    }
}

/// The name used in metrics.
impl fmt::Display for AcquireOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Granted => "granted",
            Self::Busy => "busy",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Sessions opened.
    pub sessions: u64,
    /// Connections that replaced a broken one within the same session.
    pub reconnects: u64,
    /// Locks granted, including grants whose caller had just gone away. A hold that a reentrant owner acquires inside its
    /// own hold shares the grant, and is not counted.
    pub grants: u64,
    /// Holds lost.
    pub losses: u64,
    /// Attempts whose caller has its answer, but whose node may still exist. It is being deleted.
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
    acquires: [AtomicU64; AcquireOutcome::ALL.len()],
    losses: [AtomicU64; LossReason::ALL.len()],
    acquire_wait: Recorder,
    hold_time: Recorder,
    heartbeat_lag: Recorder,
    queue_length: Recorder,
    pub(crate) attempts: Attempts,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            sessions: AtomicU64::default(),
            reconnects: AtomicU64::default(),
            grants: AtomicU64::default(),
            acquires: Default::default(),
            losses: Default::default(),
            acquire_wait: Recorder::of_times(),
            hold_time: Recorder::of_times(),
            heartbeat_lag: Recorder::of_times(),
            queue_length: Recorder::of_contenders(),
            attempts: Attempts::default(),
        }
    }
}

impl Counters {
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
        count(&self.losses[reason as usize]);
    }

    pub(crate) fn count_hold(&self, held: Duration) {
        self.hold_time.add_time(held);
    }

    pub(crate) fn count_heartbeat(&self, lag: Duration) {
        self.heartbeat_lag.add_time(lag);
    }

    /// Counts a new node, with this many contenders before it.
    pub(crate) fn count_entry(&self, ahead: usize) {
        self.queue_length.add(ahead as u64);
    }

    /// Counts an acquire that has ended, after this long.
    pub(crate) fn count_acquire(&self, outcome: AcquireOutcome, waited: Duration) {
        count(&self.acquires[outcome as usize]);
        if outcome == AcquireOutcome::Granted {
            self.acquire_wait.add_time(waited);
        }
    }

    pub(crate) fn read(&self) -> Stats {
        let losses_by = self.losses.each_ref().map(read);
        Stats {
            sessions: self.sessions(),
            reconnects: read(&self.reconnects),
            grants: read(&self.grants),
            losses: losses_by.iter().sum(),
            owed: self.attempts.owed(),
            acquire_wait: self.acquire_wait.read(),
            hold_time: self.hold_time.read(),
            heartbeat_lag: self.heartbeat_lag.read(),
            queue_length: self.queue_length.read(),
            acquires: self.acquires.each_ref().map(read),
            losses_by,
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
