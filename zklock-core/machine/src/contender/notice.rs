//! How a holder learns that others wait for what it holds, or ask for it.
//!
//! Those who wait need not do anything for that: the holder lists its queues, and leaves a watch that the next who queues sets
//! off. So it works beside any library. Those who ask write a [word](crate::protocol::REVOKE) into the node that holds, as
//! Curator's `Revoker` does. So the holder reads its own nodes in the same flight, and leaves a watch on them as well.

use super::nodes::NodeSlot;
use super::{Contender, State, Step};
use crate::protocol::{Now, Operation, Outcome, Verdict};
use crate::queue::is_wanted;

/// Whether the holder is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Notice {
    #[default]
    Unwanted,
    Asked,
    Given,
}

impl Contender {
    pub(super) fn ask_for_notice(&mut self) {
        if self.notice == Notice::Unwanted {
            self.notice = Notice::Asked;
            if self.state == State::Held {
                self.stay();
            }
        }
    }

    /// Nothing is left to do but to hold.
    pub(super) fn stay(&mut self) {
        match (self.wanted, self.notice) {
            (false, _) => self.clean_up(),
            (true, Notice::Asked) => self.state = State::Ready(Step::Notice),
            (true, _) => self.state = State::Held,
        }
    }

    /// A claim of several may be wanted alone.
    pub(super) fn noticing(&self) -> Vec<Operation> {
        let list = |directory| Operation::ListAndWatch { directory };
        let read = |path| Operation::WatchOwn { path };
        let lists = self.claims.iter().map(|claim| list(claim.directory.clone()));
        lists.chain(self.hold().filter_map(NodeSlot::path).map(read)).collect()
    }

    pub(super) fn noticed(&mut self, outcomes: &[Outcome], now: Now) {
        if !self.wanted {
            return self.clean_up();
        }
        let mut is_known = true;
        let mut is_awaited = false;
        let (listed, read) = outcomes.split_at(self.claims.len().min(outcomes.len()));
        for ((claim, slot), listing) in self.claims.iter().zip(&self.queue.slots).zip(listed) {
            match listing {
                Outcome::Children(children) => is_awaited |= is_wanted(children, slot.name(), claim),
                // As long as others may wait, they do.
                Outcome::Refused(_) => is_awaited = true,
                // That the node is gone is found out by the check that proves the hold.
                _ => is_known = false,
            }
        }
        for outcome in read {
            is_awaited |= *outcome == Outcome::Revoked;
            // One who may not read its own node is told of those who queue. A node that is gone asks nobody any more.
            is_known &= !matches!(outcome, Outcome::Unknown);
        }
        if is_awaited {
            self.notice = Notice::Given;
            self.verdict = Some(Verdict::Wanted);
            self.state = State::Held;
        } else if is_known {
            self.failures.clear();
            self.state = State::Noticing;
        } else {
            self.retry(Step::Notice, now);
        }
    }
}
