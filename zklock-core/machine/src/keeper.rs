//! What the holds of one session rest on: their proofs, when the next is due, and when they are lost.
//!
//! One check of nodes, every twelfth of the session's timeout, covers all holds of a session. It is a write that the
//! quorum commits, because nothing less proves anything. It changes no node and wakes nobody. It fails if an operator has
//! deleted a node, so the holder learns of that as well.
//!
//! A lease that lapses does not end its holds at once. A process that was asleep may find its session alive, and two
//! checks of a hold's own nodes restore it. But the holder must learn of a loss within a heartbeat, so that is how long a
//! hold may go without a lease before it is lost.

use crate::Moment;
use crate::lease::{Lease, Share};
use crate::status::LossReason;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Of paths in one request: a quarter of what servers take by default.
const BYTES_AT_MOST: usize = 256 * 1024;
/// What a check takes beside its path.
const CHECK_BYTES: usize = 32;

/// A hold among those of its session. It is not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HoldId(u64);

/// A node that stands for a hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HeldNode {
    /// Its path.
    pub path: Arc<str>,
    /// The transaction that created it, if a node of that name may be another's.
    pub origin: Option<i64>,
}

/// A check of the nodes of some holds: to be sent as one request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Proof {
    /// What the quorum is to confirm.
    pub nodes: Vec<HeldNode>,
    /// Whose they are: each hold, with the number of its nodes.
    holds: Vec<Proven>,
    /// When it was made, which is before it is sent.
    sent: Moment,
    is_beat: bool,
}

/// A hold in a proof.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Proven {
    hold: HoldId,
    nodes: usize,
    /// Whether it could still be relied upon when the proof was made.
    was_valid: bool,
}

/// What became of a check.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Check {
    /// The quorum has answered for every node.
    Answered {
        /// Those that are not there, counted from 0.
        missing: Vec<usize>,
    },
    /// Not known, or not allowed.
    Unknown,
    /// There is no session, and so no node, any more.
    SessionOver,
}

/// The holds of one session, and its lease.
///
/// Its driver tells it what happens by the `handle_` methods, and asks in this order: [`poll_lost`](Self::poll_lost) until
/// there is none, [`poll_beat`](Self::poll_beat), [`poll_timeout`](Self::poll_timeout). It asks when the time of the last
/// has come, and after what may bring something forward: a grant, a proof, the end of the session, a server that is asked
/// or has granted the session again. A write and a release can but put off what is due.
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
    holds: BTreeMap<HoldId, Record>,
    next: HoldId,
    /// Whether a beat is on its way.
    is_beating: bool,
    /// No beat before this: the last one came to nothing.
    earliest: Moment,
    over: Option<LossReason>,
    /// Not reported yet.
    lost: VecDeque<(HoldId, LossReason)>,
}

/// What is kept of one hold.
#[derive(Clone, Hash, Debug)]
struct Record {
    nodes: Vec<HeldNode>,
    share: Share,
    /// When the latest write was sent that proved the nodes.
    proven: Moment,
    /// When it was noticed that it has no lease.
    lapsed: Option<Moment>,
}

impl Keeper {
    /// Of a session that was asked for at `asked`, and is granted `now` with this timeout.
    pub fn new(timeout: Duration, asked: Moment, now: Moment) -> Self {
        let mut lease = Lease::new(timeout, asked);
        lease.attach(asked, timeout, now);
        Self {
            lease,
            holds: BTreeMap::new(),
            next: HoldId(0),
            is_beating: false,
            earliest: Moment::default(),
            over: None,
            lost: VecDeque::new(),
        }
    }

    /// The lease of the session.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// For how long from `now` the hold can be relied upon; zero if it is not kept any more.
    pub fn valid_for(&self, hold: HoldId, now: Moment) -> Duration {
        match self.holds.get(&hold) {
            Some(record) if self.over.is_none() => record.share.valid_for(&self.lease, now),
            _ => Duration::ZERO,
        }
    }

    /// Whether two heartbeats have gone by without a proof of the hold.
    pub fn is_late(&self, hold: HoldId, now: Moment) -> bool {
        let late = self.lease.heartbeat() * 2;
        self.holds.get(&hold).is_none_or(|record| now.since(record.proven) > late)
    }

    /// Keeps a new hold, which has these nodes; they were proven by a write that was sent at `proven`.
    pub fn handle_grant(&mut self, nodes: Vec<HeldNode>, proven: Moment) -> HoldId {
        let hold = self.next;
        self.next = HoldId(hold.0 + 1);
        self.holds.insert(hold, Record { nodes, share: Share::new(&self.lease), proven, lapsed: None });
        // The session may have ended just before.
        if let Some(reason) = self.over {
            self.lose(hold, reason);
        }
        hold
    }

