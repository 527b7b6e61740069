//! Which holds are named in a check, and which are watched instead.

use super::{HeldNode, HoldId, Keeper, Record};
use crate::status::LossReason;
use crate::{Moment, times};

/// How many holds a check names while others are watched.
const NAMED_AT_MOST: usize = 8;
/// How many holds are asked about in one flight.
const ASKED_AT_MOST: usize = 512;

/// How a hold is proven.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Proving {
    /// By a check that names its nodes.
    Named,
    /// Not yet: its nodes are about to be watched.
    Asked,
    /// By any check, while the watches on its nodes are silent. The numbers follow the order in which watches were set.
    Watched(u64),
}

/// The outcome of a request to watch the nodes of a hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Seen {
    /// All exist, and are watched.
    There,
    /// One does not exist.
    Gone,
    /// Unknown, so they are not watched.
    Unknown,
}

/// A hold whose nodes should be watched.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ToWatch {
    /// The hold.
    pub hold: HoldId,
    /// Its nodes.
    pub nodes: Vec<HeldNode>,
}

#[derive(Clone, Hash, Debug)]
pub(super) struct Watching {
    pub(super) named_at_most: usize,
    is_asking: bool,
    /// Nothing is asked before this, because the last time failed.
    earliest: Moment,
    /// How many holds have been watched.
    pub(super) left: u64,
    /// How many of them the last answered beat has proven.
    covered: u64,
    /// When that beat was sent.
    pub(super) beaten: Moment,
}

impl Watching {
    pub(super) fn new() -> Self {
        Self {
            named_at_most: NAMED_AT_MOST,
            is_asking: false,
            earliest: Moment::default(),
            left: 0,
            covered: 0,
            beaten: Moment::default(),
        }
    }

    /// A beat has been answered.
    pub(super) fn cover(&mut self, watches: u64, sent: Moment) {
        self.covered = self.covered.max(watches);
        self.beaten = self.beaten.max(sent);
    }

    pub(super) fn is_all_covered(&self) -> bool {
        self.covered == self.left
    }

    /// Returns when the latest write that has proven the hold was sent.
    pub(super) fn proven(&self, record: &Record) -> Moment {
        match record.proving {
            Proving::Watched(number) if number <= self.covered => record.proven.max(self.beaten),
            _ => record.proven,
        }
    }
}

impl Keeper {
    /// Returns the holds whose nodes should be watched from now on, if any are due because more are held than a check
    /// should name. They are all asked about in one flight, and only one is under way at a time. Pass all outcomes to
    /// [`handle_seen`](Self::handle_seen).
    pub fn poll_watch(&mut self, now: Moment, is_connected: bool) -> Vec<ToWatch> {
        let due = self.watch_due(is_connected).is_some_and(|due| now >= due);
        if !due {
            return Vec::new();
        }
        let beat = times::BEAT.of(self.lease.timeout());
        let surplus = (self.named.len() - self.watching.named_at_most).min(ASKED_AT_MOST);
        let is_due = |(proven, _): &&(Moment, HoldId)| now >= *proven + beat;
        let holds: Vec<_> = self.named.iter().take_while(is_due).take(surplus).copied().collect();
        self.watching.is_asking = !holds.is_empty();
        let ask = |(proven, hold)| {
            self.named.remove(&(proven, hold));
            let record = self.holds.get_mut(&hold)?;
            record.proving = Proving::Asked;
            Some(ToWatch { hold, nodes: record.nodes.clone() })
        };
        holds.into_iter().filter_map(ask).collect()
    }

    /// Returns when nodes must be watched even if nothing happens.
    pub(super) fn watch_due(&self, is_connected: bool) -> Option<Moment> {
        // Lapsed holds are restored first, and named for that.
        let restores = self.has_heartbeat && !self.lapses.is_empty();
        if !self.is_crowded() || self.watching.is_asking || !is_connected || restores {
            return None;
        }
        let (proven, _) = self.named.first()?;
        Some((*proven + times::BEAT.of(self.lease.timeout())).max(self.watching.earliest))
    }

    /// Whether more holds are named than a check should name.
    pub(super) fn is_crowded(&self) -> bool {
        self.named.len() > self.watching.named_at_most
    }

    /// The outcomes for all holds that were asked for together.
    pub fn handle_seen(&mut self, seen: &[(HoldId, Seen)], now: Moment) {
        self.watching.is_asking = false;
        for (hold, seen) in seen {
            let Some(record) = self.holds.get_mut(hold) else { continue };
            match seen {
                Seen::There => {
                    self.watching.left += 1;
                    record.proving = Proving::Watched(self.watching.left);
                    self.watched.insert((record.proven, *hold));
                }
                Seen::Gone => self.lose(*hold, LossReason::NodeDeleted),
                Seen::Unknown => {
                    self.watching.earliest = now + times::AGAIN.of(self.lease.timeout());
                    self.name(*hold);
                }
            }
        }
    }

    /// A watch on a node of this hold has fired: the node was deleted, or the watch no longer exists.
    pub fn handle_event(&mut self, hold: HoldId, is_deleted: bool) {
        let is_watched =
            || matches!(self.holds.get(&hold), Some(Record { proving: Proving::Watched(_), .. }));
        if is_deleted {
            self.lose(hold, LossReason::NodeDeleted);
        } else if is_watched() {
            self.name(hold);
        }
    }

    /// From now on, checks name the hold.
    fn name(&mut self, hold: HoldId) {
        if let Some(record) = self.holds.get_mut(&hold) {
            // Before its time changes, by which it is found.
            self.watched.remove(&(record.proven, hold));
            record.proven = self.watching.proven(record);
            record.proving = Proving::Named;
            self.named.insert((record.proven, hold));
        }
    }
}
