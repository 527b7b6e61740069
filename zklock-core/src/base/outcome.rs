//! How an acquire ended.

use std::fmt;
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
