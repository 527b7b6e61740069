//! The holds of a session, what its heartbeat asks the ensemble about them, and the conclusions from the answers.

use super::{Holding, Session, State};
use crate::base::clock;
use crate::base::error::LossReason;
use crate::machine::Moment;
use crate::machine::keeper::{self, HoldId, Proof, ToWatch};
use crate::machine::protocol::WatchEvent;
use crate::machine::status::Status;
use crate::zookeeper::ensemble::{Check, HeldNode, Pending, Watch};
use std::sync::Arc;
use std::time::Duration;

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
    pub(super) seen: keeper::Seen,
    pub(crate) watches: Vec<Pending<WatchEvent>>,
}

impl Session {
    /// Adds a hold to the heartbeat. `path` is the lock's name in messages. `czxid` is the transaction that created the first
    /// node; the heartbeat needs it if that node's name is used again.
    pub(crate) fn register(
        self: &Arc<Self>,
        path: Arc<str>,
        nodes: Vec<Arc<str>>,
        czxid: i64,
        name_is_reused: bool,
        sent: Moment,
    ) -> Arc<Holding> {
        let origins = std::iter::once(name_is_reused.then_some(czxid)).chain(std::iter::repeat(None));
        let held = nodes.iter().zip(origins);
        let held = held.map(|(path, origin)| HeldNode { path: path.clone(), origin }).collect();
        // It is lost at once if the session ended just before.
        let holding = self.tell(|state| {
            let id = state.keeper.handle_grant(held, sent);
            let holding = Arc::new(Holding::new(id, self.clone(), path, nodes, czxid, name_is_reused));
            state.holdings.insert(id, Arc::downgrade(&holding));
            holding
        });
        self.registered.notify_one();
        holding
    }

    /// Waits for a new hold, a shorter lease, or an attempt whose answer is late.
    pub(crate) async fn registered(&self) {
        self.registered.notified().await;
    }

    /// Returns how long the hold can be relied on.
    pub(crate) fn valid_for(&self, holding: &Holding) -> Duration {
        if holding.status() != Status::Held || self.is_over() {
            return Duration::ZERO;
        }
        self.lock().keeper.valid_for(holding.id, clock::now())
    }

    /// Whether two heartbeats have passed without a proof of the hold.
    pub(crate) fn is_late(&self, holding: &Holding) -> bool {
        self.lock().keeper.is_late(holding.id, clock::now())
    }

    /// Marks the hold as lost, for a reason that the heartbeat cannot find out.
    pub(crate) fn lose(&self, holding: &Holding, reason: LossReason) {
        if holding.lose(reason) {
            holding.log_loss(reason);
            self.lock().keeper.handle_loss(holding.id);
        }
        self.unregister(holding);
    }

    /// The holder releases it; `false` if the hold was lost before.
    pub(crate) fn release(&self, holding: &Holding) -> bool {
        let is_released = holding.let_go();
        self.unregister(holding);
        is_released
    }

    /// Gives up looking after the hold, and wakes all who wait for its end.
    pub(crate) fn abandon(&self, holding: &Holding) {
        holding.change(Status::abandon);
        self.unregister(holding);
    }

    /// Removes a hold from the heartbeat. Change its status first: a hold with the status `Held` stays there.
    fn unregister(&self, holding: &Holding) {
        let state = &mut *self.lock();
        state.keeper.handle_release(holding.id);
        state.holdings.remove(&holding.id);
    }

    /// Tells the keeper something, and those who have holds what they have lost by now.
    pub(super) fn tell<T>(&self, news: impl FnOnce(&mut State) -> T) -> T {
        let mut locked = self.lock();
        let (told, now) = (news(&mut locked), clock::now());
        let State { keeper, holdings, .. } = &mut *locked;
        let mut lost = Vec::new();
        while let Some((hold, reason)) = keeper.poll_lost(now) {
            // At once, so that nobody finds it held but no longer registered.
            let holding = holdings.remove(&hold).and_then(|holding| holding.upgrade());
            lost.extend(holding.filter(|holding| holding.lose(reason)).map(|holding| (holding, reason)));
        }
        drop(locked);
        // What is logged runs code of the program.
        lost.iter().for_each(|(holding, reason)| holding.log_loss(*reason));
        told
    }

    pub(crate) fn has_heartbeat(&self) -> bool {
        self.lock().keeper.has_heartbeat()
    }

    /// Marks the holds that are lost by now, and returns what is due.
    pub(crate) fn due(&self) -> Due {
        self.tell(|_| ());
        let (is_connected, now, keeper) = (self.is_connected(), clock::now(), &mut self.lock().keeper);
        Due {
            watches: keeper.poll_watch(now, is_connected),
            beat: keeper.poll_beat(now, is_connected),
            wake: keeper.poll_timeout(now, is_connected),
        }
    }

    /// Proves one hold; `true` if the ensemble has answered.
    pub(crate) async fn prove(self: Arc<Self>, holding: &Holding) -> bool {
        let Some(proof) = self.lock().keeper.prove(holding.id, clock::now()) else { return false };
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
            self.counters.heartbeat_lag.add_time(clock::now().since(since));
            self.note_answer(since);
        }
    }

    /// Ends the holds whose node is gone, and proves the others. First pass on everything that watches have reported,
    /// with [`take_event`](Self::take_event).
    pub(crate) fn take_proof(&self, proof: &Proof, check: &Check) {
        if *check == Check::SessionOver {
            self.end(LossReason::SessionExpired);
        }
        self.tell(|state| state.keeper.handle_proof(proof, check, clock::now()));
    }

    /// Watches nodes of holds. Pass the result to [`take_watches`](Self::take_watches).
    pub(crate) async fn watch(self: Arc<Self>, holds: Vec<ToWatch>) -> Vec<Looked> {
        let nodes: Vec<_> = holds.iter().flat_map(|to_watch| to_watch.nodes.clone()).collect();
        let watches = self.unless_over(Vec::new(), |ensemble| ensemble.watch(nodes)).await;
        let mut watches = watches.into_iter();
        let looked = |to_watch: ToWatch| {
            let of_hold: Vec<_> = watches.by_ref().take(to_watch.nodes.len()).collect();
            let seen = match &of_hold[..] {
                nodes if nodes.iter().any(|node| matches!(node, Watch::Gone)) => keeper::Seen::Gone,
                nodes if nodes.len() < to_watch.nodes.len() => keeper::Seen::Unknown,
                nodes if nodes.iter().any(|node| matches!(node, Watch::Unknown)) => keeper::Seen::Unknown,
                _ => keeper::Seen::There,
            };
            let event = |watch| if let Watch::There(event) = watch { Some(event) } else { None };
            // If not all nodes of a hold can be watched, the watches on the others are dropped.
            let watches = if seen == keeper::Seen::There { of_hold } else { Vec::new() };
            Looked { hold: to_watch.hold, seen, watches: watches.into_iter().filter_map(event).collect() }
        };
        holds.into_iter().map(looked).collect()
    }

    pub(crate) fn take_watches(&self, looked: &[Looked]) {
        let seen: Vec<_> = looked.iter().map(|looked| (looked.hold, looked.seen)).collect();
        self.tell(|state| state.keeper.handle_seen(&seen, clock::now()));
    }

    /// Notes that a watch on a node of this hold has fired.
    pub(crate) fn take_event(&self, hold: HoldId, event: WatchEvent) {
        self.tell(|state| state.keeper.handle_event(hold, event == WatchEvent::Deleted));
    }
}
