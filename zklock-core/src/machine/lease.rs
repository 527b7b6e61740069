//! For how long a holder may rely on its hold without hearing from the ensemble again.
//!
//! A reply, a ping or a read shows that some server is alive; it shows nothing about what the leader
//! thinks of the session, and a follower cut off from its leader goes on answering them while the
//! leader gives the lock to the next in the queue. Only an acknowledged quorum write proves that the
//! leader still had the session when it committed it.
//!
//! Let T be the session's timeout. The leader learns that a session is alive from the followers'
//! ping replies, every half tick, which with a server's usual limits is at most T/4. Links keep their
//! order, so if two writes were sent at most T/10 apart, the leader expires the session later than
//! the sending of the first + T − T/4 − T/10: at least T/2 after the sending of the second. Of a
//! write with none close before it less is known, and it counts for T/4.

use super::Moment;
use std::time::Duration;

/// What the acknowledged writes of one session prove.
///
/// ```
/// use std::time::Duration;
/// use zklock_core::machine::{lease::Lease, Moment};
///
/// let at = |millis| Moment::at(Duration::from_millis(millis));
/// let mut lease = Lease::new(Duration::from_secs(10), at(0));
/// lease.acknowledge(at(900), at(901));
/// assert!(lease.until() > at(5_000) && lease.until() < at(6_000));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    timeout: Duration,
    /// When the latest of the acknowledged writes was sent.
    sent: Moment,
    until: Moment,
    /// How often the lease was renewed only after it had lapsed.
    gaps: u64,
}

impl Lease {
    /// The lease of a session with this timeout, whose opening was asked for at `sent`.
    pub fn new(timeout: Duration, sent: Moment) -> Self {
        let mut lease = Self { timeout, sent, until: sent, gaps: 0 };
        lease.until = sent + lease.proven_by(false);
        lease
    }

    /// How far apart two writes may be sent for the later to prove as much as it can: a tenth of the
    /// timeout.
    pub fn heartbeat(&self) -> Duration {
        self.timeout / 10
    }

    /// How often a holder writes: a little more often, because timers are late.
    pub fn beat(&self) -> Duration {
        self.timeout / 12
    }

    /// The moment up to which the session is proven to be alive.
    pub fn until(&self) -> Moment {
        self.until
    }

    /// When the latest of the acknowledged writes was sent.
    pub fn last_sent(&self) -> Moment {
        self.sent
    }

    /// Notes that a quorum write which was sent at `sent` has been acknowledged by `now`.
    ///
    /// `sent` is to be taken before the request is handed to anything that could delay it.
    pub fn acknowledge(&mut self, sent: Moment, now: Moment) {
        if sent <= self.sent {
            return;
        }
        let close = sent.since(self.sent) <= self.heartbeat();
        self.sent = sent;
        if now >= self.until {
            self.gaps += 1;
        }
        self.until = self.until.max(sent + self.proven_by(close));
    }

    /// Less a fiftieth, for two clocks that do not run equally fast.
    fn proven_by(&self, close: bool) -> Duration {
        let proven = if close { self.timeout / 2 } else { self.timeout / 4 };
        proven - self.timeout / 50
    }
}

/// One hold's part in the lease of its session.
///
/// A lease that lapsed may be renewed for the session, but a holder has by then been told that it
/// can rely on nothing. It takes part again only after two checks of its own node, both sent after
/// the lapse: a live node of that name proves that it was never lost, and two writes prove more than
/// one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Share {
    gaps: u64,
    fresh: u8,
}

impl Share {
    /// The part of a hold that is granted now.
    pub fn new(lease: &Lease) -> Self {
        Self { gaps: lease.gaps, fresh: 0 }
    }

    /// For how long from `now` the hold can be relied upon.
    pub fn valid_for(&self, lease: &Lease, now: Moment) -> Duration {
        if self.gaps == lease.gaps { lease.until.since(now) } else { Duration::ZERO }
    }

    /// Notes that a check of the hold's own node was acknowledged; `lease` knows of it already.
    ///
    /// `was_valid` says whether the hold could still be relied upon when the check was sent.
    pub fn checked(&mut self, lease: &Lease, was_valid: bool) {
        if self.gaps == lease.gaps || was_valid {
            self.fresh = 0;
        } else if self.fresh == 0 {
            self.fresh = 1;
        } else {
            *self = Self::new(lease);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(10_000);

    fn at(millis: u64) -> Moment {
        Moment::at(Duration::from_millis(millis))
    }

    #[test]
    fn a_lone_write_proves_a_quarter_and_a_close_one_half() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        assert_eq!(lease.until(), at(2_300));
        lease.acknowledge(at(1_000), at(1_001));
        assert_eq!(lease.until(), at(5_800));
        lease.acknowledge(at(4_000), at(4_001));
        assert_eq!(lease.until(), at(6_300), "the gap to the write before was more than a tenth");
        lease.acknowledge(at(4_900), at(4_901));
        assert_eq!(lease.until(), at(9_700));
    }

    #[test]
    fn news_of_an_older_write_changes_nothing() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        lease.acknowledge(at(1_000), at(1_500));
        let before = lease.clone();
        lease.acknowledge(at(900), at(1_600));
        assert_eq!(lease, before);
    }

    #[test]
    fn a_lease_never_shrinks() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        lease.acknowledge(at(1_000), at(1_001));
        lease.acknowledge(at(2_500), at(2_501));
        assert_eq!(lease.until(), at(5_800));
    }

    #[test]
    fn an_ack_after_the_lapse_renews_the_session_but_not_the_hold() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        lease.acknowledge(at(1_000), at(1_001));
        let mut share = Share::new(&lease);
        assert_eq!(share.valid_for(&lease, at(5_700)), Duration::from_millis(100));
        assert_eq!(share.valid_for(&lease, at(5_800)), Duration::ZERO);
        // Sent in time, acknowledged after the lapse: not fresh.
        lease.acknowledge(at(5_000), at(6_000));
        share.checked(&lease, true);
        assert_eq!(share.valid_for(&lease, at(6_000)), Duration::ZERO);
        assert!(lease.until() > at(6_000));
        lease.acknowledge(at(6_100), at(6_101));
        share.checked(&lease, false);
        assert_eq!(share.valid_for(&lease, at(6_101)), Duration::ZERO, "one check is not enough");
        lease.acknowledge(at(6_200), at(6_201));
        share.checked(&lease, false);
        assert_eq!(share.valid_for(&lease, at(6_201)), at(11_000).since(at(6_201)));
    }

    #[test]
    fn a_second_lapse_during_the_recovery_starts_it_again() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        let mut share = Share::new(&lease);
        for sent in [10_000, 20_000] {
            lease.acknowledge(at(sent), at(sent + 1));
            share.checked(&lease, false);
        }
        // Two fresh checks, however far apart, prove that the node was never lost.
        assert_eq!(share.valid_for(&lease, at(20_001)), at(22_300).since(at(20_001)));
    }
}
