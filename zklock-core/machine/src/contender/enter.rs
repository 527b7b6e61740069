//! How an attempt gets its nodes, and finds them again when the reply to their creation was lost.

use super::nodes::Nodes;
use super::{Contender, Phase, Step, is_deleted};
use crate::Moment;
use crate::claim::Claim;
use crate::name::Name;
use crate::protocol::{Node, Now, Operation, Outcome, Refusal};

impl Contender {
    /// Creates and lists in one flight.
    pub(super) fn entry(&self) -> Vec<Operation> {
        let first = &self.queue.slots[0];
        let create = match &self.claims[..] {
            [Claim { within: Some(writer), directory, .. }] => {
                // It takes the number of its writer, so that no other writer comes in between.
                let number = Name::parse(writer).map(|writer| writer.sequence.to_string());
                let path = format!("{directory}/{}{}", first.prefix, number.unwrap_or_default());
                Operation::CreateWithin {
                    path,
                    guard: format!("{directory}/{writer}"),
                    data: first.data.clone(),
                }
            }
            // One transaction joins all the queues. So of any two attempts, the same one is first in all the queues that they
            // share, and no two of them wait for each other.
            _ => self.queue.creation(),
        };
        // The listing is taken after the creation, so it contains every node that can ever be before ours, and one round trip
        // decides a free lock.
        std::iter::once(create).chain(self.listings()).collect()
    }

    fn listings(&self) -> impl Iterator<Item = Operation> {
        self.claims.iter().map(|claim| Operation::List { directory: claim.directory.clone() })
    }

    pub(super) fn nodes(&self, phase: Phase) -> &Nodes {
        match phase {
            Phase::Queue => &self.queue,
            Phase::Permits => &self.permits,
        }
    }

    fn nodes_mut(&mut self, phase: Phase) -> &mut Nodes {
        match phase {
            Phase::Queue => &mut self.queue,
            Phase::Permits => &mut self.permits,
        }
    }

    pub(super) fn entered(&mut self, created: Outcome, listed: Vec<Outcome>, sent: Moment, now: Now) {
        match created {
            Outcome::Created(nodes) if nodes.len() == self.queue.slots.len() => {
                let known = self.are_known(&nodes);
                self.queue.fill(nodes, sent);
                self.flow.parents.clear();
                if known { self.on_listings(listed, now) } else { self.go(Step::Adopt(Phase::Queue)) }
            }
            Outcome::NoNode => {
                self.queue.forget();
                match self.claims[0].within {
                    Some(_) => self.fail(Refusal::WriterGone),
                    None => self.go(Step::CreateParents(Phase::Queue)),
                }
            }
            // Nothing was created, so nothing has to be found or deleted.
            Outcome::Refused(refusal) => {
                self.queue.forget();
                self.fail(refusal);
            }
            _ => self.retry(Step::Recover(Phase::Queue), now),
        }
    }

    /// Whether the server has reported the origin of the nodes.
    pub(super) fn are_known(&self, nodes: &[Node]) -> bool {
        nodes.iter().all(|node| node.origin.is_some_and(|origin| origin.session == self.flow.session))
    }

    pub(super) fn parents(&self, phase: Phase) -> Vec<Operation> {
        let are_lasting = self.claims.iter().any(|claim| claim.layout.is_some());
        let create = |directory| match are_lasting {
            true => Operation::CreateLastingParents { directory },
            false => Operation::CreateParents { directory },
        };
        self.nodes(phase).directories().into_iter().map(create).collect()
    }

    /// Lists behind a barrier.
    pub(super) fn recovery(&self, phase: Phase) -> Vec<Operation> {
        let directories = self.nodes(phase).directories();
        // Without it, a server that lags behind, or no longer leads, might not show a node that exists.
        let barrier =
            directories.first().map(|directory| Operation::Barrier { directory: directory.clone() });
        barrier.into_iter().chain(self.nodes(phase).search()).collect()
    }

    pub(super) fn recovered(&mut self, phase: Phase, barrier: &Outcome, listed: Vec<Outcome>, now: Now) {
        if *barrier != Outcome::Done {
            return self.retry(Step::Recover(phase), now);
        }
        let mut children = Vec::new();
        for listing in listed {
            children.push(match listing {
                Outcome::Children(children) => children,
                Outcome::NoNode => Vec::new(),
                Outcome::Refused(refusal) => {
                    // Nodes may exist all the same, so that is not the end of it.
                    self.fail(refusal);
                    return self.retry(Step::Recover(phase), now);
                }
                _ => return self.retry(Step::Recover(phase), now),
            });
        }
        let nodes = self.nodes_mut(phase);
        nodes.recover(&children);
        if nodes.is_gone() {
            if phase == Phase::Queue {
                self.forget();
            }
            self.go(phase.creation());
        } else if nodes.is_there() {
            self.go(Step::Adopt(phase));
        } else {
            // An operator has deleted some of them.
            self.go(Step::Clear);
        }
    }

    /// Reads who owns the nodes, deletes any others with our mark, and lists where we stand.
    pub(super) fn adoption(&self, phase: Phase) -> Vec<Operation> {
        let nodes = self.nodes(phase);
        let mut flight: Vec<Operation> = Vec::new();
        flight.extend(nodes.slots.iter().filter_map(|slot| Some(Operation::Inspect { path: slot.path()? })));
        flight.extend(nodes.surplus.iter().map(|path| Operation::Delete { path: path.clone() }));
        // Behind the deletions: one of our own must not be in our way.
        if phase == Phase::Queue {
            flight.extend(self.listings());
        }
        flight
    }

    pub(super) fn adopted(&mut self, phase: Phase, mut outcomes: Vec<Outcome>, now: Now) {
        let session = self.flow.session;
        let nodes = self.nodes_mut(phase);
        let mut pruned = outcomes.split_off(nodes.slots.len().min(outcomes.len()));
        let listed = pruned.split_off(nodes.surplus.len().min(pruned.len()));
        if !pruned.iter().all(is_deleted) {
            return self.retry(Step::Adopt(phase), now);
        }
        nodes.surplus.clear();
        let mut transactions = Vec::new();
        for (slot, found) in outcomes.into_iter().enumerate() {
            match found {
                Outcome::Found(Node { origin: Some(origin), .. }) if origin.session == session => {
                    nodes.adopt(slot, origin);
                    transactions.push(origin.czxid);
                }
                Outcome::Found(Node { name, origin: Some(_) }) => {
                    // It is not ours to delete.
                    nodes.lose(slot);
                    return self.fail(Refusal::NotOurs(name));
                }
                Outcome::NoNode => {
                    nodes.lose(slot);
                    return self.enter_again();
                }
                Outcome::Refused(refusal) => return self.fail(refusal),
                _ => return self.retry(Step::Adopt(phase), now),
            }
        }
        match phase {
            // If not all nodes are of one transaction, others could have come in between.
            Phase::Queue if transactions.iter().any(|it| *it != transactions[0]) => self.enter_again(),
            Phase::Queue => self.on_listings(listed, now),
            Phase::Permits => self.proceed(now),
        }
    }
}
