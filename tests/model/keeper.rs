//! A keeper whose holds are numbered in the order of their grants.

use super::machine::Moment;
use super::machine::keeper::{Check, HeldNode, HoldId, Keeper, Proof, Seen};
use super::machine::status::LossReason;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Clone, Hash, Debug)]
pub(crate) struct Numbered {
    pub(crate) keeper: Keeper,
    holds: Vec<HoldId>,
    /// The checks on their way, in their order.
    proofs: VecDeque<Proof>,
}

impl Numbered {
    pub(crate) fn new(keeper: Keeper) -> Self {
        Self { keeper, holds: Vec::new(), proofs: VecDeque::new() }
    }

    fn number(&self, hold: HoldId) -> usize {
        self.holds.iter().position(|other| *other == hold).expect("every hold was granted here")
    }

    pub(crate) fn valid_for(&self, hold: usize, now: Moment) -> Duration {
        self.keeper.valid_for(self.holds[hold], now)
    }

    pub(crate) fn handle_grant(&mut self, proven: Moment) {
        let path = format!("/{}", self.holds.len()).into();
        self.holds.push(self.keeper.handle_grant(vec![HeldNode { path, origin: None }], proven));
    }

    pub(crate) fn handle_proof(&mut self, check: &Check, now: Moment) {
        if let Some(proof) = self.proofs.pop_front() {
            self.keeper.handle_proof(&proof, check, now);
        }
    }

    pub(crate) fn poll_lost(&mut self, now: Moment) -> Option<(usize, LossReason)> {
        let (hold, reason) = self.keeper.poll_lost(now)?;
        Some((self.number(hold), reason))
    }

    pub(crate) fn handle_seen(&mut self, seen: &[(usize, Seen)], now: Moment) {
        let seen: Vec<_> = seen.iter().map(|(hold, seen)| (self.holds[*hold], *seen)).collect();
        self.keeper.handle_seen(&seen, now);
    }

    pub(crate) fn handle_event(&mut self, hold: usize, is_deleted: bool) {
        self.keeper.handle_event(self.holds[hold], is_deleted);
    }

    /// The holds to watch now.
    pub(crate) fn poll_watch(&mut self, now: Moment, is_connected: bool) -> Vec<usize> {
        let asked = self.keeper.poll_watch(now, is_connected);
        asked.iter().map(|to_watch| self.number(to_watch.hold)).collect()
    }

    /// The holds to check now.
    pub(crate) fn poll_beat(&mut self, now: Moment, is_connected: bool) -> Option<Vec<usize>> {
        let proof = self.keeper.poll_beat(now, is_connected)?;
        let number = |path: &str| path[1..].parse().expect("the path of hold 7 is /7");
        let holds = proof.nodes.iter().map(|node| number(&node.path)).collect();
        self.proofs.push_back(proof);
        Some(holds)
    }
}
