//! The holds that have no lease, and since when we know that.

use super::{HoldId, Record};
use crate::Moment;
use crate::lease::Lease;
use std::collections::{BTreeMap, BTreeSet};

/// Tracks the holds that have no lease. All holds are checked only when the lease has lapsed or has begun again, because
/// that takes long if there are many.
#[derive(Clone, Hash, Debug)]
pub(super) struct Lapses {
    /// The holds without a lease, by when that was noticed.
    since: BTreeSet<(Moment, HoldId)>,
    /// Holds granted since the last look.
    new: Vec<HoldId>,
    /// The term of the lease at the last look, if it was running.
    term: Option<u64>,
}

impl Lapses {
    pub(super) fn new(lease: &Lease, now: Moment) -> Self {
        Self { since: BTreeSet::new(), new: Vec::new(), term: lease.term(now) }
    }

    pub(super) fn add(&mut self, hold: HoldId) {
        self.new.push(hold);
    }

    pub(super) fn remove(&mut self, hold: HoldId, record: &Record) {
        if let Some(since) = record.lapsed {
            self.since.remove(&(since, hold));
        }
    }

    /// Notices which holds have lapsed, or have a lease again.
    pub(super) fn look(&mut self, lease: &Lease, holds: &mut BTreeMap<HoldId, Record>, now: Moment) {
        let term = lease.term(now);
        if std::mem::replace(&mut self.term, term) == term {
            // For the others nothing has changed.
            for hold in std::mem::take(&mut self.new) {
                if let Some(record) = holds.get_mut(&hold) {
                    self.settle(hold, record, lease, now);
                }
            }
        } else {
            self.new.clear();
            holds.iter_mut().for_each(|(hold, record)| self.settle(*hold, record, lease, now));
        }
    }

    /// Does the same for one hold.
    pub(super) fn settle(&mut self, hold: HoldId, record: &mut Record, lease: &Lease, now: Moment) {
        let has_lapsed = record.share.valid_for(lease, now).is_zero();
        match record.lapsed {
            None if has_lapsed => {
                record.lapsed = Some(now);
                self.since.insert((now, hold));
            }
            Some(since) if !has_lapsed => {
                record.lapsed = None;
                self.since.remove(&(since, hold));
            }
            _ => {}
        }
    }

    /// Returns the one that was noticed first.
    pub(super) fn first(&self) -> Option<(Moment, HoldId)> {
        self.since.first().copied()
    }

    pub(super) fn holds(&self) -> impl Iterator<Item = HoldId> + '_ {
        self.since.iter().map(|(_, hold)| *hold)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.since.is_empty()
    }
}
