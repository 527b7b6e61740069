//! For how long a holder may rely on its hold without hearing from the ensemble again.
//!
//! A reply, a ping or a read shows that some server is alive; it shows nothing about what the leader
//! thinks of the session, and a follower cut off from its leader goes on answering them while the
//! leader gives the lock to the next in the queue. Only acknowledged quorum writes prove something,
//! and a single one proves little: the leader may commit it a moment before it ends the session,
//! since a write that comes through a follower does not prolong the session.
//!
//! Let T be the session's timeout. What prolongs it are the follower's answers to the leader's pings,
//! which come every half tick, with a server's usual limits at most T/4 apart, and which name the
//! sessions that the follower has heard of. Links keep their order. Now let a write be acknowledged,
//! and let k be the latest that had been acknowledged when it was sent:
//!
//! * The leader has sent a ping in the T/4 before k. The follower had answered it when it handed on
//!   the acknowledgement of k, so the leader has read the answer before it committed the write. Let j
//!   be the latest write that had been acknowledged T/4 before k was sent: the follower knew of j
//!   when it answered. So the leader expires the session no earlier than T after the sending of j.
//! * Where there is no such j, the session still lives a quarter of T after the sending of k: by then
//!   the client would have given up a connection over which it had heard nothing.
//! * The opening of the session is the leader's own doing: it counts for T.
//!
//! No more than T/2 after the sending of a write is ever claimed, which a holder that writes every
//! T/12 can claim always: what is left is for what nobody thought of. A session that was idle needs
//! two writes, one after the other, before it proves anything.

use super::Moment;
use std::collections::VecDeque;
use std::time::Duration;

/// What the acknowledged writes of one session prove.
///
/// ```
/// use std::time::Duration;
/// use zklock_core::machine::{lease::Lease, Moment};
///
/// let at = |millis| Moment::at(Duration::from_millis(millis));
/// let mut lease = Lease::new(Duration::from_secs(10), at(0));
/// assert_eq!(lease.until(), at(4_800));
/// // After a long silence, one write proves nothing, the next a quarter.
/// lease.acknowledge(at(60_000), at(60_001));
/// assert!(lease.until() < at(60_000));
/// lease.acknowledge(at(60_002), at(60_003));
/// assert_eq!(lease.until(), at(62_300));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    timeout: Duration,
    opened: Moment,
    /// Acknowledged writes of the last T, oldest first: not all, but enough.
    writes: VecDeque<Write>,
    until: Moment,
    /// How often a write was acknowledged only after the lease had lapsed.
    gaps: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Write {
    sent: Moment,
    acknowledged: Moment,
}

impl Lease {
    /// The lease of a session with this timeout, whose opening was asked for at `sent`.
    pub fn new(timeout: Duration, sent: Moment) -> Self {
        let opening = Write { sent, acknowledged: sent };
        let writes = VecDeque::from([opening]);
        let mut lease = Self { timeout, opened: sent, writes, until: sent, gaps: 0 };
        lease.claim(sent, sent + timeout);
        lease
    }

    /// How long a holder may be without news of its own node: a tenth of the timeout.
    pub fn heartbeat(&self) -> Duration {
        self.timeout / 10
    }

    /// How long after one write a holder sends the next: sooner than a heartbeat, because timers are
    /// late, and twice as often while the lease is short.
    pub fn beat(&self, now: Moment) -> Duration {
        if self.until.since(now) < self.timeout / 4 { self.timeout / 24 } else { self.timeout / 12 }
    }

    /// The moment up to which the session is proven to be alive.
    pub fn until(&self) -> Moment {
        self.until
    }

    /// Notes that a quorum write which was sent at `sent` has been acknowledged by `now`.
    ///
    /// `sent` is to be taken before the request is handed to anything that could delay it.
    pub fn acknowledge(&mut self, sent: Moment, now: Moment) {
        if now >= self.until {
            self.gaps += 1;
        }
        let mut proven = self.opened + self.timeout;
        if let Some(before) = self.latest_acknowledged_by(sent, Duration::ZERO) {
            proven = proven.max(before + self.timeout / 4);
            let ping = self.timeout / 4;
            if let Some(known) = self.latest_acknowledged_by(before, ping) {
                proven = proven.max(known + self.timeout);
            }
        }
        self.claim(sent, proven);
        self.remember(Write { sent, acknowledged: now });
    }

    /// The session is proven to live until `proven`, by a write that was sent at `sent`.
    fn claim(&mut self, sent: Moment, proven: Moment) {
        let claimed = proven.min(sent + self.timeout / 2);
        // A fiftieth is for two clocks that do not run equally fast.
        self.until = self.until.max(claimed.before(self.timeout / 50));
    }

