//! The holds of one session: what proves them, when the next proof is due, and when they are lost.
//!
//! One check of nodes, every twelfth of the session timeout, covers all holds of a session. It is a write that the quorum
//! commits, because nothing less proves anything. It changes no node and wakes nobody. It fails if an operator has
//! deleted a node, so the holder learns of that too.
//!
//! A lease that lapses does not end its holds at once. A process that was asleep may find its session alive, and two
//! checks of a hold's own nodes restore it. But the holder must learn of a loss within a heartbeat, so a hold may go
//! without a lease only for that long before it is lost.
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

mod lapses;
mod proof;
mod seen;
mod watching;

pub use proof::{Check, HeldNode, HoldId, Proof};
pub use watching::{Seen, ToWatch};

use crate::Moment;
use crate::lease::{Lease, Share};
use crate::status::LossReason;
use lapses::Lapses;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use watching::{Proving, Watching};

/// The most bytes of paths in one request: a quarter of what servers take by default.
const BYTES_AT_MOST: usize = 256 * 1024;
/// The bytes that a check takes besides its path.
const CHECK_BYTES: usize = 32;

/// The holds of one session, and its lease.
///
/// Its driver reports events through the `handle_` methods, and polls in this order: [`poll_lost`](Self::poll_lost) until
/// there is none, [`poll_watch`](Self::poll_watch), [`poll_beat`](Self::poll_beat), [`poll_timeout`](Self::poll_timeout).
/// It polls when the time that the last one returned has come, and after everything that may bring something forward: a
/// grant, a proof, watches that are set or fire, the end of the session, a server that is asked or has granted the
/// session again. A write or a release can only put off what is due.
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
    holds: BTreeMap<HoldId, Record>,
    /// Their nodes.
    nodes: BTreeMap<Arc<str>, HoldId>,
    /// The holds that are named in checks, by when they were proven.
    named: BTreeSet<(Moment, HoldId)>,
    /// The holds that are watched, by when they were last named.
    watched: BTreeSet<(Moment, HoldId)>,
    watching: Watching,
    lapses: Lapses,
    next: HoldId,
    /// Whether a beat is on its way.
    is_beating: bool,
    /// There is no beat before this, because the last one failed.
    earliest: Moment,
    over: Option<LossReason>,
    /// Not reported yet.
    lost: VecDeque<(HoldId, LossReason)>,
}

