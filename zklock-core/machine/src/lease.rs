//! How long a holder may rely on its hold without hearing from the ensemble again.
//!
//! A reply, a ping or a read shows that some server is alive. It shows nothing about what the leader
//! thinks of the session, and a follower cut off from its leader goes on answering them while the leader
//! gives the lock to the next in the queue. Only acknowledged quorum writes prove something, and a single
//! one proves little: the leader may commit it a moment before it ends the session, since a write that
//! comes through a follower does not prolong the session.
//!
//! Let T be the session timeout. What prolongs the session is the followers' answers to the leader's
//! pings. Pings come every half tick, which with a server's usual limits is at most T/4, and the answers
//! name the sessions that the follower has heard from. Links keep their order. Now let a write be
//! acknowledged, and let k be the latest write that had been acknowledged when it was sent:
//!
//! * The leader sent a ping in the T/4 before k. The follower had answered it by the time it passed on
//!   the acknowledgement of k, so the leader read the answer before it committed the write. Let j be the
//!   latest write that had been acknowledged T/4 before k was sent: the follower knew of j when it
//!   answered. So the leader expires the session no earlier than T after the sending of j.
//! * If there is no such j, the session still lives a quarter of T after the sending of k: by then the
//!   client would have given up a connection on which it had heard nothing. This is true of a connection
//!   that has existed for three quarters of T, so that a ping has been answered since something was heard
//!   on it. About a younger one, the leader may know no more than that it was opened, and the opening may
//!   be answered late.
//! * The opening of the session is done by the leader itself, so it counts for T.
//!
//! An observer that follows the leader counts as a follower here. One that follows an observer master
//! (since ZooKeeper 3.6) is pinged by the master, which answers the leader's pings in its place: two half
//! ticks. Then "at most T/4" holds for sessions of four ticks or more; servers allow two.
//!
//! The lease never claims more than T/2 after the sending of a write, which a holder that writes every
//! T/12 can always claim. The rest is a reserve for whatever nobody thought of. A session that was idle
//! needs two writes, one after the other, before it proves anything.
//!
//! # Reconnecting
//!
//! A connection that breaks is followed by another, perhaps to another server, which asks for the session
//! again. That changes two things:
//!
//! * The server grants a timeout of its own, T', and has the leader count from then on as if the session
//!   had been touched with T'. If T' is smaller than T, this *shortens* the session's life, and the leader
//!   acts on it whether or not the answer ever arrives. No claim is too long for that, if no server of an
//!   ensemble grants less than *half* of what another one granted: a claim ends T/2 after the sending of
//!   some write at the latest. A write on an earlier connection was sent before the request, because
//!   nothing more is sent there, so its claim ends before T/2, and so before T', after the request. A
//!   write on the new connection is sent when T' is known. So nothing that was claimed is ever taken back:
//!   a program that has read the lease once may rely on what it said, to the end. If a server does grant less
//!   than half, earlier claims are cut to T' after the request, and the holds that relied on them are
//!   lost: see [`Lease::attach`].
//! * "Links keep their order" is true of each follower by itself. Acknowledgements through one say
//!   nothing about the pings that the next one has answered, so the history begins again. In its place,
//!   the request for the session counts like the opening does, because the leader touches a session that
//!   it is asked about. But a deposed leader that does not know it answers too. So the request counts
//!   only after a write sent on the new connection has been acknowledged: a follower that changes its
//!   leader closes its connections, so the leader of that write is the one that was asked. A write that
//!   was sent earlier proves nothing any more.
//!
//! T only ever gets smaller within a session, even if a later connection is granted more: a leader that
//! is elected later begins with the timeout from the session's creation, and a connection that was given
//! up may have bytes still on their way, for which its server touches the session with the old timeout.

use super::{Moment, times};
use std::collections::VecDeque;
use std::time::Duration;

/// The lease of one session, as its acknowledged writes prove it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock_machine::{lease::Lease, Moment};
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
    /// The smallest timeout that was granted.
    timeout: Duration,
    /// When the session was asked for on the current connection.
    opened: Moment,
    /// When the answer came.
    answered: Moment,
    /// Acknowledged writes of the last T on the current connection, oldest first: not all, but enough.
    writes: VecDeque<Write>,
    claimed: Moment,
    /// Whether a server is asked for the session and has not answered.
    is_asked: bool,
    /// How many times a write was acknowledged only after the lease had lapsed.
    gaps: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Write {
    sent: Moment,
    acknowledged: Moment,
}

