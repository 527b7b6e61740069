//! How an attempt goes on if a directory has no numbers left.
//!
//! A server counts the creations in a directory, and the count ends at 2³¹. From then on, two contenders may have the
//! same number, or the later one the smaller: Curator and kazoo then have two holders. So an attempt does not keep a
//! number near the end. It deletes its node, waits until nobody is in the directory, and makes the server start again
//! in a new one. Other libraries that go on in the old one meanwhile do no harm, because nobody enters the new one
//! while anybody is left in the old one.

use super::{Contender, Phase, Step};
use crate::protocol::{Now, Outcome, Patience, Refusal};

impl Contender {
    /// Gives up a number that is used up; `true` if we have one in any queue.
    pub(super) fn gives_up_a_number(&mut self) -> bool {
        self.used_up = self.queue.used_up();
        if self.used_up.is_some() {
            self.go(Step::Clear);
        }
        self.used_up.is_some()
    }

    /// Handles the outcome of deleting the directory.
    pub(super) fn renewed(&mut self, claim: usize, deleted: &Outcome, now: Now) {
        match deleted {
            Outcome::Done | Outcome::NoNode => {
                self.flow.failures.clear();
                self.go(Step::CreateParents(Phase::Queue));
            }
            Outcome::NotEmpty => self.go(Step::Drain(claim)),
            Outcome::Refused(_) => self.fail(self.no_numbers_left(claim)),
            _ => self.retry(Step::Renew(claim), now),
        }
    }

    /// Decides what to do, by the contenders that are still in the directory.
    pub(super) fn drained(&mut self, claim: usize, listing: Outcome, now: Now) {
        let children = match listing {
            Outcome::Children(children) => children,
            Outcome::NoNode => Vec::new(),
            Outcome::Refused(refusal) => return self.fail(refusal),
            _ => return self.retry(Step::Drain(claim), now),
        };
        let mut contenders = children.iter().filter_map(|child| self.claims[claim].parse(child)).peekable();
        if children.is_empty() {
            self.go(Step::Renew(claim));
        } else if contenders.peek().is_none() {
            // The children that are left are not contenders, and will not go away.
            self.fail(self.no_numbers_left(claim));
        } else if self.flow.patience == Patience::TriesOnce {
            self.fail(Refusal::Busy);
        } else if contenders.any(|name| name.sequence.is_young()) {
            // Another contender has replaced the directory meanwhile. Or one that came long ago holds the lock, so do
            // not ask in a tight loop.
            self.retry(Step::Enter, now);
        } else {
            self.wait(None, Step::Drain(claim));
        }
    }

    fn no_numbers_left(&self, claim: usize) -> Refusal {
        Refusal::UsedUp(self.claims[claim].directory.to_string())
    }
}
