//! How every machine handles unknown outcomes, and a missing directory.

use crate::Moment;
use crate::protocol::{Outcome, Refusal};
use std::time::Duration;

/// The pause before the first try that is not made at once.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(640);
/// How many times parents are created again before the machine fails: the server may reap an empty container between
/// two of our requests, but not for ever.
const PARENTS_AT_MOST: u32 = 16;

/// The number of unknown outcomes since the last known one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Failures(u32);

impl Failures {
    /// Counts one more, and returns when to try again. `None` means at once, because the driver waits for the
    /// connection. Later tries are spaced out, so that a sick server is not asked in a tight loop.
    pub(crate) fn next_try(&mut self, now: Moment) -> Option<Moment> {
        self.0 += 1;
        let doublings = self.0.checked_sub(2)?.min(16);
        Some(now + FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE))
    }

    pub(crate) fn clear(&mut self) {
        self.0 = 0;
    }
}

/// How many times parents have been created since a node last existed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Parents(u32);

pub(crate) enum Parented {
    Created,
    Failed(Refusal),
    Unknown,
}

impl Parents {
    pub(crate) fn answered(&mut self, outcomes: Vec<Outcome>) -> Parented {
        for outcome in outcomes {
            match outcome {
                Outcome::Done => {}
                Outcome::NoNode => return Parented::Failed(Refusal::NoRoot),
                Outcome::Refused(refusal) => return Parented::Failed(refusal),
                _ => return Parented::Unknown,
            }
        }
        self.0 += 1;
        if self.0 > PARENTS_AT_MOST { Parented::Failed(Refusal::NoParent) } else { Parented::Created }
    }

    pub(crate) fn clear(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_try_again_is_made_at_once_and_later_ones_are_spaced() {
        let mut failures = Failures::default();
        let now = Moment::at(Duration::from_secs(1));
        let pauses: Vec<_> =
            (0..9).map(|_| failures.next_try(now).map_or(0, |next| next.since(now).as_millis())).collect();
        assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 320, 640, 640]);
        failures.clear();
        assert_eq!(failures.next_try(now), None);
    }

    #[test]
    fn parents_that_vanish_again_and_again_are_given_up() {
        let mut parents = Parents::default();
        for _ in 0..PARENTS_AT_MOST {
            assert!(matches!(parents.answered(vec![Outcome::Done]), Parented::Created));
        }
        assert!(matches!(parents.answered(vec![Outcome::Done]), Parented::Failed(Refusal::NoParent)));
        parents.clear();
        assert!(matches!(parents.answered(vec![Outcome::Done]), Parented::Created));
        assert!(matches!(parents.answered(vec![Outcome::NoNode]), Parented::Failed(Refusal::NoRoot)));
        let refused = vec![Outcome::Done, Outcome::Refused(Refusal::Denied)];
        assert!(matches!(parents.answered(refused), Parented::Failed(Refusal::Denied)));
        assert!(matches!(parents.answered(vec![Outcome::Done, Outcome::Unknown]), Parented::Unknown));
    }
}
