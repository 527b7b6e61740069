//! What the answers to any requests of the session show of the nodes of its holds. See
//! [`Keeper::handle_children`](crate::machine::keeper::Keeper::handle_children).

use super::Session;
use crate::ensemble::Write;
use crate::machine::keeper::HoldId;
use crate::machine::protocol::{Operation, Outcome};
use crate::sync::lock_ignoring_poison;
use std::sync::Arc;

/// A request whose answer may show that nodes are deleted. Make it before the request is sent.
pub(super) struct Seeing {
    before: HoldId,
    /// The directory that each operation lists.
    listed: Vec<Option<Arc<str>>>,
}

impl Session {
    pub(super) fn seeing(&self, flight: &[Operation]) -> Seeing {
        let listed = flight.iter().map(|operation| operation.listed().cloned()).collect();
        Seeing { before: lock_ignoring_poison(&self.kept).keeper.next_hold(), listed }
    }

    /// Takes note of what a flight has shown.
    pub(super) fn see_flight(&self, seeing: &Seeing, outcomes: &[Outcome]) {
        for (directory, outcome) in seeing.listed.iter().zip(outcomes) {
            match (directory, outcome) {
                (Some(directory), Outcome::Children(children)) => self.see(seeing, directory, children),
                (Some(directory), Outcome::NoNode) => self.see(seeing, directory, &[]),
                _ => {}
            }
        }
    }

    /// Ends the holds whose nodes are missing among the children of a directory.
    pub(super) fn see(&self, seeing: &Seeing, directory: &str, children: &[String]) {
        lock_ignoring_poison(&self.kept).keeper.handle_children(seeing.before, directory, children);
        self.tell_losses();
    }

    /// Ends the hold that had this node, if there is one.
    pub(super) fn see_deleted(&self, seeing: &Seeing, path: &str) {
        lock_ignoring_poison(&self.kept).keeper.handle_missing(seeing.before, path);
        self.tell_losses();
    }
}

/// Returns the nodes that are deleted if the writes are done.
pub(super) fn deleted_by(writes: &[Write]) -> Vec<String> {
    let deletes = |write: &&Write| matches!(write, Write::Delete { .. });
    writes.iter().filter(deletes).map(|write| write.path().to_owned()).collect()
}
