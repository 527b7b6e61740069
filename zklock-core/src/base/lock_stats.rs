//! The figures of the locks of one name, as users read them.

use crate::base::error::LossReason;
use crate::base::histogram::Histogram;
use crate::base::outcome::AcquireOutcome;
use std::time::Duration;

/// The figures of the locks with one [name](crate::LockSpec::figures) in a client. They are part of
/// [`Stats`](crate::Stats).
///
/// # Examples
///
/// ```no_run
/// # fn example(client: &zklock_core::Client) {
/// for lock in client.stats().locks {
///     println!("{}: {} held, {} waiting", lock.name, lock.held, lock.waiting);
/// }
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LockStats {
    /// The name.
    pub name: String,
    /// Grants that are held now. A reentrant owner has one, however often it acquires, and a lost hold is not held.
    pub held: u64,
    /// Calls that wait for the lock now. A call that gets a hold without a request never waits.
    pub waiting: u64,
    /// The age of the oldest grant that is held now; `None` if nothing is held.
    pub oldest_hold: Option<Duration>,
    /// See [`Stats::acquire_wait`](crate::Stats::acquire_wait).
    pub acquire_wait: Histogram,
    /// See [`Stats::hold_time`](crate::Stats::hold_time).
    pub hold_time: Histogram,
    pub(super) acquires: [u64; AcquireOutcome::ALL.len()],
    pub(super) losses_by: [u64; LossReason::ALL.len()],
}

impl LockStats {
    /// Returns how many calls that acquire these locks ended in this way.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::AcquireOutcome;
    ///
    /// # fn example(client: &zklock_core::Client) {
    /// for lock in client.stats().locks {
    ///     println!("{}: {} timed out", lock.name, lock.acquires(AcquireOutcome::TimedOut));
    /// }
    /// # }
    /// ```
    pub fn acquires(&self, outcome: AcquireOutcome) -> u64 {
        self.acquires[outcome as usize]
    }

    /// Returns how many holds of these locks were lost for this reason.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::LossReason;
    ///
    /// # fn example(client: &zklock_core::Client) {
    /// for lock in client.stats().locks {
    ///     println!("{}: {} lost to an operator", lock.name, lock.losses_by(LossReason::NodeDeleted));
    /// }
    /// # }
    /// ```
    pub fn losses_by(&self, reason: LossReason) -> u64 {
        self.losses_by[reason as usize]
    }
}
