//! The questions that the heartbeat of a session asks the ensemble, and the conclusions from the answers.

use super::{Holding, Session};
use crate::base::clock;
use crate::base::error::LossReason;
use crate::base::sync::lock_ignoring_poison;
use crate::machine::Moment;
use crate::machine::keeper::{HoldId, Proof, Seen, ToWatch};
use crate::machine::protocol::WatchEvent;
use crate::zookeeper::ensemble::{Check, Pending, Watch};
use std::sync::Arc;

/// The work that is due.
pub(crate) struct Due {
    pub(crate) beat: Option<Proof>,
    pub(crate) watches: Vec<ToWatch>,
    /// When to look again even if nothing happens; `None` if there is nothing to look after.
    pub(crate) wake: Option<Moment>,
}

/// A hold whose nodes should be watched, and the watches on them.
pub(crate) struct Looked {
    pub(crate) hold: HoldId,
    pub(super) seen: Seen,
    pub(crate) watches: Vec<Pending<WatchEvent>>,
}

impl Session {
    pub(crate) fn has_heartbeat(&self) -> bool {
        lock_ignoring_poison(&self.kept).keeper.has_heartbeat()
    }

    /// Marks the holds that are lost by now, and returns what is due.
    pub(crate) fn look_after(&self) -> Due {
        self.tell_losses();
        let is_connected = self.is_connected();
        let now = clock::now();
        let keeper = &mut lock_ignoring_poison(&self.kept).keeper;
        let watches = keeper.poll_watch(now, is_connected);
        let beat = keeper.poll_beat(now, is_connected);
        Due { beat, watches, wake: keeper.poll_timeout(now, is_connected) }
    }

    /// Proves one hold; `true` if the ensemble has answered.
    pub(crate) async fn prove(self: Arc<Self>, holding: &Holding) -> bool {
        let proof = lock_ignoring_poison(&self.kept).keeper.prove(holding.id, clock::now());
        let Some(proof) = proof else { return false };
        let (proof, check) = self.clone().check(proof).await;
        self.take_proof(&proof, &check);
        matches!(check, Check::Answered { .. })
    }

    /// Checks the nodes of a proof. Pass the result to [`take_proof`](Self::take_proof).
    pub(crate) async fn check(self: Arc<Self>, proof: Proof) -> (Proof, Check) {
        let nodes = proof.nodes.clone();
        let check = self.unless_over(Check::SessionOver, |ensemble| ensemble.check(nodes)).await;
        (proof, check)
    }

    /// Counts how long a heartbeat that began at `since` has waited for its answer.
    pub(crate) fn count_beat(&self, since: Moment, check: &Check) {
        if matches!(check, Check::Answered { .. }) {
            self.counters.count_heartbeat(clock::now().since(since));
            self.note_answer(since);
        }
    }

    /// Ends the holds whose node is gone, and proves the others. First pass on everything that watches have reported,
    /// with [`take_event`](Self::take_event).
    pub(crate) fn take_proof(&self, proof: &Proof, check: &Check) {
        if *check == Check::SessionOver {
            self.end(LossReason::SessionExpired);
        }
        lock_ignoring_poison(&self.kept).keeper.handle_proof(proof, check, clock::now());
        self.tell_losses();
    }

    /// Watches nodes of holds. Pass the result to [`take_watches`](Self::take_watches).
    pub(crate) async fn watch(self: Arc<Self>, holds: Vec<ToWatch>) -> Vec<Looked> {
        let nodes: Vec<_> = holds.iter().flat_map(|to_watch| to_watch.nodes.clone()).collect();
        let watches = self.unless_over(Vec::new(), |ensemble| ensemble.watch(nodes)).await;
        let mut watches = watches.into_iter();
        let looked = |to_watch: ToWatch| {
            let of_hold: Vec<_> = watches.by_ref().take(to_watch.nodes.len()).collect();
            let seen = match &of_hold[..] {
                nodes if nodes.iter().any(|node| matches!(node, Watch::Gone)) => Seen::Gone,
                nodes if nodes.len() < to_watch.nodes.len() => Seen::Unknown,
                nodes if nodes.iter().any(|node| matches!(node, Watch::Unknown)) => Seen::Unknown,
                _ => Seen::There,
            };
            let event = |watch| if let Watch::There(event) = watch { Some(event) } else { None };
            // If not all nodes of a hold can be watched, the watches on the others are dropped.
            let watches = if seen == Seen::There { of_hold } else { Vec::new() };
            Looked { hold: to_watch.hold, seen, watches: watches.into_iter().filter_map(event).collect() }
        };
        holds.into_iter().map(looked).collect()
    }

    pub(crate) fn take_watches(&self, looked: &[Looked]) {
        let seen: Vec<_> = looked.iter().map(|looked| (looked.hold, looked.seen)).collect();
        lock_ignoring_poison(&self.kept).keeper.handle_seen(&seen, clock::now());
        self.tell_losses();
    }

    /// Notes that a watch on a node of this hold has fired.
    pub(crate) fn take_event(&self, hold: HoldId, event: WatchEvent) {
        lock_ignoring_poison(&self.kept).keeper.handle_event(hold, event == WatchEvent::Deleted);
        self.tell_losses();
    }

    pub(super) fn tell_losses(&self) {
        let now = clock::now();
        let lost_next = || {
            let kept = &mut *lock_ignoring_poison(&self.kept);
            let (hold, reason) = kept.keeper.poll_lost(now)?;
            // At once, so that nobody finds it held but no longer kept.
            let lost =
                kept.holdings.remove(&hold).filter(|holding| holding.change(|status| status.lose(reason)));
            Some((lost, reason))
        };
        for (lost, reason) in std::iter::from_fn(lost_next) {
            lost.inspect(|holding| holding.note_loss(reason));
        }
    }
}
