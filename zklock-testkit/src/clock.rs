//! The server's clock. It can be put forward, and can be made to stand still otherwise.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::state::world::Moment;

/// The furthest that the clock can be put forward, a thousand years, so that sums of such times do not overflow.
const LONGEST: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

#[derive(Debug)]
pub(crate) struct Clock {
    begun: Instant,
    /// The date when it began, in ms since 1970.
    wall: i64,
    /// How far the clock was put forward.
    ahead: Duration,
    is_manual: bool,
}

impl Clock {
    pub(crate) fn new(is_manual: bool) -> Self {
        let wall = millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        Self { begun: Instant::now(), wall, ahead: Duration::ZERO, is_manual }
    }

    pub(crate) fn now(&self) -> Moment {
        let elapsed =
            if self.is_manual { self.ahead } else { self.begun.elapsed().saturating_add(self.ahead) };
        Moment { elapsed, wall: self.wall.saturating_add(millis(elapsed)) }
    }

    /// Sets the date alone: no session is older or younger than before.
    pub(crate) fn set_date(&mut self, since_1970: Duration) {
        self.wall = millis(since_1970).saturating_sub(millis(self.now().elapsed));
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.ahead = self.ahead.saturating_add(by).min(LONGEST);
    }

    /// How long to wait for a point in time; `None` if it does not come by itself.
    pub(crate) fn until(&self, elapsed: Duration) -> Option<Duration> {
        (!self.is_manual).then(|| elapsed.saturating_sub(self.now().elapsed))
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
