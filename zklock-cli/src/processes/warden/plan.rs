//! Decides when a job gets TERM and when KILL: a pure function of what is known about the lease.
//!
//! ```text
//!            lease about to end, lost, at most              due
//!  Runs ------------------------------------> Ending ----------------> Killing
//!     \        first process has ended          ^
//!      `----------------------------------------'
//! ```

use crate::processes::clock::Moment;
use crate::processes::orders::{Cause, Limits};

#[derive(Debug)]
pub(super) struct Plan {
    limits: Limits,
    lease_ends: Moment,
    ends_at: Option<Moment>,
    ending: Option<Ending>,
    is_killing: bool,
}

#[derive(Clone, Copy, Debug)]
struct Ending {
    cause: Cause,
    kill_at: Moment,
}

/// The next action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Nothing,
    Term(Cause),
    Kill,
}

impl Plan {
    pub(super) fn new(limits: Limits, lease_ends: Moment, ends_at: Option<Moment>) -> Self {
        Self { limits, lease_ends, ends_at, ending: None, is_killing: false }
    }

    /// Notes another end of the lease. That changes nothing for a job that is being ended because the lease was about
    /// to end: others have been told that the lock is lost.
    pub(super) fn renew(&mut self, lease_ends: Moment) {
        self.lease_ends = lease_ends;
    }

    /// Ends the job now. If its end has begun, that can only become quicker. Returns whether the job gets TERM.
    pub(super) fn end(&mut self, cause: Cause, now: Moment) -> bool {
        let kill_at = match cause {
            Cause::LeaseEnds => self.lease_ends.minus(self.limits.margin()),
            _ => now.plus(self.limits.grace),
        };
        match &mut self.ending {
            Some(ending) => {
                ending.kill_at = ending.kill_at.min(kill_at);
                // A lost lock is reported as lost, and nothing of the job may go on.
                if matches!(cause, Cause::LeaseEnds | Cause::Lost)
                    && matches!(ending.cause, Cause::AtMost | Cause::Leftover)
                {
                    ending.cause = cause;
                }
                false
            }
            None => {
                self.ending = Some(Ending { cause, kill_at });
                true
            }
        }
    }

    /// Returns why the job is being ended.
    pub(super) fn cause(&self) -> Option<Cause> {
        self.ending.map(|ending| ending.cause)
    }

    /// Returns the action that is due. Ask again at [`next`](Self::next).
    pub(super) fn due(&mut self, now: Moment) -> Step {
        if self.is_killing {
            return Step::Nothing;
        }
        let is_short = !self.is_ended_for_the_lease() && self.lease_is_short_at() <= now;
        if is_short && self.end(Cause::LeaseEnds, now) {
            return Step::Term(Cause::LeaseEnds);
        }
        if self.ends_at.is_some_and(|ends_at| ends_at <= now) && self.end(Cause::AtMost, now) {
            return Step::Term(Cause::AtMost);
        }
        if self.ending.is_some_and(|ending| ending.kill_at <= now) {
            self.is_killing = true;
            return Step::Kill;
        }
        Step::Nothing
    }

    /// Returns when something will be due, if no more is heard.
    pub(super) fn next(&self) -> Option<Moment> {
        if self.is_killing {
            return None;
        }
        let lease = Some(self.lease_is_short_at()).filter(|_| !self.is_ended_for_the_lease());
        let ends_at = self.ends_at.filter(|_| self.ending.is_none());
        [lease, ends_at, self.ending.map(|ending| ending.kill_at)].into_iter().flatten().min()
    }

    fn is_ended_for_the_lease(&self) -> bool {
        matches!(self.cause(), Some(Cause::LeaseEnds | Cause::Lost))
    }

