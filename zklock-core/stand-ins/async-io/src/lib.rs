//! The parts of async-io that zookeeper-client uses, on tokio: see `README.md` beside this crate.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::{Sleep, sleep_until};

/// A future that is ready at its time, and after each period if it has one. It must be polled in a tokio runtime.
#[derive(Debug)]
pub struct Timer {
    next: Option<Instant>,
    period: Option<Duration>,
    /// Made at the first poll, because a timer may be made outside of the runtime.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Makes a timer that is never ready.
    pub fn never() -> Self {
        Self { next: None, period: None, sleep: None }
    }

    /// Makes a timer that is ready once, after `duration`.
    pub fn after(duration: Duration) -> Self {
        // Read from the runtime's clock, which tests may stop.
        let now = tokio::time::Instant::now().into_std();
        Self { next: now.checked_add(duration), ..Self::never() }
    }

    /// Makes a timer that is ready once, at `instant`.
    pub fn at(instant: Instant) -> Self {
        Self { next: Some(instant), ..Self::never() }
    }

    /// Makes a timer that is ready after each `period`.
    pub fn interval(period: Duration) -> Self {
        Self { period: Some(period), ..Self::after(period) }
    }
}

impl Future for Timer {
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Instant> {
        let Some(due) = self.next else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due.into())));
        ready!(sleep.as_mut().poll(context));
        self.next = self.period.and_then(|period| due.checked_add(period));
        match (self.next, &mut self.sleep) {
            (Some(next), Some(sleep)) => sleep.as_mut().reset(next.into()),
            _ => self.sleep = None,
        }
        Poll::Ready(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn each_kind_is_ready_when_it_is_due() {
        let begun = tokio::time::Instant::now();
        Timer::after(SECOND).await;
        assert_eq!(begun.elapsed().as_secs(), 1);
        Timer::at((begun + 3 * SECOND).into_std()).await;
        assert_eq!(begun.elapsed().as_secs(), 3);
        let mut interval = pin!(Timer::interval(2 * SECOND));
        for round in 1..4 {
            interval.as_mut().await;
            assert_eq!(begun.elapsed().as_secs(), 3 + 2 * round);
        }
        let mut never = pin!(Timer::never());
        assert!(tokio::time::timeout(1000 * SECOND, never.as_mut()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_over_is_not_ready_again() {
        let mut once = pin!(Timer::after(SECOND));
        once.as_mut().await;
        let again = poll_fn(|context| Poll::Ready(once.as_mut().poll(context).is_pending()));
        assert!(again.await);
    }
}
