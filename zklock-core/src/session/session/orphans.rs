//! The nodes of a session that none of its attempts knows. See [`marks`](crate::machine::marks).

use super::Session;
use crate::machine::name::{SINGLE_NAME, mark_of_companion};
use crate::machine::protocol::{Operation, Outcome};
use crate::session::attempt_marks::{AttemptMarks, Listing};
use std::sync::Arc;

impl Session {
    pub(crate) fn attempts(&self) -> &AttemptMarks {
        &self.attempts
    }

    /// Lists where attempts recently were, to [heal](Self::heal) what is there. An ensemble may lose transactions when the
    /// leader changes, and that breaks connections.
    pub(crate) async fn sweep(self: Arc<Self>) {
        let left = self.attempts.left().into_iter();
        let flight: Vec<_> = left.map(|directory| Operation::List { directory }).collect();
        if !flight.is_empty() {
            self.send(flight).await;
        }
    }

    /// Deletes the children that this session has created and none of its attempts knows, because the ensemble has
    /// lost their deletion. Nothing waits for it: the next listing tries again.
    pub(super) fn heal(self: &Arc<Self>, listing: &Listing<'_>, directory: &str, children: &[String]) {
        let orphans = listing.disown_orphans(children);
        if orphans.is_empty() {
            return;
        }
        tracing::warn!(directory, ?orphans, "nodes of this session that no attempt knows are deleted");
        let (companions, others): (Vec<_>, Vec<_>) =
            orphans.into_iter().partition(|name| mark_of_companion(name).is_some());
        let path_of = |name: String| format!("{directory}/{name}");
        let others: Vec<_> = others.into_iter().map(path_of).map(|path| Operation::Delete { path }).collect();
        if !others.is_empty() {
            tokio::spawn(self.clone().send(others));
        }
        for companion in companions.into_iter().map(path_of) {
            tokio::spawn(self.clone().heal_pair(directory.into(), companion));
        }
    }

    /// Deletes the companion of a single-node lock's node, and that node if it is of the same transaction.
    async fn heal_pair(self: Arc<Self>, directory: Arc<str>, companion: String) {
        let path = format!("{directory}/{SINGLE_NAME}");
        let inspect = |path: &String| Operation::Inspect { path: path.clone() };
        let looks = vec![Operation::Barrier { directory }, inspect(&companion), inspect(&path)];
        let landing = self.clone().send(looks).await;
        let [Outcome::Done, Outcome::Found(seen), node] = &landing.outcomes[..] else { return };
        let is_pair = matches!(node, Outcome::Found(node) if node.origin == seen.origin);
        let delete = match is_pair {
            true => Operation::DeletePair { path, companion },
            false => Operation::Delete { path: companion },
        };
        self.send(vec![delete]).await;
    }
}
