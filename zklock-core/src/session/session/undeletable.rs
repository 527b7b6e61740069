//! Nodes that the session may not delete, and that go when it is closed.

use super::Session;
use crate::base::error::LossReason;
use crate::machine::protocol::{Outcome, Refusal};
use crate::zookeeper::ensemble::text_of;
use std::sync::Arc;

impl Session {
    /// Looks for refusals in the outcomes of a flight. `deletions` says which of its operations delete nodes.
    pub(super) fn see_refusals(&self, deletions: &[bool], outcomes: &mut [Outcome]) {
        for (outcome, _) in outcomes.iter_mut().zip(deletions).filter(|(_, deletes)| **deletes) {
            if let Outcome::Refused(refusal) = outcome {
                *refusal = Refusal::Answer(self.be_rid_of_nodes(refusal).to_string());
            }
        }
    }

    /// Closes the session because it may not delete one of its nodes. Nobody else would delete the node, and it would
    /// keep the lock taken. So the session ends, and its nodes with it; its holds are marked as lost first.
    fn be_rid_of_nodes(&self, refusal: &Refusal) -> Arc<str> {
        let why = self.undeletable.get_or_init(|| {
            let why = format!("{}; its session was closed to get rid of its nodes", text_of(refusal));
            tracing::warn!(session = format_args!("{:#x}", self.id), why, "a node may not be deleted");
            why.into()
        });
        self.end(LossReason::SessionClosed);
        why.clone()
    }

    /// Returns why one of its nodes could not be deleted, if the session was closed for that.
    pub(crate) fn undeletable(&self) -> Option<&str> {
        self.undeletable.get().map(|why| &**why)
    }
}
