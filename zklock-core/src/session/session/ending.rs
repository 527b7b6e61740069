//! How a session ends, and what is then known about its nodes.

use super::{Link, Session};
use crate::base::error::LossReason;
use crate::base::sync::lock_ignoring_poison;

/// The state of a session's nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nodes {
    /// They may exist: the session is open, or is being closed.
    Kept,
    /// They are gone: the servers have said that the session is over.
    Gone,
    /// They may exist until the servers end the session by themselves, and nobody will hear of that.
    Left,
}

impl Session {
    /// Ends the session. Its holds are lost, and everything that works in it learns that. Only the first reason counts.
    ///
    /// Whatever notices the end first calls this. If that were left to the library, the session would seem open until then,
    /// and would be tried again and again. Only the servers can say that it has expired.
    pub(crate) fn end(&self, reason: LossReason) {
        let nodes = if reason == LossReason::SessionExpired { Nodes::Gone } else { Nodes::Kept };
        self.end_with(reason, nodes);
    }

    /// Ends it without the servers' word, because it can get no connection any more.
    pub(crate) fn abandon_nodes(&self) {
        self.end_with(LossReason::SessionExpired, Nodes::Left);
    }

    fn end_with(&self, reason: LossReason, nodes: Nodes) {
        self.link.send_if_modified(|link| {
            let is_first = !matches!(link, Link::Over(_));
            if is_first {
                // Set before anybody can see that it is over.
                self.nodes.send_replace(nodes);
                *link = Link::Over(reason);
            }
            is_first
        });
        // Only now, because a caller that finds no connection takes that for the end, and must not be the first to report
        // it. When its last handle is dropped, the library closes the session, and the servers give its locks to others. By
        // then its holds must have been marked as lost.
        let ensemble = lock_ignoring_poison(&self.ensemble).take();
        // Another call may have been first.
        let link = *self.link.borrow();
        if let Link::Over(reason) = link {
            lock_ignoring_poison(&self.kept).keeper.handle_over(reason);
        }
        self.tell_losses();
        drop(ensemble);
    }

    /// Records what happened to its nodes when it was closed.
    pub(crate) fn set_nodes(&self, nodes: Nodes) {
        self.nodes.send_if_modified(|known| {
            let changes = *known == Nodes::Kept;
            if changes {
                *known = nodes;
            }
            changes
        });
    }

    /// Whether its nodes are known to be gone.
    pub(crate) fn nodes_are_gone(&self) -> bool {
        *self.nodes.borrow() == Nodes::Gone
    }

    /// If it was closed to get rid of its nodes, waits until they are gone, or it is certain that nobody will hear of it.
    /// Returns whether they are known to be gone.
    pub(crate) async fn gone(&self) -> bool {
        if self.loss() == Some(LossReason::SessionClosed) || self.undeletable().is_some() {
            // It cannot fail: the sender is ours.
            let _ = self.nodes.subscribe().wait_for(|nodes| *nodes != Nodes::Kept).await;
        }
        self.nodes_are_gone()
    }
}
