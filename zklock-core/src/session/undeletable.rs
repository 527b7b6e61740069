//! Nodes of a session that it may not delete, and that go with it.

use super::Session;
use crate::ensemble::text_of;
use crate::error::LossReason;
use crate::machine::protocol::{Outcome, Refusal};
use std::sync::Arc;

impl Session {
    /// What became of a flight, some operations of which delete nodes.
    pub(super) fn see_refusals(&self, deletions: &[bool], outcomes: &mut [Outcome]) {
        for (outcome, _) in outcomes.iter_mut().zip(deletions).filter(|(_, deletes)| **deletes) {
            if let Outcome::Refused(refusal) = outcome {
                *refusal = Refusal::Answer(self.be_rid_of_nodes(refusal).to_string());
            }
        }
    }

    /// A node of this session may not be deleted. Nobody else would delete it, and it would keep the lock taken. So the
    /// session ends, and its nodes with it; its holds are told before that.
    fn be_rid_of_nodes(&self, refusal: &Refusal) -> Arc<str> {
        let why = self.undeletable.get_or_init(|| {
            let why = format!("{}; its session was closed, so that its nodes go", text_of(refusal));
            tracing::warn!(session = format_args!("{:#x}", self.id), why, "a node may not be deleted");
            why.into()
        });
        self.end(LossReason::SessionClosed);
        why.clone()
    }

    /// Why a node of it could not be deleted, if it was closed for that.
    pub(crate) fn undeletable(&self) -> Option<&str> {
        self.undeletable.get().map(|why| &**why)
    }
}
