//! The holds of one session: what proves them, when the next proof is due, and when they are lost.
//!
//! One check of nodes, every twelfth of the session timeout, covers all holds of a session. It is a write that the quorum
//! commits, because nothing less proves anything. It changes no node and wakes nobody. It fails if an operator has
//! deleted a node, so the holder learns of that too.
//!
//! A lease that lapses does not end its holds at once. A process that was asleep may find its session alive, and two
//! checks of a hold's own nodes restore it. But the holder must learn of a loss within a heartbeat, or whatever
//! time its client has [chosen](Keeper::loss_timeout), so a hold may go without a lease only for that long before it is lost.
//!
//! # Many holds
//!
//! A check that names every node grows with their number, and the servers write it to their logs. So only a few are
//! named. Each of the others is watched instead when its first check is due. On one connection, a server reports what its
//! watches have seen before it answers later requests. So if a watch was set when a check was sent, and is still silent
//! when the answer arrives, that proves as much as naming its node would have. It does not matter how far that server
//! lags behind the others: before it answers a check, it has applied everything that was committed before the check. A
//! watch ends with its connection. Then its node is named again, or watched anew.
//!
//! So the driver must pass on every event that came before the answer to a check, and only then the answer.
//!
//! # Late answers
//!
//! A beat does not wait for the answer to the last one. The next one is sent as if that had been answered, and when an
//! answer takes longer than a twelfth of the timeout T, twice as often. Answers that are sooner cost no beat more than they
//! would one after the other.
//!
//! How late may answers be? Say they take d, and beats are b apart. The [lease](crate::lease) that an answer gives runs from
//! the sending of a write which had been answered T/4 before another one was sent, which had been answered when the beat was
//! sent. So it was sent up to 2d + T/4 + 2b before the beat, and the lease runs for T from there, less a fiftieth. The answer
//! comes after d, and must last until the next, which comes b later: 3d + T/4 + 3b ≤ T − T/50. With b = T/24, that is so for
//! [any d up to T/5](times::BEARABLE). More beats would be of little use: with as many as there could be, d must still be less
//! than 0.244 T. The three answers are those to three writes that must be sent one after the other, and T/4 is how seldom
//! followers may hear from their leader.
//!
//! A session that was idle has no such writes at first. A grant takes care of answers that are late by then. If they are
//! only late from then on, a hold is certain to last with d up to T/12 until it is T/2 old.
//!
//! An attempt to acquire needs a lease too, and its own writes are one after the other. So while it waits for a late answer,
//! there are beats even if nothing is held. They name the root.
//!
//! # Rare beats
//!
//! A beat is a write, and thousands of clients with holds make thousands of writes a second. A client may be content to
//! [learn later](Keeper::loss_timeout) of a loss that no watch reports. Then beats are further apart, up to 5/18 of T. That is
//! about as far as can be: the lease that an answer gives runs for T from a write that had been answered T/4 before the beat
//! before was sent. With beats a little more than T/4 apart, that is the beat before the last one. So the lease runs for
//! 0.42 T from the sending of each beat, and 0.14 T of it are left when the next one is sent.
//!
//! This only works if answers come at once, and an answer that is suddenly later than 0.14 T finds that the lease has lapsed.
//! So while answers are late by more than T/40, beats are T/6 apart at most, and while they are late by more than T/10, they
//! are as usual. What counts is the slowest answer of the last T: one that comes at once, among others that are late, must not
//! make beats rare. Answers that are late by up to T/8 cost no hold. If they become late again just after beats have become
//! rare, the lease may lapse for a moment.
//!
//! Every hold is watched then, and not only those that are too many to be named. So most losses are still known at once.

mod lapses;
mod proof;
mod seen;
mod watching;

pub use proof::{Check, HeldNode, HoldId, Proof};
pub use watching::{Seen, ToWatch};

use crate::lease::{Lease, Share};
use crate::status::LossReason;
use crate::{Moment, times};
use lapses::Lapses;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use watching::{Proving, Watching};

/// The most bytes of paths in one request: a quarter of what servers take by default.
const BYTES_AT_MOST: usize = 256 * 1024;
/// The bytes that a check takes besides its path.
const CHECK_BYTES: usize = 32;
/// The most beats under way at a time. A server that has gone silent should not find a heap of them later.
const BEATS_AT_MOST: usize = 6;

