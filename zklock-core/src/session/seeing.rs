//! What the answer to a request may show of nodes: of those of holds, and of children that are no contenders.

use crate::machine::keeper::HoldId;
use crate::machine::protocol::Operation;
use crate::session::attempt_marks::{AttemptMarks, Listing};
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
