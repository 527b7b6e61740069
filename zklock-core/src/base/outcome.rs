//! How an acquire ended.

use std::fmt;
use zklock_machine::listed;

listed! {
    /// How a call that acquires a lock ended. See [`Stats::acquires`].
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(zklock::further::AcquireOutcome::TimedOut.to_string(), "timed_out");
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[non_exhaustive]
    pub enum AcquireOutcome {
        /// It got a hold.
        Granted,
        /// Others had the lock, and the call tried only once.
        Busy,
        /// Others had the lock until the call's timeout.
        TimedOut,
        /// It failed with any other error.
        Failed,
        /// The caller gave up, or was interrupted.
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