/// The holds of one session, and its lease.
///
/// Its driver reports events through the `handle_` methods, and polls in this order: [`poll_lost`](Self::poll_lost) until
/// there is none, [`poll_watch`](Self::poll_watch), [`poll_beat`](Self::poll_beat), [`poll_timeout`](Self::poll_timeout).
/// It polls when the time that the last one returned has come, and after everything that may bring something forward: a
/// grant, a proof, watches that are set or fire, an attempt that waits for a late answer, the end of the session, a server
/// that is asked or has granted the session again. A write or a release can only put off what is due.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock_machine::keeper::{Check, HeldNode, Keeper};
/// use zklock_machine::Moment;
///
/// let at = |millis| Moment::at(Duration::from_millis(millis));
/// let mut keeper = Keeper::new(Duration::from_secs(12), at(0), at(0));
/// let node = HeldNode { path: "/a/lock-0000000000".into(), origin: None };
/// let hold = keeper.handle_grant(vec![node], at(0));
///
/// assert!(keeper.poll_beat(at(0), true).is_none());
/// assert_eq!(keeper.poll_timeout(at(0), true), Some(at(1_000)));
/// let beat = keeper.poll_beat(at(1_000), true).unwrap();
/// keeper.handle_proof(&beat, &Check::Answered { missing: vec![0] }, at(1_010));
/// assert_eq!(keeper.poll_lost(at(1_010)).unwrap().0, hold);
/// ```
#[derive(Clone, Hash, Debug)]
pub struct Keeper {
    lease: Lease,
    has_heartbeat: bool,
    /// What was asked for: see [`loss_timeout`](Self::loss_timeout).
    loss_timeout: Duration,
    holds: BTreeMap<HoldId, Record>,
    nodes: BTreeMap<Arc<str>, HoldId>,
    /// The holds that are named in checks, by when they were proven.
    named: BTreeSet<(Moment, HoldId)>,
    /// The holds that are watched, by when they were last named.
    watched: BTreeSet<(Moment, HoldId)>,
    watching: Watching,
    lapses: Lapses,
    next: HoldId,
    /// When the beats were sent that are on their way.
    under_way: BTreeSet<Moment>,
    /// How many attempts wait for a late answer, and when the latest of their requests, or the latest beat, was sent.
    awaiting: usize,
    awaited: Moment,
    /// There is no beat before this, because the last one failed.
    earliest: Moment,
    /// How late the slowest of the last answers to beats was, and when it came.
    late: Duration,
    late_at: Moment,
    over: Option<LossReason>,
    /// Not reported yet.
    lost: VecDeque<(HoldId, LossReason)>,
    /// The last moment up to which a lost hold was certain to be held, before it was found to be lost.
    promised: Moment,
}

#[derive(Clone, Hash, Debug)]
struct Record {
    nodes: Vec<HeldNode>,
    share: Share,
    /// When the latest write that proved the nodes by name was sent.
    proven: Moment,
    proving: Proving,
    /// When it was noticed that it has no lease.
    lapsed: Option<Moment>,
}

impl Keeper {
    /// Makes the keeper of a session that was asked for at `asked`, and is granted `now` with this timeout.
    pub fn new(timeout: Duration, asked: Moment, now: Moment) -> Self {
        let mut lease = Lease::new(timeout, asked);
        lease.attach(asked, timeout, now);
        Self {
            lapses: Lapses::new(&lease, now),
            lease,
            has_heartbeat: true,
            loss_timeout: Duration::ZERO,
            holds: BTreeMap::new(),
            nodes: BTreeMap::new(),
            named: BTreeSet::new(),
            watched: BTreeSet::new(),
            watching: Watching::new(),
            next: HoldId(0),
            under_way: BTreeSet::new(),
            awaiting: 0,
            awaited: Moment::default(),
            earliest: Moment::default(),
            late: Duration::ZERO,
            late_at: Moment::default(),
            over: None,
            lost: VecDeque::new(),
            promised: Moment::default(),
        }
    }

    /// Limits how many holds a check names while others can be watched.
    #[must_use]
    pub fn naming_at_most(mut self, holds: usize) -> Self {
        self.watching.named_at_most = holds;
        self
    }

