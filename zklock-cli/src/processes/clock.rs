//! Moments that mean the same in two processes: all processes of a machine read the same time from the library's clock.

use std::time::Duration;

use rustix::time::Timespec;
use zklock::face::Moment;

/// Returns a moment as it is sent to another process.
pub(crate) fn since_boot(moment: Moment) -> Duration {
    moment.since(Moment::default())
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
