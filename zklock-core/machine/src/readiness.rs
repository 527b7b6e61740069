//! Whether a grant may be delivered now. It is not enough that it is our turn.
//!
//! The nodes must have been proven within the last heartbeat, so that the holder learns in time if an operator
//! deletes one. And the lease must not be about to run out.

use crate::Moment;
use crate::protocol::Now;
use crate::retry::FIRST_PAUSE;
use std::time::Duration;

/// How many checks are made to get a longer lease: more than it takes to renew one that has lapsed.
const SCANT_AT_MOST: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Readiness {
    heartbeat: Duration,
    /// Checks in a row that left less of the lease than a holder should begin with.
    scant: u32,
}

/// The next action after a check that the nodes have passed.
pub(crate) enum Checked {
    Ready,
    /// Check again at this time, or at once.
    Again(Option<Moment>),
}

impl Readiness {
    pub(crate) fn set_heartbeat(&mut self, heartbeat: Duration) {
        self.heartbeat = heartbeat;
    }

    /// Whether nodes that were all proven at that time can be granted now.
    pub(crate) fn is_there(&self, proven: Option<Moment>, now: Now) -> bool {
        let is_fresh = proven.is_some_and(|sent| now.moment.since(sent) <= self.heartbeat);
        is_fresh && self.is_ample(now)
    }

    pub(crate) fn after_check(&mut self, now: Now) -> Checked {
        self.scant += 1;
        // If the network is so slow that there is never more of it, less has to do, and even an old check.
        let will_do = self.scant > SCANT_AT_MOST && now.moment < now.lease_until;
        if self.is_ample(now) || will_do {
            return Checked::Ready;
        }
        // One check right after the other is what renews a lease that has lapsed. So there is no pause, except a
        // short one after many checks have failed.
        Checked::Again((self.scant > SCANT_AT_MOST).then_some(now.moment + FIRST_PAUSE))
    }

    pub(crate) fn clear(&mut self) {
        self.scant = 0;
    }

    /// Whether enough of the lease is left to begin with.
    fn is_ample(&self, now: Now) -> bool {
        now.lease_until.since(now.moment) >= self.heartbeat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEARTBEAT: Duration = Duration::from_secs(1);

    /// At ten seconds, with this much of the lease left.
    fn with(left: u64) -> Now {
        let moment = Moment::at(Duration::from_secs(10));
        Now { moment, lease_until: moment + Duration::from_millis(left) }
    }

    fn checked(readiness: &mut Readiness, left: u64) -> Option<Option<u128>> {
        match readiness.after_check(with(left)) {
            Checked::Ready => None,
            Checked::Again(at) => Some(at.map(|at| at.since(with(0).moment).as_millis())),
        }
    }

    #[test]
    fn less_of_the_lease_will_do_after_some_checks_as_long_as_any_is_left() {
        let mut readiness = Readiness::default();
        readiness.set_heartbeat(HEARTBEAT);
        assert_eq!(checked(&mut readiness, 1_000), None);
        readiness.clear();
        for _ in 0..SCANT_AT_MOST {
            assert_eq!(checked(&mut readiness, 999), Some(None));
        }
        for _ in 0..2 {
            assert_eq!(checked(&mut readiness, 0), Some(Some(10)));
            assert_eq!(checked(&mut readiness, 1), None);
        }
        readiness.clear();
        assert_eq!(checked(&mut readiness, 1), Some(None));
    }
}
