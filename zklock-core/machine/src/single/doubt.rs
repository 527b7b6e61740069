//! How an attempt finds out which of its nodes exist, and deletes them.

use super::{Single, State, Step, Victim};
use crate::protocol::{Now, Origin, Outcome};

impl Single {
    /// Handles the look at our nodes, which was taken from behind a barrier.
    pub(super) fn recovered(
        &mut self,
        barrier: &Outcome,
        companion: Option<&Outcome>,
        node: &Outcome,
        now: Now,
    ) {
        let is_known = |seen: &Outcome| matches!(seen, Outcome::Found(_) | Outcome::NoNode);
        let is_refused = |seen: &Outcome| matches!(seen, Outcome::Refused(_));
        let mut seen = companion.into_iter().chain([node]);
        if *barrier != Outcome::Done || !seen.clone().all(|seen| is_known(seen) || is_refused(seen)) {
            return self.retry(Step::Recover, now);
        }
        if seen.any(is_refused) {
            self.flow.state = State::Ready(Step::Claim);
            return;
        }
        let own = |seen: &Outcome| origin_of(seen).filter(|origin| origin.session == self.flow.session);
        let is_ours = |seen: &Outcome| self.origin.is_some() && origin_of(seen) == self.origin;
        match companion {
            None => match own(node) {
                Some(origin) => self.own(origin, now),
                None => self.nothing_left(),
            },
            Some(Outcome::Found(_)) => match companion.and_then(own) {
                Some(origin) if stands_for(origin, node) => self.own(origin, now),
                // An operator has deleted the node, and somebody else may have one in its place.
                _ => self.delete(Victim::Companion),
            },
            // An operator has deleted the companion alone: no transaction of ours does that.
            Some(_) if is_ours(node) => self.delete(Victim::Node),
            // The node is not ours. A server that says it is of our session has lost the deletion of an earlier one.
            Some(_) => self.nothing_left(),
        }
    }

    /// Handles the answers about nodes that we may not read.
    pub(super) fn claimed(&mut self, companion: Option<&Outcome>, node: &Outcome, now: Now) {
        match (companion, node) {
            // They are not granted, because their token is not known.
            (None | Some(Outcome::Done), Outcome::Done) => self.flow.state = State::Ready(self.delete_ours()),
            (Some(Outcome::Done), Outcome::NoNode) => self.delete(Victim::Companion),
            (None, Outcome::NoNode) | (Some(Outcome::NoNode), Outcome::Done | Outcome::NoNode) => {
                self.nothing_left();
            }
            _ => self.retry(Step::Recover, now),
        }
    }

    /// Creates the nodes again if the lock is still wanted. The leader then decides whether somebody else has it.
    fn nothing_left(&mut self) {
        self.clear();
        self.go(Step::Create);
    }

    fn delete(&mut self, victim: Victim) {
        self.flow.state = State::Ready(Step::Delete(victim));
    }

    pub(super) fn on_deleted(&mut self, victim: Victim, outcome: Outcome, now: Now) {
        match outcome {
            // Nothing was deleted. Either the companion is gone, and so are all, or an operator has deleted the node.
            Outcome::NoNode if victim == Victim::Both => self.delete(Victim::Companion),
            Outcome::Done | Outcome::NoNode => self.nothing_left(),
            outcome => {
                self.in_doubt = true;
                if let Outcome::Refused(refusal) = outcome {
                    self.fail(refusal);
                }
                self.retry(Step::Recover, now);
            }
        }
    }
}

/// Whether the node of this origin may exist, judged by the node that a server shows. When ours was created, no other
/// existed. So a server that shows an older one has lost its deletion, and for that reason cannot show ours.
pub(super) fn stands_for(origin: Origin, node: &Outcome) -> bool {
    origin_of(node).is_some_and(|seen| seen.czxid <= origin.czxid)
}

pub(super) fn origin_of(inspected: &Outcome) -> Option<Origin> {
    match inspected {
        Outcome::Found(node) => node.origin,
        _ => None,
    }
}
