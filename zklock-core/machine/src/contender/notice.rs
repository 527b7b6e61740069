//! How a holder learns that others wait for what it holds, or ask for it.
//!
//! Waiters need not do anything for that: the holder lists its queues, and sets a watch that fires when the next contender
//! queues. So it works with any library. A contender that asks writes a [word](crate::protocol::REVOKE) into the holder's
//! node, as Curator's `Revoker` does. So the holder also reads its own nodes in the same flight, and watches them too.

use super::nodes::NodeSlot;
use super::{Contender, State, Step};
use crate::protocol::{Now, Operation, Outcome, Verdict};
use crate::queue::is_wanted;

/// Whether the holder wants to be told.
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

    /// Goes on holding, with nothing else left to do.
    pub(super) fn stay(&mut self) {
        match (self.wanted, self.notice) {
            (false, _) => self.clean_up(),
            (true, Notice::Asked) => self.state = State::Ready(Step::Notice),
            (true, _) => self.state = State::Held,
        }
    }

    /// Any one of several claims may be wanted by itself.
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
                // If they cannot be seen, assume that others wait.
                Outcome::Refused(_) => is_awaited = true,
                // The check that proves the hold finds out if the node is gone.
                _ => is_known = false,
            }
        }
        for outcome in read {
            is_awaited |= *outcome == Outcome::Revoked;
            // A holder that may not read its own node still learns of waiters. Nobody can ask through a node that is gone.
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
