//! Moments that mean the same in two processes.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A moment on a clock that keeps running while the machine is suspended. The ensemble's clock keeps running too, so a
/// lease on any other clock would seem to survive the night. All processes of a machine read the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment(Duration);

impl Moment {
    pub(crate) fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self(Duration::new(seconds, nanos))
    }

    pub(crate) fn at(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    pub(crate) fn since_boot(self) -> Duration {
        self.0
    }

    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    pub(crate) fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }

    /// Returns how long after another; zero if it is not later.
    pub(crate) fn since(self, other: Self) -> Duration {
        self.0.saturating_sub(other.0)
    }
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