    /// When the latest write was sent that had been acknowledged this long before `moment`.
    fn latest_acknowledged_by(&self, moment: Moment, earlier: Duration) -> Option<Moment> {
        let in_time = |write: &&Write| write.acknowledged + earlier <= moment;
        self.writes.iter().filter(in_time).map(|write| write.sent).max()
    }

    /// An older write in the place of a newer proves less, never more: so not all are kept.
    fn remember(&mut self, write: Write) {
        let crowded = self.writes.back().is_some_and(|last| write.sent < last.sent + self.timeout / 64);
        if !crowded {
            self.writes.push_back(write);
        }
        while self.writes.len() > 1 && self.writes[0].sent + self.timeout < write.sent {
            self.writes.pop_front();
        }
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

    /// A lease of a session that has been idle for long, as its first write is acknowledged.
    fn idle() -> Lease {
        let mut lease = Lease::new(TIMEOUT, at(0));
        lease.acknowledge(at(100_000), at(100_001));
        lease
    }

    #[test]
    fn a_lone_write_proves_nothing_and_the_next_a_quarter_from_the_first() {
        let mut lease = idle();
        assert!(lease.until() < at(100_000));
        lease.acknowledge(at(100_200), at(100_201));
        assert_eq!(lease.until(), at(102_300));
    }

    #[test]
    fn a_write_sent_before_the_one_before_was_acknowledged_proves_no_more_than_that() {
        let mut lease = idle();
        lease.acknowledge(at(100_000), at(100_002));
        assert!(lease.until() < at(100_000));
    }

    #[test]
    fn steady_writes_prove_half_from_the_opening_on_or_after_a_while() {
        let (mut fresh, mut idle) = (Lease::new(TIMEOUT, at(0)), idle());
        for beat in 1..20 {
            let (sooner, later) = (beat * 833, 100_000 + beat * 833);
            fresh.acknowledge(at(sooner), at(sooner + 1));
            idle.acknowledge(at(later), at(later + 1));
            assert_eq!(fresh.until(), at(sooner + 4_800));
            assert!(idle.until() == at(later + 4_800) || beat <= 5, "beat {beat}: {:?}", idle.until());
        }
    }

    #[test]
    fn what_a_ping_may_not_have_told_the_leader_counts_for_a_quarter() {
        let mut lease = idle();
        // 2.5 s before 102,501 no write had been acknowledged.
        lease.acknowledge(at(102_500), at(102_501));
        lease.acknowledge(at(102_600), at(102_601));
        assert_eq!(lease.until(), at(104_800));
        // But before this one's predecessor the first had.
        lease.acknowledge(at(102_800), at(102_801));
        lease.acknowledge(at(103_000), at(103_001));
        assert_eq!(lease.until(), at(107_800));
    }

    #[test]
    fn a_lease_never_shrinks_and_many_writes_need_little_room() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        for sent in 0..50_000 {
            let before = lease.until();
            lease.acknowledge(at(sent), at(sent + 1));
            assert!(lease.until() >= before);
        }
        assert!(lease.writes.len() <= 66, "{} writes", lease.writes.len());
        assert_eq!(lease.until(), at(49_999 + 4_800));
    }

    #[test]
    fn an_ack_after_the_lapse_renews_the_session_but_not_the_hold() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        let mut share = Share::new(&lease);
        assert_eq!(share.valid_for(&lease, at(4_700)), Duration::from_millis(100));
        assert_eq!(share.valid_for(&lease, at(4_800)), Duration::ZERO);
        // Sent in time, acknowledged after the lapse: not fresh.
        lease.acknowledge(at(4_000), at(10_000));
        share.checked(&lease, true);
        lease.acknowledge(at(10_100), at(10_101));
        share.checked(&lease, false);
        assert_eq!(share.valid_for(&lease, at(10_101)), Duration::ZERO, "one check is not enough");
        lease.acknowledge(at(10_200), at(10_201));
        share.checked(&lease, false);
        assert!(share.valid_for(&lease, at(10_201)) > Duration::from_secs(2));
    }

    #[test]
    fn two_fresh_checks_restore_a_hold_however_far_apart() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        let mut share = Share::new(&lease);
        for sent in [20_000, 21_000] {
            lease.acknowledge(at(sent), at(sent + 1));
            share.checked(&lease, false);
        }
        assert_eq!(share.valid_for(&lease, at(21_001)), at(22_300).since(at(21_001)));
    }
}