    /// Changes how soon a holder learns of a loss that nothing but a beat shows. It is a tenth of the session timeout at least,
    /// as without this, and a third at most. With more time there are [fewer beats](self#rare-beats), and all holds are watched, so
    /// that most losses are known at once.
    #[must_use]
    pub fn telling_within(mut self, time: Duration) -> Self {
        self.loss_timeout = time;
        if self.loss_timeout() > self.lease.heartbeat() {
            self.watching.named_at_most = 0;
        }
        self
    }

    /// Without a heartbeat, nothing proves the holds except the checks that their holders ask for, so they lapse without
    /// being lost. All are watched.
    #[must_use]
    pub fn without_heartbeat(mut self) -> Self {
        self.watching.named_at_most = 0;
        self.has_heartbeat = false;
        self
    }

    /// Whether it sends beats.
    pub fn has_heartbeat(&self) -> bool {
        self.has_heartbeat
    }

    /// Returns how soon a holder learns of a loss that nothing but a beat shows. The session timeout may become shorter, and
    /// then this does, too.
    pub fn loss_timeout(&self) -> Duration {
        let timeout = self.lease.timeout();
        self.loss_timeout.clamp(times::HEARTBEAT.of(timeout), times::RAREST.of(timeout))
    }

    /// Returns the lease of the session.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Returns up to when a hold that is granted `now` could be relied on, if answers are late by `late`. If they are late and
    /// the lease would lapse before beats could renew it, a grant had better wait, and this returns no time. If they are so
    /// late that no hold lasts, it may be granted for as long as it lasts.
    pub fn lease_to_grant(&self, late: Duration, now: Moment) -> Moment {
        let timeout = self.lease.timeout();
        let may_lapse = late > times::RISKY.of(timeout) && late <= times::BEARABLE.of(timeout);
        let then = || self.under_way.iter().copied().chain([now]);
        let waits = self.has_heartbeat && may_lapse && !self.lease.can_be_kept(late, then());
        if waits { now } else { self.lease.until() }
    }

    /// Returns how long from `now` the hold can be relied on; zero if it is no longer registered.
    pub fn valid_for(&self, hold: HoldId, now: Moment) -> Duration {
        self.holds.get(&hold).map_or(Duration::ZERO, |record| record.share.valid_for(&self.lease, now))
    }

    /// Whether twice the time has passed without a proof of the hold in which its holder should [learn of a
    /// loss](Self::loss_timeout). Without heartbeats it is never late.
    pub fn is_late(&self, hold: HoldId, now: Moment) -> bool {
        let late = self.loss_timeout() * 2;
        let is_late =
            self.holds.get(&hold).is_none_or(|record| now.since(self.watching.proven(record)) > late);
        is_late && self.has_heartbeat
    }

    /// Adds a new hold with these nodes, which were proven by a write that was sent at `proven`.
    pub fn handle_grant(&mut self, nodes: Vec<HeldNode>, proven: Moment) -> HoldId {
        let hold = self.next;
        self.next = HoldId(hold.0 + 1);
        let (share, proving) = (Share::new(&self.lease), Proving::Named);
        self.nodes.extend(nodes.iter().map(|node| (node.path.clone(), hold)));
        self.holds.insert(hold, Record { nodes, share, proven, proving, lapsed: None });
        self.named.insert((proven, hold));
        self.lapses.add(hold);
        // The session may have ended just before.
        if let Some(reason) = self.over {
            self.lose(hold, reason);
        }
        hold
    }

    /// Removes the hold: it is being released, or was found to be lost by other means.
    pub fn handle_release(&mut self, hold: HoldId) {
        self.remove(hold);
    }

    /// A quorum write of the session, sent at `sent`, has been acknowledged.
    pub fn handle_write(&mut self, sent: Moment, now: Moment) {
        self.lease.acknowledge(sent, now);
    }

    /// Removes the hold: its driver has found that others may hold the lock.
    pub fn handle_loss(&mut self, hold: HoldId) {
        self.note_promise(hold);
        self.remove(hold);
    }

    /// An attempt goes on waiting for the answer to what it sent at `sent`, which is [late](times::CLOSE). Pass on the end of
    /// that with [`handle_awaited`](Self::handle_awaited).
    pub fn handle_awaiting(&mut self, sent: Moment) {
        self.awaiting += 1;
        self.awaited = self.awaited.max(sent);
    }

