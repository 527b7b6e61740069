//! How long a call waits for others. It is parsed once, where it comes in.

use crate::base::error::{Error, ErrorKind};
use crate::machine::protocol::Patience;
use std::cell::Cell;
use std::fmt;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

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
/// use zklock::further::Wait;
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
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock::further::Wait;
///
/// // Two calls that together take no longer than this.
/// let wait = Wait::from(Duration::from_secs(5));
/// let (first, second) = (wait, wait);
/// assert!(matches!((first, second), (Wait::Until(first), Wait::Until(second)) if first == second));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    at: Instant,
    /// The timeout that the caller gave, for messages.
    timeout: Duration,
}

impl Wait {
    /// Waits for this long, counted from now, or for ever without a timeout. Zero ends at once, without a try.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock::further::Wait;
    ///
    /// assert_eq!(Wait::at_most(None), Wait::Forever);
    /// // `Wait::from` would make a single try of zero.
    /// assert!(matches!(Wait::at_most(Some(Duration::ZERO)), Wait::Until(_)));
    /// ```
    pub fn at_most(timeout: Option<Duration>) -> Self {
        let deadline = |timeout| Some(Deadline { at: Instant::now().checked_add(timeout)?, timeout });
        // A timeout that goes beyond the clock's range is not a deadline.
        timeout.and_then(deadline).map_or(Self::Forever, Self::Until)
    }

    /// Returns the same, with no time at all in place of a try.
    pub(crate) fn at_least_none(self) -> Self {
        if self == Self::Once { Self::at_most(Some(Duration::ZERO)) } else { self }
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

    /// Returns when to poll a future that keeps this deadline, at the latest: at the deadline, and after a moment more.
    pub(crate) fn due(self) -> Option<Instant> {
        let at = self.deadline()?;
        Some(if Instant::now() < at { at } else { at + GRACE })
    }

    /// Whether even a late call should have ended.
    pub(crate) fn is_long_over(self) -> bool {
        self.deadline().is_some_and(|at| at + GRACE <= Instant::now())
    }

    /// Waits for a future that has no deadline of its own.
    pub(crate) async fn bound<T>(self, future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::select! {
            biased;
            result = future => result,
            _ = self.over() => Err(too_late()),
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

    /// Waits until this wait is over, and returns the timeout that the caller gave. A wait that is [cut short](cut_short) is
    /// over.
    pub(crate) async fn over(self) -> Duration {
        let (at, timeout) = match self {
            Self::Until(Deadline { at, timeout }) => (Some(at), timeout),
            Self::Once | Self::Forever => (None, Duration::MAX),
        };
        let mut timer = None;
        poll_fn(|context| match at {
            _ if THREAD.get().is_cut_short => Poll::Ready(()),
            Some(at) => poll_until(at, &mut timer, context),
            None => Poll::Pending,
        })
        .await;
        timeout
    }
}

/// Returns the error of a wait that says no more about itself.
pub(crate) fn too_late() -> Error {
    Error::new(ErrorKind::Timeout, "the time is up")
}

/// Waits for this long, also in a call whose wait is cut short.
pub(crate) async fn moment(length: Duration) {
    let (at, mut timer) = (Instant::now() + length, None);
    poll_fn(|context| poll_until(at, &mut timer, context)).await;
}

/// Boxed, because a call would be some hundred bytes larger, and what waits for it several times that.
type Timer = Option<Pin<Box<Sleep>>>;

/// Waits until this moment.
///
/// Each poll reads the clock: the timer belongs to the I/O thread, which may be late. A thread that wakes by itself needs no
/// timer.
fn poll_until(at: Instant, timer: &mut Timer, context: &mut Context<'_>) -> Poll<()> {
    if Instant::now() >= at {
        return Poll::Ready(());
    }
    let thread = THREAD.get();
    if !thread.wakes {
        let sleep = || Box::pin(tokio::time::sleep_until(at.into()));
        return timer.get_or_insert_with(sleep).as_mut().poll(context);
    }
    let wakes_at = thread.wakes_at.map_or(at, |other| other.min(at));
    THREAD.set(Thread { wakes_at: Some(wakes_at), ..thread });
    Poll::Pending
}

/// What a thread that polls a future does for it.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// Whether it polls again at the time that the future wants.
    wakes: bool,
    wakes_at: Option<Instant>,
    is_cut_short: bool,
}

thread_local! {
    /// It has no destructor, so it still exists while the thread ends.
    static THREAD: Cell<Thread> = const { Cell::new(Thread { wakes: false, wakes_at: None, is_cut_short: false }) };
}

/// Polls on a thread that polls again by itself, at the moment that this returns, whatever the I/O thread does.
pub(crate) fn polled<T>(poll: impl FnOnce() -> T) -> (T, Option<Instant>) {
    within(Thread { wakes: true, ..Thread::default() }, poll)
}

/// The same, but all waits are over, as if their time had come.
pub(crate) fn cut_short<T>(poll: impl FnOnce() -> T) -> (T, Option<Instant>) {
    within(Thread { wakes: true, is_cut_short: true, wakes_at: None }, poll)
}

fn within<T>(thread: Thread, poll: impl FnOnce() -> T) -> (T, Option<Instant>) {
    struct Before(Thread);
    impl Drop for Before {
        fn drop(&mut self) {
            THREAD.set(self.0);
        }
    }
    let _before = Before(THREAD.replace(thread));
    let polled = poll();
    (polled, THREAD.get().wakes_at)
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
    use std::task::Waker;

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
        for (wait, is_over) in [(long, false), (over, true), (Wait::Forever, false)] {
            let mut future = pin!(wait.over());
            let (now, wakes_at) = polled(|| future.as_mut().poll(&mut context));
            assert_eq!(now.is_ready(), is_over);
            assert_eq!(wakes_at, wait.deadline().filter(|_| !is_over));
        }
        assert!(!THREAD.get().wakes);
    }

    #[test]
    fn a_wait_may_be_cut_short_and_what_follows_it_is_not() {
        let mut context = Context::from_waker(Waker::noop());
        for wait in [Wait::from(LONG), Wait::Forever] {
            let before = Instant::now();
            let mut future = pin!(async {
                wait.over().await;
                moment(LONG).await;
            });
            assert!(polled(|| future.as_mut().poll(&mut context)).0.is_pending());
            let (now, wakes_at) = cut_short(|| future.as_mut().poll(&mut context));
            assert!(now.is_pending());
            assert!(wakes_at.is_some_and(|at| at >= before + LONG), "what follows has its time");
        }
    }
}