    /// Keeps the hold no longer: it is being released, or was found to be lost by other means.
    pub fn handle_release(&mut self, hold: HoldId) {
        self.holds.remove(&hold);
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

    /// A check of this hold alone, for a holder that asks; `None` if it is not kept any more.
    pub fn prove(&self, hold: HoldId, now: Moment) -> Option<Proof> {
        self.holds.contains_key(&hold).then(|| self.proof_of(&[hold], now, false))
    }

    /// What became of a proof.
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
                // A check that found nothing but missing nodes proves nothing.
                if missing.len() < proof.nodes.len() {
                    self.renew(proof, now);
                }
            }
            Check::SessionOver => self.handle_over(LossReason::SessionExpired),
            Check::Unknown => {}
        }
    }

    /// A hold that is lost, and why. It is not kept any more.
    pub fn poll_lost(&mut self, now: Moment) -> Option<(HoldId, LossReason)> {
        let (lease, heartbeat) = (&self.lease, self.lease.heartbeat());
        for record in self.holds.values_mut() {
            let has_lapsed = record.share.valid_for(lease, now).is_zero();
            record.lapsed = has_lapsed.then(|| record.lapsed.unwrap_or(now));
        }
        let is_due = |record: &Record| record.lapsed.is_some_and(|lapsed| now >= lapsed + heartbeat);
        let due: Vec<_> =
            self.holds.iter().filter(|(_, record)| is_due(record)).map(|(hold, _)| *hold).collect();
        due.into_iter().for_each(|hold| self.lose(hold, LossReason::LeaseLapsed));
        self.lost.pop_front()
    }

    /// The next check, if it is due. There is one on its way at a time.
    pub fn poll_beat(&mut self, now: Moment, is_connected: bool) -> Option<Proof> {
        let due = self.due(now)?;
        if self.is_beating || !is_connected || now < due {
            return None;
        }
        self.is_beating = true;
        Some(self.proof_of(&self.most_urgent(), now, true))
    }

    /// When to poll again, though nothing happens; `None` if there is nothing to keep.
    pub fn poll_timeout(&self, now: Moment, is_connected: bool) -> Option<Moment> {
        let due = self.due(now)?;
        let lapsed = self.holds.values().filter_map(|record| record.lapsed).min();
        let loss = lapsed.map_or(self.lease.until(), |lapsed| lapsed + self.lease.heartbeat());
        Some(if self.is_beating || !is_connected { loss } else { loss.min(due) })
    }

    /// When the next check is due; at once if a hold has no lease. `None` without a hold.
    fn due(&self, now: Moment) -> Option<Moment> {
        let oldest = self.holds.values().map(|record| record.proven).min()?;
        let has_lapsed = self.holds.values().any(|record| record.lapsed.is_some());
        let due = if has_lapsed { now } else { oldest + self.lease.beat(now) };
        Some(due.max(self.earliest))
    }

    /// As many as fit into one request, those first that were proven longest ago; but the first in any case. One that is
    /// too large for the rest is the first as soon as the others are proven, and so has its turn as they do.
    fn most_urgent(&self) -> Vec<HoldId> {
        let mut holds: Vec<_> = self.holds.iter().collect();
        holds.sort_by_key(|(_, record)| record.proven);
        let mut bytes = 0;
        holds.retain(|(_, record)| {
            let is_first = bytes == 0;
            bytes += record.nodes.iter().map(|node| node.path.len() + CHECK_BYTES).sum::<usize>();
            is_first || bytes <= BYTES_AT_MOST
        });
        holds.into_iter().map(|(hold, _)| *hold).collect()
    }

    fn proof_of(&self, holds: &[HoldId], now: Moment, is_beat: bool) -> Proof {
        let records = || holds.iter().filter_map(|hold| Some((*hold, self.holds.get(hold)?)));
        let proven = |(hold, record): (HoldId, &Record)| Proven {
            hold,
            nodes: record.nodes.len(),
            was_valid: !self.valid_for(hold, now).is_zero(),
        };
        Proof {
            nodes: records().flat_map(|(_, record)| record.nodes.iter().cloned()).collect(),
            holds: records().map(proven).collect(),
            sent: now,
            is_beat,
        }
    }

    fn renew(&mut self, proof: &Proof, now: Moment) {
        self.lease.acknowledge(proof.sent, now);
        for Proven { hold, was_valid, .. } in &proof.holds {
            if let Some(record) = self.holds.get_mut(hold) {
                record.share.checked(&self.lease, *was_valid);
                record.proven = record.proven.max(proof.sent);
            }
        }
    }

    fn lose(&mut self, hold: HoldId, reason: LossReason) {
        if self.holds.remove(&hold).is_some() {
            self.lost.push_back((hold, reason));
        }
    }
}

impl Proof {
    /// Whose the node with this index is.
    fn owner(&self, node: usize) -> Option<HoldId> {
        let mut end = 0;
        let is_within = |proven: &&Proven| {
            end += proven.nodes;
            node < end
        };
        self.holds.iter().find(is_within).map(|proven| proven.hold)
    }
}

#[cfg(test)]
mod tests;
