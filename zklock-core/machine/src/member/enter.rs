//! How a member gets its node, and waits until the barrier is open.

use super::{Aim, Answer, Member, Purpose, Step, names, seen};
use crate::barrier::{self, Entrance, READY, Ready, Seen};
use crate::protocol::{Now, Operation, Outcome, Patience, Refusal};
use crate::retry::Parented;
use std::collections::BTreeSet;

/// How many times others may be faster in opening the barrier.
const NOT_OPENED_AT_MOST: u32 = 8;

impl Member {
    /// Creates and lists in one flight. The list includes everybody who was there before us. So the last to come sees
    /// them all, and opens the barrier.
    pub(super) fn arrival(&mut self) -> Vec<Operation> {
        let directory = self.directory.clone();
        let mut flight = Vec::new();
        if std::mem::take(&mut self.in_doubt) {
            flight.push(Operation::Barrier { directory: directory.clone() });
        }
        if !self.created {
            self.may_be_there = true;
            flight.push(Operation::CreateSingle { path: self.path_of(&self.name), data: self.data.clone() });
        }
        flight.push(Operation::InspectAndWatch { path: self.path_of(READY) });
        flight.push(Operation::List { directory });
        flight
    }

    pub(super) fn arrived(&mut self, mut outcomes: Vec<Outcome>, now: Now) {
        if let Some(Outcome::Refused(refusal)) =
            outcomes.iter().find(|outcome| matches!(outcome, Outcome::Refused(_)))
        {
            // Without the node there is nothing to delete. Deleting it could be refused as well, and a session that may not delete
            // its node has to end.
            if !self.created && is_first_creation(&outcomes) && outcomes[0].refusal().is_some() {
                self.may_be_there = false;
            }
            return self.fail(refusal.clone());
        }
        let (list, ready) = (outcomes.pop(), outcomes.pop());
        if !self.created {
            match outcomes.pop() {
                Some(Outcome::Created(nodes)) => {
                    self.created = true;
                    self.czxid = nodes.first().and_then(|node| node.origin).map(|origin| origin.czxid);
                    self.parents.clear();
                }
                // Nobody else has this name, so it is ours, and only the reply was lost.
                Some(Outcome::NodeExists) => self.created = true,
                Some(Outcome::NoNode) => return self.go(Step::CreateParents),
                _ => {}
            }
        }
        match (ready, list) {
            (Some(ready @ (Outcome::Found(_) | Outcome::NoNode)), Some(Outcome::Children(children)))
                if self.created =>
            {
                if ready == Outcome::NoNode {
                    self.decide(&children, Ready::Missing, &[], now);
                } else if self.czxid.is_some() {
                    self.go(Step::Compare { children });
                } else {
                    self.go(Step::Survey(Purpose::Entering { children }));
                }
            }
            // An operator has deleted the whole barrier.
            (Some(Outcome::NoNode), Some(Outcome::NoNode)) if self.created => self.come_anew(now),
            _ => self.come_again(now),
        }
    }

    /// Comes again with another name, because the node was deleted. Others may wait for the end of the old one, and must
    /// not wait for a member of the next round.
    fn come_anew(&mut self, now: Now) {
        self.forget_node();
        self.name_after(self.mark.next());
        self.retry(Step::Come, now);
    }

    /// Comes again, because the server may have shown something old, or not have done what we asked for. The watch may
    /// have gone with the connection, so a closer look alone is never repeated.
    fn come_again(&mut self, now: Now) {
        self.in_doubt = true;
        self.retry(Step::Come, now);
    }

    pub(super) fn parents_created(&mut self, outcome: Outcome, now: Now) {
        match self.parents.answered(vec![outcome]) {
            Parented::Created => self.go(Step::Come),
            Parented::Failed(refusal) => self.fail(refusal),
            Parented::Unknown => self.retry(Step::CreateParents, now),
        }
    }

    pub(super) fn compared(&mut self, children: Vec<String>, ready: Outcome, now: Now) {
        match ready {
            Outcome::Found(node) => {
                let czxid = node.origin.map(|origin| origin.czxid);
                if czxid > self.czxid {
                    self.decide(&children, Ready::Newer, &[], now);
                } else {
                    self.go(Step::Survey(Purpose::Entering { children }));
                }
            }
            Outcome::NoNode => self.go(Step::Survey(Purpose::Entering { children })),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.come_again(now),
        }
    }

    pub(super) fn surveyed_to_enter(&mut self, children: &[String], survey: Outcome, now: Now) {
        match survey {
            Outcome::Surveyed(nodes) => {
                let seen = seen(&nodes);
                let name = self.name.clone();
                self.decide(children, Ready::of(&seen, &name), &seen, now);
            }
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.come_again(now),
        }
    }

    fn decide(&mut self, children: &[String], ready: Ready<'_>, seen: &[Seen<'_>], now: Now) {
        let others = names(barrier::others(children, &self.name));
        match barrier::entrance(children, &self.name, self.members, ready) {
            // An operator has deleted it.
            Entrance::Absent => self.come_anew(now),
            Entrance::Passes => self.entered(others),
            Entrance::Opens { guards, replaces } => {
                let guards = guards.into_iter().map(str::to_owned).collect();
                let entered = match ready {
                    Ready::OfRound(_) => names(barrier::insiders(seen)),
                    _ => others,
                };
                self.go(Step::Open { guards, replaces, entered });
            }
            Entrance::Waits if self.patience == Patience::TriesOnce => self.end_with(Answer::NotOpen),
            Entrance::Waits => {
                self.failures.clear();
                self.wait(Step::Come, now);
            }
        }
    }

    pub(super) fn opened(&mut self, entered: BTreeSet<String>, opened: Outcome, now: Now) {
        match opened {
            Outcome::Done => self.entered(entered),
            // Another member has opened it first.
            Outcome::NodeExists => self.not_opened(&format!("{READY} comes and goes in a loop")),
            // The `ready` that should have been replaced.
            Outcome::NotEmpty => self.not_opened(&format!("{READY} has children: delete them")),
            // One of the members that should have gone in is gone, or the `ready` that should have been replaced.
            Outcome::NoNode => {
                self.in_doubt = true;
                self.go(Step::Come);
            }
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.come_again(now),
        }
    }

    fn not_opened(&mut self, problem: &str) {
        self.not_opened += 1;
        if self.not_opened > NOT_OPENED_AT_MOST {
            return self.fail(Refusal::Answer(problem.to_owned()));
        }
        self.in_doubt = true;
        self.go(Step::Come);
    }

    fn entered(&mut self, others: BTreeSet<String>) {
        if self.aim == Aim::Nothing {
            return self.clean_up();
        }
        self.others.entered = others;
        self.tell(Answer::Entered { node: self.path_of(&self.name) });
        self.aim = Aim::Stay;
        self.failures.clear();
        self.state = super::State::Within;
    }
}

/// Whether the flight of these answers began with a creation, and not with a barrier after an answer that was lost.
fn is_first_creation(outcomes: &[Outcome]) -> bool {
    outcomes.len() == 3
}