    /// An attempt no longer waits for a late answer.
    pub fn handle_awaited(&mut self) {
        debug_assert!(self.awaiting > 0, "each wait ends once");
        self.awaiting = self.awaiting.saturating_sub(1);
    }

    /// A server is asked for the session, on a new connection.
    pub fn handle_asked(&mut self) {
        self.lease.ask();
    }

    /// A server has granted the session again, with this timeout, as it was asked for at `sent`. If that is less than half of
    /// what another server granted, all holds are lost: the servers may end the session sooner than their leases do.
    pub fn handle_granted(&mut self, sent: Moment, timeout: Duration, now: Moment) {
        // Before the lease is cut: what was promised to the holders is read from it.
        if self.lease.is_too_short(timeout) {
            self.lose_all(LossReason::LeaseLapsed);
        }
        self.lease.attach(sent, timeout, now);
    }

    /// The session is over. Only the first reason counts.
    pub fn handle_over(&mut self, reason: LossReason) {
        let reason = *self.over.get_or_insert(reason);
        self.lose_all(reason);
    }

    /// Returns the last moment that an answer about a hold may have named before the hold was found to be lost. Until
    /// then somebody may rely on that answer, so no node of such a hold may be deleted, and the session may not be closed.
    pub fn promised(&self) -> Moment {
        self.promised
    }

    /// Returns a check of this hold alone, because its holder asks for it; `None` if it is no longer registered.
    pub fn prove(&self, hold: HoldId, now: Moment) -> Option<Proof> {
        self.holds.contains_key(&hold).then(|| self.proof_of(&[hold], now, false))
    }

    /// The outcome of a proof.
    pub fn handle_proof(&mut self, proof: &Proof, check: &Check, now: Moment) {
        if proof.is_beat {
            self.under_way.remove(&proof.sent);
            self.note_late(now.since(proof.sent), now);
            if !matches!(check, Check::Answered { .. }) {
                self.earliest = now + times::AGAIN.of(self.lease.timeout());
            }
        }
        match check {
            Check::Answered { missing } => {
                missing.iter().filter_map(|node| proof.owner(*node)).for_each(|hold| {
                    self.lose(hold, LossReason::NodeDeleted);
                });
                // A check that found only missing nodes proves nothing.
                if missing.len() < proof.nodes.len() {
                    self.renew(proof, now);
                }
            }
            Check::SessionOver => self.handle_over(LossReason::SessionExpired),
            Check::Unknown => {}
        }
    }

    /// Returns a hold that is lost, and why. It is no longer registered.
    pub fn poll_lost(&mut self, now: Moment) -> Option<(HoldId, LossReason)> {
        // First, because a hold that has its lease again is not lost.
        self.lapses.look(&self.lease, &mut self.holds, now);
        let (ends, loss_timeout) = (self.has_heartbeat, self.loss_timeout());
        let is_due = |(lapsed, _): &(Moment, HoldId)| ends && now >= *lapsed + loss_timeout;
        while let Some((_, hold)) = self.lapses.first().filter(is_due) {
            self.lose(hold, LossReason::LeaseLapsed);
        }
        self.lost.pop_front()
    }

    /// Returns the next check, if it is due. Another may still be under way: see [above](self#late-answers).
    pub fn poll_beat(&mut self, now: Moment, is_connected: bool) -> Option<Proof> {
        let due = self.due(now)?;
        if !self.may_beat(is_connected) || now < due {
            return None;
        }
        debug_assert!(self.under_way.last().is_none_or(|last| *last < now), "a beat is known by its time");
        self.under_way.insert(now);
        self.awaited = self.awaited.max(now);
        Some(self.proof_of(&self.most_urgent(now), now, true))
    }

    /// Returns when to poll again even if nothing happens; `None` if there is nothing to keep.
    pub fn poll_timeout(&self, now: Moment, is_connected: bool) -> Option<Moment> {
        let Some(due) = self.due(now) else { return self.watch_due(is_connected) };
        let loss =
            || self.lapses.first().map_or(self.lease.until(), |(lapsed, _)| lapsed + self.loss_timeout());
        let loss = (!self.holds.is_empty()).then(loss);
        let beat = self.may_beat(is_connected).then_some(due);
        [loss, beat, self.watch_due(is_connected)].into_iter().flatten().min()
    }

