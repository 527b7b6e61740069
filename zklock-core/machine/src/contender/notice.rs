//! How a holder learns that others wait for what it holds.
//!
//! They need not do anything for that: the holder lists its queues, and leaves a watch that the next who queues sets off. So
//! it works beside any library.

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
        self.claims.iter().map(|claim| list(claim.directory.clone())).collect()
    }

    pub(super) fn noticed(&mut self, listed: &[Outcome], now: Now) {
        if !self.wanted {
            return self.clean_up();
        }
        let mut is_known = true;
        let mut is_awaited = false;
        for ((claim, slot), listing) in self.claims.iter().zip(&self.queue.slots).zip(listed) {
            match listing {
                Outcome::Children(children) => is_awaited |= is_wanted(children, slot.name(), claim),
                // As long as others may wait, they do.
                Outcome::Refused(_) => is_awaited = true,
                // That the node is gone is found out by the check that proves the hold.
                _ => is_known = false,
            }
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