/// The state of one hold.
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
            holds: BTreeMap::new(),
            nodes: BTreeMap::new(),
            named: BTreeSet::new(),
            watched: BTreeSet::new(),
            watching: Watching::new(),
            next: HoldId(0),
            is_beating: false,
            earliest: Moment::default(),
            over: None,
            lost: VecDeque::new(),
        }
    }

    /// Limits how many holds a check names while others can be watched.
    #[must_use]
    pub fn naming_at_most(mut self, holds: usize) -> Self {
        self.watching.named_at_most = holds;
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

    /// Returns the lease of the session.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Returns how long from `now` the hold can be relied on; zero if it is no longer kept.
    pub fn valid_for(&self, hold: HoldId, now: Moment) -> Duration {
        self.holds.get(&hold).map_or(Duration::ZERO, |record| record.share.valid_for(&self.lease, now))
    }

    /// Whether two heartbeats have passed without a proof of the hold. Without heartbeats it is never late.
    pub fn is_late(&self, hold: HoldId, now: Moment) -> bool {
        let late = self.lease.heartbeat() * 2;
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

    /// A server is asked for the session, on a new connection, by a request sent at `sent`.
    pub fn handle_asked(&mut self, sent: Moment) {
        self.lease.ask(sent);
    }

    /// A server has granted the session again, with this timeout, as it was asked for at `sent`.
    pub fn handle_granted(&mut self, sent: Moment, timeout: Duration, now: Moment) {
        self.lease.attach(sent, timeout, now);
    }

    /// The session is over. Only the first reason counts.
    pub fn handle_over(&mut self, reason: LossReason) {
        let reason = *self.over.get_or_insert(reason);
        let holds: Vec<_> = self.holds.keys().copied().collect();
        holds.into_iter().for_each(|hold| self.lose(hold, reason));
    }

    /// Returns a check of this hold alone, because its holder asks for it; `None` if it is no longer kept.
    pub fn prove(&self, hold: HoldId, now: Moment) -> Option<Proof> {
        self.holds.contains_key(&hold).then(|| self.proof_of(&[hold], now, false))
    }

    /// The outcome of a proof.
    pub fn handle_proof(&mut self, proof: &Proof, check: &Check, now: Moment) {
        if proof.is_beat {
            self.is_beating = false;
            if !matches!(check, Check::Answered { .. }) {
                self.earliest = now + self.lease.heartbeat() / 4;
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

    /// Returns a hold that is lost, and why. It is no longer kept.
    pub fn poll_lost(&mut self, now: Moment) -> Option<(HoldId, LossReason)> {
        self.lapses.look(&self.lease, &mut self.holds, now);
        let (ends, heartbeat) = (self.has_heartbeat, self.lease.heartbeat());
        let is_due = |(lapsed, _): &(Moment, HoldId)| ends && now >= *lapsed + heartbeat;
        while let Some((_, hold)) = self.lapses.first().filter(is_due) {
            self.lose(hold, LossReason::LeaseLapsed);
        }
        self.lost.pop_front()
    }

    /// Returns the next check, if it is due. Only one is under way at a time.
    pub fn poll_beat(&mut self, now: Moment, is_connected: bool) -> Option<Proof> {
        let due = self.due(now)?;
        if self.is_beating || !is_connected || now < due {
            return None;
        }
        self.is_beating = true;
        Some(self.proof_of(&self.most_urgent(now), now, true))
    }

    /// Returns when to poll again even if nothing happens; `None` if there is nothing to keep.
    pub fn poll_timeout(&self, now: Moment, is_connected: bool) -> Option<Moment> {
        let Some(due) = self.due(now) else { return self.watch_due(is_connected) };
        let loss =
            self.lapses.first().map_or(self.lease.until(), |(lapsed, _)| lapsed + self.lease.heartbeat());
        let beat = (!self.is_beating && is_connected).then_some(due);
        [Some(loss), beat, self.watch_due(is_connected)].into_iter().flatten().min()
    }

    /// Returns when the next check is due; at once if it can restore a hold that has no lease. `None` without a hold or a
    /// heartbeat.
    fn due(&self, now: Moment) -> Option<Moment> {
        if self.holds.is_empty() || !self.has_heartbeat {
            return None;
        }
        let beat = self.lease.beat(now);
        let due = if self.lapses.holds().any(|hold| self.is_provable(hold)) {
            now
        } else {
            let beaten = self.watching.beaten;
            let named = self.named.first().map(|(proven, _)| *proven + beat);
            // The next of many holds would be due right after this one.
            let named = named.map(|due| if self.is_crowded() { due.max(beaten + beat / 2) } else { due });
            let others = (self.named.len() < self.holds.len()).then(|| beaten + beat);
            // These were due when they began to be watched.
            let new = (!self.watching.is_all_covered()).then(|| beaten + beat / 2);
            [named, others, new].into_iter().flatten().min()?
        };
        Some(due.max(self.earliest))
    }

    /// Whether a check that is made now can prove the hold.
    fn is_provable(&self, hold: HoldId) -> bool {
        self.holds.get(&hold).is_some_and(|record| record.proving != Proving::Asked)
    }

    /// The holds that were proven longest ago come first: as many as fit into one request, or a few if the others can be
    /// watched, but always the first. A hold that is too large to fit with others becomes the first as soon as the others
    /// are proven, and so has its turn too. Some watched holds are named all the same, in turn, because we never rely on
    /// silence for ever.
    fn most_urgent(&self, now: Moment) -> Vec<HoldId> {
        let few = self.watching.named_at_most.max(1);
        // Many new holds are watched one flight after the other. Those that wait too long for that are named.
        let is_late = |(proven, _): &(Moment, HoldId)| now.since(*proven) > self.lease.heartbeat();
        let are_watched_in_time = !self.named.first().is_some_and(is_late);
        let is_to_be_watched = self.is_crowded() && self.lapses.is_empty() && are_watched_in_time;
        let at_most = if is_to_be_watched { few } else { usize::MAX };
        let mut bytes = 0;
        let fits = |(_, hold): &&(Moment, HoldId)| {
            let is_first = bytes == 0;
            let nodes = self.holds.get(hold).map_or(&[][..], |record| &record.nodes);
            bytes += nodes.iter().map(|node| node.path.len() + CHECK_BYTES).sum::<usize>();
            is_first || bytes <= BYTES_AT_MOST
        };
        let mut holds: Vec<_> = self.named.iter().filter(fits).take(at_most).map(|(_, hold)| *hold).collect();
        // Usually all of those few are named, and there would be no room.
        let room = few.saturating_sub(holds.len()).max(few / 4);
        holds.extend(self.watched.iter().take(room).map(|(_, hold)| *hold));
        if holds.is_empty() { self.holds.keys().next().copied().into_iter().collect() } else { holds }
    }

    fn proof_of(&self, holds: &[HoldId], now: Moment, is_beat: bool) -> Proof {
        let records = || holds.iter().filter_map(|hold| Some((*hold, self.holds.get(hold)?)));
        Proof {
            nodes: records().flat_map(|(_, record)| record.nodes.iter().cloned()).collect(),
            holds: records().map(|(hold, record)| (hold, record.nodes.len())).collect(),
            sent: now,
            is_beat,
            term: self.lease.term(now),
            watches: if is_beat { self.watching.left } else { 0 },
        }
    }

    fn renew(&mut self, proof: &Proof, now: Moment) {
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
                record.share.checked(&self.lease, proof.term);
                self.lapses.settle(hold, record, &self.lease, now);
            }
        }
    }

    fn lose(&mut self, hold: HoldId, reason: LossReason) {
        if self.remove(hold) {
            self.lost.push_back((hold, reason));
        }
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
        self.lapses.remove(hold, &record);
        true
    }
}

#[cfg(test)]
mod tests;
