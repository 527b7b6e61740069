//! What the answers to any requests of the session show of the nodes of its holds, and of children that are no contenders. See
//! [`Keeper::handle_children`](crate::machine::keeper::Keeper::handle_children) and [`Lasting`].

use super::{Session, turn};
use crate::base::sync::lock_ignoring_poison;
use crate::machine::keeper::HoldId;
use crate::machine::lasting::Lasting;
use crate::machine::protocol::{Node, Operation, Outcome};
use crate::zookeeper::ensemble::{Guarded, Write};
use std::sync::Arc;

/// A request whose answer may show something. Make it before the request is sent.
pub(super) struct Seeing {
    before: HoldId,
    looks: Vec<Look>,
}

/// What an operation looks at.
enum Look {
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
    pub(super) fn seeing(&self, flight: &[Operation]) -> Seeing {
        let looks = flight.iter().map(Look::from).collect();
        Seeing { before: lock_ignoring_poison(&self.kept).keeper.next_hold(), looks }
    }

    /// Lists the children of these directories, and watches them.
    pub(crate) async fn guard(&self, directories: Vec<Arc<str>>) -> Guarded {
        let _turn = turn(&self.guards).await;
        let (seeing, asked) = (self.seeing(&[]), directories.clone());
        let guarded = self.unless_over(Guarded::default(), |ensemble| ensemble.guard(directories)).await;
        for (directory, children) in asked.iter().zip(&guarded.children) {
            children.iter().for_each(|children| self.see(&seeing, directory, children));
        }
        guarded
    }

    /// Takes note of what a flight has shown.
    pub(super) fn see_flight(&self, seeing: &Seeing, outcomes: &[Outcome]) {
        for (look, outcome) in seeing.looks.iter().zip(outcomes) {
            match (look, outcome) {
                (Look::Children(directory), Outcome::Children(children)) => {
                    self.see(seeing, directory, children);
                    Lasting::forget_absent(&mut lock_ignoring_poison(&self.lasting), directory, children);
                }
                (Look::Children(directory), Outcome::NoNode) => self.see(seeing, directory, &[]),
                (Look::Node(path), Outcome::Found(Node { origin: None, .. })) => {
                    Arc::make_mut(&mut lock_ignoring_poison(&self.lasting)).note(path);
                }
                _ => {}
            }
        }
    }

    /// Returns the children that are known to be no contenders.
    pub(crate) fn lasting(&self) -> Arc<Lasting> {
        lock_ignoring_poison(&self.lasting).clone()
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