    fn lease_is_short_at(&self) -> Moment {
        self.lease_ends.minus(self.limits.least_lease())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    fn at(millis: u32) -> Moment {
        Moment::at(MS * 100_000 + MS * millis)
    }

    fn plan(lease_ends: u32, ends_at: Option<u32>) -> Plan {
        let limits = Limits { grace: MS * 1000, session_timeout: MS * 5000 };
        Plan::new(limits, at(lease_ends), ends_at.map(at))
    }

    #[test]
    fn a_lease_that_ends_ends_the_job_before_it() {
        let mut plan = plan(5000, None);
        assert_eq!(plan.next(), Some(at(4400)));
        assert_eq!(plan.due(at(4399)), Step::Nothing);
        assert_eq!(plan.due(at(4400)), Step::Term(Cause::LeaseEnds));
        assert_eq!(plan.next(), Some(at(4900)));
        assert_eq!(plan.due(at(4899)), Step::Nothing);
        assert_eq!(plan.due(at(4900)), Step::Kill);
        assert_eq!((plan.next(), plan.due(at(9000))), (None, Step::Nothing));
    }

    #[test]
    fn a_lease_that_is_renewed_lets_the_job_run() {
        let mut plan = plan(5000, None);
        plan.renew(at(7000));
        assert_eq!(plan.due(at(5000)), Step::Nothing);
        assert_eq!(plan.next(), Some(at(6400)));
    }

    #[test]
    fn a_renewal_after_term_does_not_put_off_kill() {
        let mut plan = plan(5000, None);
        assert_eq!(plan.due(at(4400)), Step::Term(Cause::LeaseEnds));
        plan.renew(at(9000));
        assert_eq!(plan.due(at(4900)), Step::Kill);
    }

    #[test]
    fn a_plan_that_wakes_too_late_kills_at_the_second_question() {
        let mut plan = plan(5000, None);
        assert_eq!(plan.due(at(20_000)), Step::Term(Cause::LeaseEnds));
        assert_eq!(plan.due(at(20_000)), Step::Kill);
    }

    #[test]
    fn a_lost_lock_gives_the_grace_and_no_more() {
        let mut plan = plan(5000, None);
        assert!(plan.end(Cause::Lost, at(100)));
        plan.renew(at(100));
        assert_eq!(plan.due(at(100)), Step::Nothing);
        assert_eq!(plan.next(), Some(at(1100)));
        assert!(!plan.end(Cause::Lost, at(900)));
        assert_eq!(plan.due(at(1100)), Step::Kill);
    }

    #[test]
    fn a_job_that_runs_too_long_is_ended() {
        let mut plan = plan(50_000, Some(2000));
        assert_eq!(plan.next(), Some(at(2000)));
        assert_eq!(plan.due(at(2000)), Step::Term(Cause::AtMost));
        assert_eq!(plan.next(), Some(at(3000)));
        assert_eq!(plan.due(at(3000)), Step::Kill);
        assert_eq!(plan.cause(), Some(Cause::AtMost));
    }

    #[test]
    fn whatever_ends_the_job_the_lease_bounds_its_grace() {
        let mut plan = plan(2500, Some(1800));
        assert_eq!(plan.due(at(1800)), Step::Term(Cause::AtMost));
        // 1900: the lease is short. There is no second TERM, and KILL comes by 2400.
        assert_eq!(plan.next(), Some(at(1900)));
        assert_eq!(plan.due(at(1900)), Step::Nothing);
        assert_eq!(plan.cause(), Some(Cause::LeaseEnds));
        assert_eq!(plan.next(), Some(at(2400)));
        assert_eq!(plan.due(at(2400)), Step::Kill);
    }

    #[test]
    fn limits_fit_into_the_lease_of_any_session() {
        for timeout in [100, 400, 2_000, 10_000, 60_000] {
            let timeout = MS * timeout;
            let limits = Limits { grace: Duration::from_secs(3600), session_timeout: timeout };
            assert!(limits.least_lease() <= timeout * 14 / 100, "{timeout:?}: {limits:?}");
        }
        assert_eq!(Limits { grace: MS, session_timeout: MS * 2_000 }.margin(), MS * 80, "a twenty-fifth");
    }
}