    fn may_beat(&self, is_connected: bool) -> bool {
        is_connected && self.under_way.len() < BEATS_AT_MOST
    }

    /// Returns when the next check is due; at once if it can restore a hold that has no lease. `None` if nobody needs one, or
    /// without a heartbeat.
    fn due(&self, now: Moment) -> Option<Moment> {
        let is_needed = !self.holds.is_empty() || self.awaiting > 0;
        if !is_needed || !self.has_heartbeat {
            return None;
        }
        let due = if self.holds.is_empty() {
            self.beat_after(self.awaited)
        } else if self.lapses.holds().any(|hold| self.is_provable(hold)) {
            now
        } else {
            let beaten = self.watching.beaten;
            let next = self.beat_after(beaten);
            let soon = beaten + next.since(beaten) / 2;
            let named = self.named.first().map(|(proven, _)| self.beat_after(*proven));
            // The next of many holds would be due right after this one.
            let named = named.map(|due| if self.is_crowded() { due.max(soon) } else { due });
            let others = (self.named.len() < self.holds.len()).then_some(next);
            // These were due when they began to be watched.
            let new = (!self.watching.is_all_covered()).then_some(soon);
            [named, others, new].into_iter().flatten().min()?
        };
        Some(due.max(self.earliest).max(self.next_to_others()))
    }

    /// Returns when the beat after a write that was sent at `sent` is due.
    fn beat_after(&self, sent: Moment) -> Moment {
        let timeout = self.lease.timeout();
        let seldom = times::SELDOM.of(timeout);
        // How far apart beats may be, by how late answers are.
        let rarest = match self.late {
            late if late <= times::PROMPT.of(timeout) => timeout,
            late if late <= times::SLOW.of(timeout) => seldom,
            _ => times::BEAT.of(timeout),
        };
        // Holders must learn of a loss in time, and timers are late.
        let usual = rarest.min(times::SOONER.of(self.loss_timeout()));
        // While the lease is short, the beat comes sooner still.
        let reserve = if usual > seldom { times::RESERVE_IF_RARE } else { times::RESERVE };
        let soon = self.lease.until().before(reserve.of(timeout)).since(sent);
        sent + soon.clamp(times::CLOSE.of(timeout), usual)
    }

    fn note_late(&mut self, late: Duration, now: Moment) {
        // A quick answer does not show that the next one will be quick, too.
        if late >= self.late || now.since(self.late_at) >= self.lease.timeout() {
            (self.late, self.late_at) = (late, now);
        }
    }

    /// Returns when a beat may follow those that are under way.
    fn next_to_others(&self) -> Moment {
        let (Some(first), Some(last)) = (self.under_way.first(), self.under_way.last()) else {
            return Moment::default();
        };
        let short = times::CLOSE.of(self.lease.timeout());
        self.beat_after(*last).min((*last + short).max(*first + short * 2))
    }

    /// Whether a check that is made now can prove the hold.
    fn is_provable(&self, hold: HoldId) -> bool {
        self.holds.get(&hold).is_some_and(|record| record.proving != Proving::Asked)
    }

    /// The holds that were proven longest ago come first: as many as fit into one request, or a few if the others can be
    /// watched.
    fn most_urgent(&self, now: Moment) -> Vec<HoldId> {
        let few = self.watching.named_at_most.max(1);
        // Many new holds are watched one flight after the other. Those that wait too long for that are named.
        let is_late = |(proven, _): &(Moment, HoldId)| now.since(*proven) > self.loss_timeout();
        let are_watched_in_time = !self.named.first().is_some_and(is_late);
        let is_to_be_watched = self.is_crowded() && self.lapses.is_empty() && are_watched_in_time;
        let at_most = if is_to_be_watched { few } else { usize::MAX };
        let mut bytes = 0;
        let fits = |(_, hold): &&(Moment, HoldId)| {
            let is_first = bytes == 0;
            let nodes = self.holds.get(hold).map_or(&[][..], |record| &record.nodes);
            bytes += nodes.iter().map(|node| node.path.len() + CHECK_BYTES).sum::<usize>();
            // One that is too large to fit with others becomes the first as soon as these are proven.
            is_first || bytes <= BYTES_AT_MOST
        };
        let mut holds: Vec<_> = self.named.iter().filter(fits).take(at_most).map(|(_, hold)| *hold).collect();
        // Some watched holds are named all the same, in turn, because we never rely on silence for ever. Usually all of those
        // few are named, and there would be no room.
        let room = few.saturating_sub(holds.len()).max(few / 4);
        holds.extend(self.watched.iter().take(room).map(|(_, hold)| *hold));
        if holds.is_empty() { self.holds.keys().next().copied().into_iter().collect() } else { holds }
    }

