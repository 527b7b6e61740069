//! How long a call waits for others. It is parsed once, where it comes in.

use crate::machine::protocol::Patience;
use std::cell::Cell;
use std::fmt;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long a question about the holder may take: a wait counts as nearly over this long before its deadline, at most.
pub(crate) const QUESTION: Duration = Duration::from_millis(200);

/// How much later than its deadline a call may return.
pub(crate) const GRACE: Duration = Duration::from_millis(50);

/// How long a call waits for others.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock_core::Wait;
///
/// assert_eq!(Wait::from(Duration::ZERO), Wait::Once);
/// assert_eq!(Wait::from(None), Wait::Forever);
/// assert!(matches!(Wait::from(Duration::from_secs(5)), Wait::Until(_)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// It does not wait. It tries once, for the [try timeout](crate::ClientOptions::try_timeout) at most.
    Once,
    /// It waits until this deadline.
    Until(Deadline),
    /// It waits as long as it takes.
    Forever,
}

/// When a wait ends. It is computed once, from the timeout that the caller gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    at: Instant,
    /// The timeout that the caller gave, for messages.
    timeout: Duration,
}

impl Wait {
    /// Waits for this long, counted from now, or for ever without a timeout. Zero ends at once, without a try.
    pub fn at_most(timeout: Option<Duration>) -> Self {
        let deadline = |timeout| Some(Deadline { at: Instant::now().checked_add(timeout)?, timeout });
        // A timeout that goes beyond the clock's range is not a deadline.
        timeout.and_then(deadline).map_or(Self::Forever, Self::Until)
    }

    /// Returns how an attempt waits for others.
    pub(crate) fn patience(self) -> Patience {
        if self == Self::Once { Patience::TriesOnce } else { Patience::Waits }
    }

    pub(crate) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Until(deadline) => Some(deadline.at),
            Self::Once | Self::Forever => None,
        }
    }

    /// Waits until this wait is nearly over: there is just enough time left for a question. Without a deadline that never
    /// happens.
    pub(crate) async fn nearly_over(self) {
        let Self::Until(Deadline { at, timeout }) = self else { return pending().await };
        tokio::time::sleep_until((at - (timeout / 4).min(QUESTION)).into()).await;
    }

    /// Returns the shorter of this wait and one of `patience` from now.
    pub(crate) fn no_longer_than(self, patience: Duration) -> Self {
        let patience = Self::at_most(Some(patience));
        match (self.deadline(), patience.deadline()) {
            (Some(own), Some(other)) if own <= other => self,
            _ => patience,
        }
    }

    pub(crate) fn is_over(self) -> bool {
        self.deadline().is_some_and(|at| at <= Instant::now())
    }

    /// Waits until this wait is over, and returns the timeout that the caller gave.
    ///
    /// Whoever polls it reads the clock: its timer belongs to the I/O thread, which may be late. A thread that wakes by itself
    /// at the deadline needs no timer.
    pub(crate) async fn over(self) -> Duration {
        let Self::Until(Deadline { at, timeout }) = self else { return pending().await };
        let wakes = WAKES_AT.get().is_some_and(|wakes_at| wakes_at <= at);
        let timer = async { if wakes { pending().await } else { tokio::time::sleep_until(at.into()).await } };
        let mut timer = pin!(timer);
        poll_fn(|context| if Instant::now() >= at { Poll::Ready(()) } else { timer.as_mut().poll(context) })
            .await;
        timeout
    }
}

thread_local! {
    /// When this thread polls again by itself. It has no destructor, so it still exists while the thread ends.
    static WAKES_AT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Calls `poll` on a thread that polls again at the deadline, whatever the I/O thread does.
pub(crate) fn polled_until<T>(deadline: Option<Instant>, poll: impl FnOnce() -> T) -> T {
    struct Before(Option<Instant>);
    impl Drop for Before {
        fn drop(&mut self) {
            WAKES_AT.set(self.0);
        }
    }
    let _before = Before(WAKES_AT.replace(deadline));
    poll()
}

impl From<Duration> for Wait {
    /// Zero tries once.
    fn from(timeout: Duration) -> Self {
        if timeout.is_zero() { Self::Once } else { Self::at_most(Some(timeout)) }
    }
}

impl From<Option<Duration>> for Wait {
    /// Zero tries once; `None` waits as long as it takes.
    fn from(timeout: Option<Duration>) -> Self {
        timeout.map_or(Self::Forever, Self::from)
    }
}

/// The end of a sentence that says what did not happen.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once => f.write_str("within the try timeout"),
            Self::Until(deadline) => write!(f, "within {:?}", deadline.timeout),
            Self::Forever => f.write_str("at all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn zero_tries_once_where_it_does_not_end_at_once() {
        assert_eq!(Wait::from(Some(Duration::ZERO)), Wait::Once);
        assert!(Wait::at_most(Some(Duration::ZERO)).deadline().is_some_and(|at| at <= Instant::now()));
        assert_eq!(Wait::from(Duration::MAX), Wait::Forever);
        assert_eq!(Wait::at_most(None), Wait::Forever);
        assert_eq!(Wait::from(LONG).to_string(), "within 600s");
    }

    #[test]
    fn a_thread_that_wakes_by_itself_needs_no_timer() {
        // There is no runtime here, so a timer would panic.
        let mut context = Context::from_waker(Waker::noop());
        let (long, over) = (Wait::from(LONG), Wait::at_most(Some(Duration::ZERO)));
        for (wait, is_over) in [(long, false), (over, true)] {
            let mut future = pin!(wait.over());
            let polled = polled_until(wait.deadline(), || future.as_mut().poll(&mut context));
            assert_eq!(polled.is_ready(), is_over);
        }
        assert_eq!(WAKES_AT.get(), None);
    }

    #[test]
    fn one_that_wakes_too_late_has_a_timer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _within = runtime.enter();
        let (soon, later) = (Wait::from(Duration::from_millis(5)), Wait::from(LONG));
        let mut future = pin!(soon.over());
        let mut context = Context::from_waker(Waker::noop());
        assert!(polled_until(later.deadline(), || future.as_mut().poll(&mut context)).is_pending());
        runtime.block_on(future);
    }
}
