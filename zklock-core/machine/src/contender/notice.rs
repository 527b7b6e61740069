//! How a holder learns that others wait for what it holds, or ask for it.
//!
//! Waiters need not do anything for that: the holder lists its queues, and sets a watch that fires when the next contender
//! queues. So it works with any library. A contender that asks writes a [word](crate::protocol::REVOKE) into the holder's
//! node, as Curator's `Revoker` does. So the holder also reads its own nodes in the same flight, and watches them too. By
//! that it also learns that one of them was deleted, before the next check could tell it. So it goes on watching them when it
//! knows that others wait.

use super::nodes::NodeSlot;
use super::{Contender, State, Step};
use crate::protocol::{Now, Operation, Outcome, Verdict, WatchEvent};
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
            if self.flow.state == State::Held {
                self.stay();
            }
        }
    }

    /// Goes on holding, with nothing else left to do.
    pub(super) fn stay(&mut self) {
        match (self.flow.wanted, self.notice) {
            (false, _) => self.clean_up(),
            (true, Notice::Asked) => self.flow.state = State::Ready(Step::Notice),
            (true, _) => self.flow.state = State::Held,
        }
    }

    /// Any one of several claims may be wanted by itself. The holder's own nodes come first: of several events that have come
    /// together, the one of the first watch is reported.
    pub(super) fn noticing(&self) -> Vec<Operation> {
        let list = |directory| Operation::ListAndWatch { directory };
        let read = |path| Operation::WatchOwn { path };
        let lists = self.claims.iter().filter(|_| self.notice != Notice::Given);
        let lists = lists.map(|claim| list(claim.directory.clone()));
        self.hold().filter_map(NodeSlot::path).map(read).chain(lists).collect()
    }

    pub(super) fn on_notice(&mut self, event: WatchEvent) {
        // The queue of a semaphore may be deleted without the permits.
        if event == WatchEvent::Deleted && self.claims.iter().all(|claim| claim.permits.is_none()) {
            self.deleted();
        } else {
            self.flow.state = State::Ready(Step::Notice);
        }
    }

    pub(super) fn noticed(&mut self, outcomes: &[Outcome], now: Now) {
        if !self.flow.wanted {
            return self.clean_up();
        }
        let mut is_known = true;
        let mut is_awaited = false;
        let (read, listed) = outcomes.split_at(self.hold().count().min(outcomes.len()));
        if read.contains(&Outcome::NoNode) {
            return self.deleted();
        }
        for ((claim, slot), listing) in self.claims.iter().zip(&self.queue.slots).zip(listed) {
            match listing {
                Outcome::Children(children) => is_awaited |= is_wanted(children, slot.name(), claim),
                // If they cannot be seen, assume that others wait.
                Outcome::Refused(_) => is_awaited = true,
                _ => is_known = false,
            }
        }
        for outcome in read {
            is_awaited |= *outcome == Outcome::Revoked;
            // A holder that may not read its own node still learns of waiters.
            is_known &= !matches!(outcome, Outcome::Unknown);
        }
        if is_awaited && self.notice != Notice::Given {
            self.notice = Notice::Given;
            self.flow.verdict = Some(Verdict::Wanted);
        }
        if is_known {
            self.flow.failures.clear();
            self.flow.state = State::Noticing;
        } else {
            self.retry(Step::Notice, now);
        }
    }
}
