//! Time for everything above the machine, in one place, so that tests can replace it with a [virtual
//! clock](virtual_clock).

#![expect(clippy::disallowed_methods, reason = "this is where the time comes from")]

use crate::machine::Moment;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
/// On macOS this one runs during sleep.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// Returns the time on a clock that keeps running while the machine is suspended, as the ensemble's does.
/// (`std::time::Instant` stands still, so a lease would seem to survive the night.)
pub fn now() -> Moment {
    #[cfg(test)]
    if let Some(now) = virtual_clock::now() {
        return now;
    }
    let time = clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Moment::at(Duration::new(seconds, nanos))
}

/// Returns how long ago this was, by the time of day, which is what other machines' clocks tell.
pub(crate) fn age(since: SystemTime) -> Duration {
    SystemTime::now().duration_since(since).unwrap_or_default()
}

/// Waits for this long.
pub(crate) fn sleep(duration: Duration) -> tokio::time::Sleep {
    tokio::time::sleep(duration)
}

/// Waits until then. It may be late, because timers stand still while the machine is suspended.
pub(crate) fn sleep_until(moment: Moment) -> tokio::time::Sleep {
    sleep(moment.since(now()))
}

/// Returns the result of `future`, or an error if it takes longer than `limit`.
pub(crate) fn timeout<F: Future>(limit: Duration, future: F) -> tokio::time::Timeout<F> {
    tokio::time::timeout(limit, future)
}

/// A clock that stands still while there is anything to do, and then jumps to the next timer.
#[cfg(test)]
pub(crate) mod virtual_clock {
    use super::{Duration, Moment};
    use std::cell::Cell;
    use tokio::time::Instant;

    thread_local! {
        static BEGINNING: Cell<Option<Instant>> = const { Cell::new(None) };
    }

    /// Far enough from the origin of time that tests can look back.
    const FIRST: Duration = Duration::from_secs(1_000);

    /// Longer than any test waits. Virtual time costs nothing, so an endless wait fails at once instead of hanging.
    const LONGEST: Duration = Duration::from_secs(24 * 3_600);

    /// Runs a test on this clock. Everything that the test spawns runs in the same thread, and sees the same time.
    pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            BEGINNING.set(Some(Instant::now()));
            let result = tokio::time::timeout(LONGEST, test).await;
            BEGINNING.set(None);
            result.expect("the test waits for ever")
        })
    }

    pub(super) fn now() -> Option<Moment> {
        BEGINNING.get().map(|beginning| Moment::at(FIRST + beginning.elapsed()))
    }
}
