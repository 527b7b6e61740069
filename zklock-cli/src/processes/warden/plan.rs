//! Decides when a job gets TERM and when KILL: a pure function of what is known about the lease.
//!
//! ```text
//!            lease about to end, lost, at most              due
//!  Runs ------------------------------------> Ending ----------------> Killing
//!     \        first process has ended          ^
//!      `----------------------------------------'
//! ```

use zklock::face::Moment;

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
            Cause::LeaseEnds => self.lease_ends.before(self.limits.margin()),
            _ => now + self.limits.grace,
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
        self.lease_ends.before(self.limits.least_lease())
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

    enum Order {
        Renew(u32),
        Lost,
    }

    /// Returns what is done with a job, if these orders come at these times, and why.
    fn story(mut plan: Plan, orders: &[(u32, Order)]) -> String {
        let (mut orders, mut story) = (orders.iter().peekable(), String::new());
        while let Some(next) = plan.next() {
            let time = orders.peek().map_or(next, |(time, _)| at(*time).min(next));
            assert_eq!(plan.due(time.before(MS)), Step::Nothing, "{story}");
            while let Some((_, order)) = orders.next_if(|(due, _)| at(*due) == time) {
                match order {
                    Order::Renew(lease_ends) => plan.renew(at(*lease_ends)),
                    Order::Lost => assert_eq!(plan.cause().is_none(), plan.end(Cause::Lost, time)),
                }
            }
            let step = plan.due(time);
            if step != Step::Nothing {
                story += &format!("{step:?} {}, ", time.since(at(0)).as_millis());
            }
        }
        assert_eq!(plan.due(at(60_000)), Step::Nothing);
        format!("{story}{:?}", plan.cause().unwrap())
    }

    #[test]
    fn a_job_is_ended_in_time() {
        use Order::{Lost, Renew};
        let of_lease = "Term(LeaseEnds) 4400, Kill 4900, LeaseEnds";
        assert_eq!(story(plan(5000, None), &[]), of_lease);
        let renewed = story(plan(5000, None), &[(100, Renew(7000))]);
        assert_eq!(renewed, "Term(LeaseEnds) 6400, Kill 6900, LeaseEnds");
        assert_eq!(story(plan(5000, None), &[(4450, Renew(9000))]), of_lease, "TERM is not taken back");
        let lost = story(plan(5000, None), &[(100, Lost), (100, Renew(100)), (900, Lost)]);
        assert_eq!(lost, "Kill 1100, Lost", "there is the grace and no more");
        let too_long = story(plan(50_000, Some(2000)), &[]);
        assert_eq!(too_long, "Term(AtMost) 2000, Kill 3000, AtMost");
        // 1900: the lease is short. There is no second TERM.
        let bounded = story(plan(2500, Some(1800)), &[]);
        assert_eq!(bounded, "Term(AtMost) 1800, Kill 2400, LeaseEnds");
    }

    #[test]
    fn a_plan_that_wakes_too_late_kills_at_the_second_question() {
        let mut plan = plan(5000, None);
        assert_eq!(plan.due(at(20_000)), Step::Term(Cause::LeaseEnds));
        assert_eq!(plan.due(at(20_000)), Step::Kill);
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