    fn proof_of(&self, holds: &[HoldId], now: Moment, is_beat: bool) -> Proof {
        let records = || holds.iter().filter_map(|hold| Some((*hold, self.holds.get(hold)?)));
        let root = || HeldNode { path: "/".into(), origin: None };
        let root = holds.is_empty().then(root);
        Proof {
            nodes: root
                .into_iter()
                .chain(records().flat_map(|(_, record)| record.nodes.iter().cloned()))
                .collect(),
            holds: records().map(|(hold, record)| (hold, record.nodes.len())).collect(),
            sent: now,
            is_beat,
            term: self.lease.term(now),
            watches: if is_beat { self.watching.left } else { 0 },
        }
    }

    fn renew(&mut self, proof: &Proof, now: Moment) {
        // The lease first: it decides which holds have one, and so which of them need this proof.
        self.lease.acknowledge(proof.sent, now);
        self.lapses.look(&self.lease, &mut self.holds, now);
        if proof.is_beat {
            self.watching.cover(proof.watches, proof.sent);
        }
        for (hold, _) in &proof.holds {
            if let Some(record) = self.holds.get_mut(hold) {
                let proven = record.proven.max(proof.sent);
                let before = std::mem::replace(&mut record.proven, proven);
                let kept = match record.proving {
                    Proving::Named => &mut self.named,
                    Proving::Watched(_) => &mut self.watched,
                    Proving::Asked => continue,
                };
                kept.remove(&(before, *hold));
                kept.insert((proven, *hold));
            }
        }
        self.restore(proof, now);
    }

    /// Counts the proof for the holds without a lease that it covers.
    fn restore(&mut self, proof: &Proof, now: Moment) {
        let named: BTreeSet<_> = proof.holds.iter().map(|(hold, _)| *hold).collect();
        // Without a heartbeat there may be many, and a proof covers only the holds that it names.
        let may_cover: Vec<_> =
            if proof.watches == 0 { named.iter().copied().collect() } else { self.lapses.holds().collect() };
        for hold in may_cover {
            let Some(record) = self.holds.get_mut(&hold) else { continue };
            let is_watched = matches!(record.proving, Proving::Watched(number) if number <= proof.watches);
            if record.lapsed.is_some() && (is_watched || named.contains(&hold)) {
                record.share.checked(&self.lease, proof.term, now);
                self.lapses.settle(hold, record, &self.lease, now);
            }
        }
    }

    fn lose_all(&mut self, reason: LossReason) {
        let holds: Vec<_> = self.holds.keys().copied().collect();
        holds.into_iter().for_each(|hold| self.lose(hold, reason));
    }

    fn lose(&mut self, hold: HoldId, reason: LossReason) {
        // While its share of the lease is still known.
        self.note_promise(hold);
        if self.remove(hold) {
            self.lost.push_back((hold, reason));
        }
    }

    /// Notes how far the answers about this hold may reach.
    fn note_promise(&mut self, hold: HoldId) {
        let until = self.holds.get(&hold).and_then(|record| record.share.until(&self.lease));
        self.promised = self.promised.max(until.unwrap_or_default());
    }

    fn remove(&mut self, hold: HoldId) -> bool {
        let Some(record) = self.holds.remove(&hold) else { return false };
        for node in &record.nodes {
            // A later hold may have a node of this name.
            if self.nodes.get(&node.path) == Some(&hold) {
                self.nodes.remove(&node.path);
            }
        }
        self.named.remove(&(record.proven, hold));
        self.watched.remove(&(record.proven, hold));
        debug_assert!(self.named.len() + self.watched.len() <= self.holds.len(), "each is proven in one way");
        self.lapses.remove(hold, &record);
        true
    }
}

#[cfg(test)]
mod tests;
