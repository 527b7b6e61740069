//! The server's clock. It can be put forward, and can be made to stand still otherwise.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::state::world::Moment;

/// The furthest that the clock can be put forward, a thousand years, so that sums of such times do not overflow.
const LONGEST: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

#[derive(Debug)]
pub(crate) struct Clock {
    begun: Instant,
    wall: Duration,
    /// How far the clock was put forward.
    ahead: Duration,
    is_manual: bool,
}

impl Clock {
    pub(crate) fn new(is_manual: bool) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { begun: Instant::now(), wall, ahead: Duration::ZERO, is_manual }
    }

    pub(crate) fn now(&self) -> Moment {
        let elapsed =
            if self.is_manual { self.ahead } else { self.begun.elapsed().saturating_add(self.ahead) };
        let wall = i64::try_from(self.wall.saturating_add(elapsed).as_millis()).unwrap_or(i64::MAX);
        Moment { elapsed, wall }
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.ahead = self.ahead.saturating_add(by).min(LONGEST);
    }

    /// How long to wait for a point in time; `None` if it does not come by itself.
    pub(crate) fn until(&self, elapsed: Duration) -> Option<Duration> {
        (!self.is_manual).then(|| elapsed.saturating_sub(self.now().elapsed))
    }
}