/// Returns how long a lease is at most, with this session timeout.
pub fn longest(timeout: Duration) -> Duration {
    times::LEASE.of(timeout) - times::CLOCKS.of(timeout)
}

impl Lease {
    /// Makes the lease of a session with this timeout, whose opening was asked for at `sent`.
    pub fn new(timeout: Duration, sent: Moment) -> Self {
        let opening = Write { sent, acknowledged: sent };
        let writes = VecDeque::from([opening]);
        let mut lease =
            Self { timeout, opened: sent, answered: sent, writes, claimed: sent, is_asked: false, gaps: 0 };
        lease.claim(sent, sent + timeout);
        lease
    }

    /// Returns the session timeout: the smallest that a server has granted.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns how long a holder may be without news of its own node.
    pub fn heartbeat(&self) -> Duration {
        times::HEARTBEAT.of(self.timeout)
    }

    /// Returns the moment up to which the session is proven to be alive. It never becomes an earlier one, unless a
    /// server grants [too little](Self::attach).
    pub fn until(&self) -> Moment {
        self.claimed
    }

    /// Whether the connection is still the one on which a request was sent at `sent`.
    pub fn is_connected_since(&self, sent: Moment) -> bool {
        !self.is_asked && sent >= self.opened
    }

    /// Whether writes that were or will be sent at the times `then` keep the lease from lapsing, if their acknowledgements are
    /// late by `late`. Nothing is proven by that.
    ///
    /// What one write proves, counted from its sending, ends before what the next one will prove is known, if the two are too
    /// far apart. The opening of the session counts as a write.
    pub fn can_be_kept(&self, late: Duration, then: impl Iterator<Item = Moment>) -> bool {
        let lasts = self.timeout - times::CLOCKS.of(self.timeout);
        let known = late * 3 + times::PING.of(self.timeout) + times::CLOSE.of(self.timeout);
        let sent = std::iter::once(self.opened).chain(self.writes.iter().map(|write| write.sent)).chain(then);
        let sent: Vec<_> = sent.filter(|sent| *sent + lasts >= self.until()).collect();
        sent.windows(2).all(|pair| pair[1].since(pair[0]) + known <= lasts)
    }

    /// Returns the term of the lease that is running `now`; `None` if it has lapsed. After a lapse, a new term
    /// begins.
    pub fn term(&self, now: Moment) -> Option<u64> {
        (self.until() > now).then_some(self.gaps)
    }

    /// Notes that a server is asked for the session, on a new connection. Nothing more is sent on earlier connections.
    pub fn ask(&mut self) {
        self.is_asked = true;
    }

    /// Whether a server that grants this timeout grants too little: less than half of what another one granted. Then
    /// earlier claims may be too long.
    pub fn is_too_short(&self, timeout: Duration) -> bool {
        timeout < times::LEASE.of(self.timeout)
    }

    /// Notes that a server has granted the session with this timeout, as it was asked for at `sent`; it is `now`.
    ///
    /// This counts only after a write that is sent later has been acknowledged. If the timeout [is too
    /// short](Self::is_too_short), what was claimed before is cut, and its holders must learn that at once.
    pub fn attach(&mut self, sent: Moment, timeout: Duration, now: Moment) {
        debug_assert!(sent >= self.opened, "writes of an earlier connection would count again");
        if timeout < self.timeout {
            if self.is_too_short(timeout) {
                self.claimed = self.claimed.min((sent + timeout).before(times::CLOCKS.of(timeout)));
            }
            self.timeout = timeout;
        }
        (self.opened, self.answered) = (sent, now);
        self.is_asked = false;
        self.writes.clear();
    }

    /// Notes that a quorum write which was sent at `sent` has been acknowledged by `now`.
    ///
    /// Take `sent` before the request is passed to anything that could delay it. A write that was sent on
    /// an earlier connection proves nothing.
    pub fn acknowledge(&mut self, sent: Moment, now: Moment) {
        debug_assert!(sent <= now);
        if sent < self.opened {
            return;
        }
        // Before more is claimed: no hold from before the gap has a share in that.
        if now >= self.claimed {
            self.gaps += 1;
        }
        // It lived when it was asked for, and so for one timeout from then.
        let mut proven = self.opened + self.timeout;
        let ping = times::PING.of(self.timeout);
        if let Some(before) = self.latest_acknowledged_by(sent, Duration::ZERO) {
            if before >= self.answered + times::PINGED.of(self.timeout) {
                proven = proven.max(before + ping);
            }
            if let Some(known) = self.latest_acknowledged_by(before, ping) {
                proven = proven.max(known + self.timeout);
            }
        }
        self.claim(sent, proven);
        self.remember(Write { sent, acknowledged: now });
    }

