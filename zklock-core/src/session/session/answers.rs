//! What the answers to any requests show: of the nodes of holds, of nodes that may not be deleted, of children that are no
//! contenders, and of orphans. See `Keeper::handle_children` and `Lasting`.

use super::Session;
use crate::base::error::LossReason;
use crate::machine::keeper::HoldId;
use crate::machine::lasting::Lasting;
use crate::machine::protocol::{Node, Operation, Outcome, Refusal};
use crate::session::attempt_marks::{AttemptMarks, Listing};
use crate::zookeeper::ensemble::text_of;
use std::sync::Arc;

/// A request whose answer may show something. Make it before the request is sent.
pub(super) struct Seeing<'a> {
    /// The first hold that is younger than the request.
    pub(super) before: HoldId,
    pub(super) looks: Vec<Look>,
    /// A node that goes while it is under way is not taken for an orphan.
    pub(super) listing: Option<Listing<'a>>,
}

impl<'a> Seeing<'a> {
    pub(super) fn new(before: HoldId, flight: &[Operation], attempts: &'a AttemptMarks) -> Self {
        let looks: Vec<_> = flight.iter().map(Look::from).collect();
        let lists = looks.iter().any(|look| matches!(look, Look::Children(_)));
        Self { before, looks, listing: lists.then(|| attempts.begin_listing()) }
    }
}

/// What an operation looks at.
pub(super) enum Look {
    Children(Arc<str>),
    Node(String),
    Nothing,
}

impl From<&Operation> for Look {
    fn from(operation: &Operation) -> Self {
        match operation {
            Operation::Inspect { path } => Self::Node(path.clone()),
            _ => operation.listed().map_or(Self::Nothing, |directory| Self::Children(directory.clone())),
        }
    }
}

impl Session {
    pub(super) fn seeing(&self, flight: &[Operation]) -> Seeing<'_> {
        Seeing::new(self.lock().keeper.next_hold(), flight, &self.attempts)
    }

    /// Takes note of what a flight has shown.
    pub(super) fn see_flight(self: &Arc<Self>, seeing: &Seeing<'_>, outcomes: &[Outcome]) {
        for (look, outcome) in seeing.looks.iter().zip(outcomes) {
            match (look, outcome) {
                (Look::Children(directory), Outcome::Children(children)) => {
                    self.see(seeing, directory, children);
                    seeing.listing.iter().for_each(|listing| self.heal(listing, directory, children));
                    let lasting = &mut self.lock().lasting;
                    Lasting::forget_absent(lasting, directory, children);
                }
                (Look::Children(directory), Outcome::NoNode) => self.see(seeing, directory, &[]),
                (Look::Node(path), Outcome::Found(Node { origin: None, .. })) => {
                    Arc::make_mut(&mut self.lock().lasting).note(path);
                }
                _ => {}
            }
        }
    }

    /// Ends the holds whose nodes are missing among the children of a directory.
    pub(super) fn see(&self, seeing: &Seeing<'_>, directory: &str, children: &[String]) {
        self.tell(|state| state.keeper.handle_children(seeing.before, directory, children));
    }

    /// Ends the hold that had this node, if there is one.
    pub(super) fn see_deleted(&self, seeing: &Seeing<'_>, path: &str) {
        self.tell(|state| state.keeper.handle_missing(seeing.before, path));
    }

    /// Returns the children that are known to be no contenders.
    pub(crate) fn lasting(&self) -> Arc<Lasting> {
        self.lock().lasting.clone()
    }

    /// Closes the session if it may not delete one of its nodes. Nobody else would delete the node, and it would keep the lock
    /// taken. So the session ends, and its nodes with it; its holds are marked as lost first. `deletions` says which operations
    /// of the flight delete nodes.
    pub(super) fn see_refusals(&self, deletions: &[bool], outcomes: &mut [Outcome]) {
        for (outcome, _) in outcomes.iter_mut().zip(deletions).filter(|(_, deletes)| **deletes) {
            let Outcome::Refused(refusal) = outcome else { continue };
            let why = self.undeletable.get_or_init(|| {
                let why = format!("{}; its session was closed to get rid of its nodes", text_of(refusal));
                tracing::warn!(session = format_args!("{:#x}", self.id), why, "a node may not be deleted");
                why.into()
            });
            *refusal = Refusal::Answer(why.to_string());
            self.end(LossReason::SessionClosed);
        }
    }

    /// Returns why one of its nodes could not be deleted, if the session was closed for that.
    pub(crate) fn undeletable(&self) -> Option<&str> {
        self.undeletable.get().map(|why| &**why)
    }
}