    /// The session is proven to live until `proven`, by a write that was sent at `sent`.
    fn claim(&mut self, sent: Moment, proven: Moment) {
        let claimed = proven.min(sent + times::LEASE.of(self.timeout));
        self.claimed = self.claimed.max(claimed.before(times::CLOCKS.of(self.timeout)));
    }

    /// Returns when the latest write that had been acknowledged this long before `moment` was sent.
    fn latest_acknowledged_by(&self, moment: Moment, earlier: Duration) -> Option<Moment> {
        let in_time = |write: &&Write| write.acknowledged + earlier <= moment;
        self.writes.iter().filter(in_time).map(|write| write.sent).max()
    }

    fn remember(&mut self, write: Write) {
        // An older write in place of a newer one proves less, never more. So not all are kept.
        let apart = times::REMEMBERED.of(self.timeout);
        let crowded = self.writes.back().is_some_and(|last| write.sent < last.sent + apart);
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
/// A lease that lapsed may be renewed for the session, but by then its holders have learned that they can
/// rely on nothing. A hold shares in the lease again only after two checks of its own node, both sent
/// after the lapse: an existing node with that name proves that it was never lost, and two writes prove
/// more than one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Share {
    gaps: u64,
    /// Whether a check that was sent after the lapse has found its node.
    is_found: bool,
}

impl Share {
    /// Makes the share of a hold that is granted now.
    pub fn new(lease: &Lease) -> Self {
        Self { gaps: lease.gaps, is_found: false }
    }

    /// Returns how long from `now` the hold can be relied on.
    pub fn valid_for(&self, lease: &Lease, now: Moment) -> Duration {
        self.until(lease).map_or(Duration::ZERO, |until| until.since(now))
    }

    /// Returns the moment up to which the hold can be relied on; `None` if its lease has lapsed.
    pub fn until(&self, lease: &Lease) -> Option<Moment> {
        (self.gaps == lease.gaps).then(|| lease.until())
    }

    /// Notes that a check of the hold's own node was acknowledged by `now`; `lease` already knows of it.
    ///
    /// `term` is the lease's term when the check was sent. If it is the hold's own term, the hold could
    /// still be relied on then. If the lease has not begun again, because the check was sent before the one
    /// before was acknowledged, the next one may restore the hold.
    pub fn checked(&mut self, lease: &Lease, term: Option<u64>, now: Moment) {
        if self.gaps == lease.gaps || term == Some(self.gaps) {
            self.is_found = false;
        } else if self.is_found && lease.until() > now {
            *self = Self::new(lease);
        } else {
            self.is_found = true;
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
    fn a_lease_never_shrinks_and_many_writes_need_little_room() {
        for step in [1, 3] {
            let mut lease = Lease::new(TIMEOUT, at(0));
            for sent in (0..=49_999).step_by(step) {
                let before = lease.until();
                lease.acknowledge(at(sent), at(sent + 1));
                assert!(lease.until() >= before);
            }
            assert!(lease.writes.len() <= 66, "{} writes", lease.writes.len());
            assert!(lease.until() >= at(49_997 + 4_800));
        }
    }

    fn latest_write(lease: &Lease) -> Option<Moment> {
        lease.writes.back().map(|write| write.sent)
    }

    #[test]
    fn a_write_that_was_sent_as_the_session_was_asked_for_counts() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        lease.attach(at(5_000), TIMEOUT, at(5_010));
        lease.acknowledge(at(4_999), at(5_020));
        assert_eq!(latest_write(&lease), None);
        lease.acknowledge(at(5_000), at(5_020));
        assert_eq!(latest_write(&lease), Some(at(5_000)));
    }

    #[test]
    fn writes_are_remembered_a_sixty_fourth_of_the_timeout_apart() {
        let timeout = Duration::from_millis(6_400);
        let mut lease = Lease::new(timeout, at(0));
        for (sent, latest) in [(1_000, 1_000), (1_099, 1_000), (1_100, 1_100), (1_199, 1_100)] {
            lease.acknowledge(at(sent), at(sent + 1));
            assert_eq!(latest_write(&lease), Some(at(latest)));
        }
    }
}
