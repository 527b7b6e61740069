//! How an attempt waits for its turn in each queue, takes permits, and is granted.

use super::nodes::NodeSlot;
use super::{Contender, Phase, State, Step, Turn};
use crate::Moment;
use crate::claim::Permits;
use crate::protocol::{Now, Operation, Outcome, Patience, Refusal, Verdict};
use crate::queue::{Standing, standing};
use crate::readiness::Checked;
use std::sync::Arc;

impl Contender {
    /// Handles the listings of all queues, in the order of the claims.
    pub(super) fn on_listings(&mut self, listed: Vec<Outcome>, now: Now) {
        // Before anything is decided by a number that another contender may have, too.
        if self.gives_up_a_number() {
            return;
        }
        self.turns.resize(self.claims.len(), Turn::Unknown);
        for (claim, listing) in listed.into_iter().enumerate() {
            if !self.take_note(claim, listing, now) {
                return;
            }
        }
        self.flow.failures.clear();
        self.proceed(now);
    }

    /// Handles the listing of one queue.
    pub(super) fn on_listing(&mut self, claim: usize, listing: Outcome, now: Now) {
        if self.take_note(claim, listing, now) {
            self.flow.failures.clear();
            self.proceed(now);
        }
    }

    /// Notes where we stand; `false` if something else must happen first.
    fn take_note(&mut self, claim: usize, listing: Outcome, now: Now) -> bool {
        match listing {
            Outcome::Children(children) => {
                let own = self.queue.slots[claim].name();
                self.turns[claim] = match standing(&children, own, &self.claims[claim]) {
                    Standing::Holds => Turn::Holds,
                    Standing::Waits { nearest, second, alone } => {
                        let second = second.map(str::to_owned);
                        let turn = Turn::Waits { nearest: nearest.to_owned(), second, alone };
                        self.note_in_the_way(&children);
                        turn
                    }
                    Standing::Foreign { name } => {
                        self.fail(Refusal::ForeignContender(name.to_owned()));
                        return false;
                    }
                    // An operator deleted it.
                    Standing::Absent => {
                        self.queue.lose(claim);
                        self.enter_again();
                        return false;
                    }
                };
                return !self.must_examine(claim, &self.directory(claim), &children);
            }
            // An operator deleted the whole directory.
            Outcome::NoNode => {
                self.queue.lose(claim);
                self.enter_again();
            }
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => {
                self.turns[claim] = Turn::Unknown;
                self.retry(Step::Look(claim), now);
            }
        }
        false
    }

    /// Does the next thing, as far as we know where we stand.
    pub(super) fn proceed(&mut self, now: Now) {
        if self.flow.patience == Patience::TriesOnce && self.waits_for_holders() {
            return self.fail(Refusal::Busy);
        }
        // One queue after the other: where it is our turn, it stays our turn.
        let next = self.turns.iter().position(|turn| *turn != Turn::Holds);
        if let Some(claim) = next {
            return self.go(match &self.turns[claim] {
                Turn::Waits { .. } if self.flow.patience == Patience::TriesOnce => Step::Peek(claim),
                Turn::Waits { .. } => self.waiting(claim),
                Turn::Unknown | Turn::Holds => Step::Look(claim),
            });
        }
        // Permits come last: while we wait elsewhere, others could use them.
        if self.permits.slots.is_empty() {
            return self.grant(now);
        }
        if !self.permits.is_there() {
            return self.go(Step::Take);
        }
        // To have created them is not to have them. What is counted after that decides.
        let uncounted =
            |claim: &usize| self.claims[*claim].permits.is_some() && !self.counted.contains(claim);
        match (0..self.claims.len()).find(uncounted) {
            Some(claim) => self.go(Step::Count(claim)),
            None => self.grant(now),
        }
    }

    /// Whether we wait for a holder.
    fn waits_for_holders(&self) -> bool {
        // Nobody holds in the queue of a semaphore: a contender before us there is about to take permits, and may leave enough
        // of them.
        let mut turns = self.turns.iter().zip(&self.claims);
        turns.any(|(turn, claim)| matches!(turn, Turn::Waits { .. }) && claim.permits.is_none())
    }

    /// Returns the step that waits for our turn in this queue.
    fn waiting(&self, claim: usize) -> Step {
        match &self.turns[claim] {
            Turn::Waits { nearest, second, alone } => {
                Step::Watch { claim, name: second.as_ref().unwrap_or(nearest).clone(), alone: *alone }
            }
            Turn::Unknown | Turn::Holds => Step::Look(claim),
        }
    }

    /// Like the count, but for a contender that is not at the head.
    pub(super) fn peek(&self, claim: usize) -> Vec<Operation> {
        // It takes no permits, so it need not learn of any.
        let unwatched = |operation| match operation {
            Operation::ListAndWatch { directory } => Operation::List { directory },
            operation => operation,
        };
        self.count_of(claim).map(unwatched).collect()
    }

    /// A try waits behind others only while there are permits that it could get.
    pub(super) fn peeked(&mut self, claim: usize, outcomes: Vec<Outcome>, now: Now) {
        let Some(permits) = &self.claims[claim].permits else { return };
        let (taken, limit) = match Count::of(permits, outcomes) {
            Count::Of { taken, limit } => (taken, limit),
            // Nobody has ever taken one.
            Count::Gone => (Vec::new(), permits.limit),
            Count::Refused(refusal) => return self.fail(refusal),
            Count::Unknown => return self.retry(Step::Peek(claim), now),
        };
        self.flow.failures.clear();
        if is_within(taken.len() + permits.count as usize, limit) {
            self.go(self.waiting(claim));
        } else {
            self.fail(Refusal::Busy);
        }
    }

    pub(super) fn watch(&self, claim: usize, name: &str) -> Operation {
        Operation::Watch { path: format!("{}/{name}", self.directory(claim)) }
    }

    /// Returns the step to take when the watch has fired.
    fn look(&self, claim: usize) -> Step {
        match &self.turns[claim] {
            // A try first asks whether there is anything left to wait for.
            Turn::Waits { nearest, second: Some(_), .. } if self.flow.patience == Patience::Waits => {
                Step::LookAhead { claim, nearest: nearest.clone() }
            }
            _ => Step::Look(claim),
        }
    }

    pub(super) fn watched(&mut self, claim: usize, alone: bool, outcome: Outcome, now: Now) {
        match outcome {
            Outcome::Done => self.wait(alone.then_some(claim), self.look(claim)),
            // It was deleted between the listing and the watch, as if the watch had fired.
            Outcome::NoNode if alone => self.our_turn(claim, now),
            Outcome::NoNode => self.go(self.look(claim)),
            // We may not read that node. Its directory, which we may read, shows what happens to it.
            Outcome::Refused(Refusal::Denied) => self.go(Step::LookAndWatch(claim)),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Look(claim), now),
        }
    }

    /// Handles the listing of one queue, with a watch on the node that was the nearest before us.
    pub(super) fn looked_ahead(
        &mut self,
        claim: usize,
        watched: &str,
        listing: Outcome,
        watch: Outcome,
        now: Now,
    ) {
        if !self.take_note(claim, listing, now) {
            return;
        }
        self.flow.failures.clear();
        match &self.turns[claim] {
            // Otherwise the watch is on a node that no longer matters.
            Turn::Waits { nearest, second: None, alone } if nearest == watched => {
                self.watched(claim, *alone, watch, now);
            }
            _ => self.proceed(now),
        }
    }

    /// Goes on, because the only contender ahead of us is gone.
    pub(super) fn our_turn(&mut self, claim: usize, now: Now) {
        self.turns[claim] = Turn::Holds;
        self.proceed(now);
    }

    /// Handles the listing of one queue, which is now watched.
    pub(super) fn on_watched_listing(&mut self, claim: usize, listing: Outcome, now: Now) {
        if !self.take_note(claim, listing, now) {
            return;
        }
        self.flow.failures.clear();
        if self.turns[claim] == Turn::Holds {
            self.proceed(now);
        } else {
            self.wait(None, Step::LookAndWatch(claim));
        }
    }

    /// Creates the permits, and counts those of the first semaphore in the same flight.
    ///
    /// Only the head of the queue does this. If contenders behind it created permits too, each would count those of the
    /// others, and none could ever be granted.
    pub(super) fn taking(&self) -> Vec<Operation> {
        let mut flight = vec![self.permits.creation()];
        if let Some(slot) = self.permits.slots.first() {
            // That also checks the place in the queue: if an operator had already deleted it, two contenders could be at the
            // head, and each would wait for the permits of the other.
            flight.extend(self.count(slot.claim));
        }
        flight
    }

    fn count_of(&self, claim: usize) -> impl Iterator<Item = Operation> {
        self.claims[claim].permits.iter().flat_map(|permits| {
            let list = Operation::ListAndWatch { directory: permits.directory.clone() };
            let limit = permits.limit_at.clone().map(|path| Operation::ReadLimit { path });
            std::iter::once(list).chain(limit)
        })
    }

    pub(super) fn taken(&mut self, created: Outcome, counted: Vec<Outcome>, sent: Moment, now: Now) {
        match created {
            Outcome::Created(nodes) if nodes.len() == self.permits.slots.len() => {
                let known = self.are_known(&nodes);
                self.permits.fill(nodes, sent);
                let claim = self.permits.slots[0].claim;
                if known { self.counted(claim, counted, now) } else { self.go(Step::Adopt(Phase::Permits)) }
            }
            // One transaction creates all or none.
            Outcome::NoNode => {
                self.permits.forget();
                self.go(Step::CreateParents(Phase::Permits));
            }
            Outcome::Refused(refusal) => {
                self.permits.forget();
                self.fail(refusal);
            }
            // Two of the permits have the same number, and so the same name.
            Outcome::NodeExists => {
                let directory = self.permits.slots[0].directory.to_string();
                self.permits.forget();
                self.fail(Refusal::UsedUp(directory));
            }
            _ => self.retry(Step::Recover(Phase::Permits), now),
        }
    }

    /// Counts the permits again. Without a place in the queue, nobody may wait for a permit: another contender may be at
    /// the head by then, and each would count the permits of the other.
    pub(super) fn count(&self, claim: usize) -> Vec<Operation> {
        let place = self.queue.slots[claim].path().unwrap_or_default();
        let strangers = self.path_for_strangers(claim).map(|directory| Operation::List { directory });
        // The place last: if it is there now, it was there when the permits were listed.
        strangers
            .into_iter()
            .chain(self.count_of(claim))
            .chain([Operation::Inspect { path: place }])
            .collect()
    }

    /// Returns the directory of contenders that take permits at the same path in another layout.
    fn path_for_strangers(&self, claim: usize) -> Option<Arc<str>> {
        let permits = self.claims[claim].permits.as_ref()?;
        permits.directory.rsplit_once('/').map(|(path, _)| path.into())
    }

    pub(super) fn counted(&mut self, claim: usize, mut outcomes: Vec<Outcome>, now: Now) {
        if let Some(path) = self.path_for_strangers(claim).filter(|_| !outcomes.is_empty()) {
            if let Outcome::Children(children) = outcomes.remove(0) {
                if self.must_examine(claim, &path, &children) {
                    return;
                }
            }
        }
        let Some(permits) = &self.claims[claim].permits else { return };
        let (taken, limit) = match Count::of(permits, outcomes) {
            Count::Of { taken, limit } => (taken, limit),
            Count::Gone => return self.enter_again(),
            Count::Refused(refusal) => return self.fail(refusal),
            Count::Unknown => return self.retry(Step::Count(claim), now),
        };
        let mut own = self.permits.slots.iter().filter(|slot| slot.claim == claim);
        // An operator has deleted one.
        if !own.all(|slot| taken.iter().any(|child| child == slot.name())) {
            return self.enter_again();
        }
        self.flow.failures.clear();
        // As in Curator, everything in the directory counts.
        if is_within(taken.len(), limit) {
            self.counted.push(claim);
            self.proceed(now);
        } else if self.flow.patience == Patience::TriesOnce {
            self.fail(Refusal::Busy);
        } else {
            self.wait(None, Step::Count(claim));
        }
    }

    /// Returns the nodes that represent the hold: permits if there are any, otherwise places in queues.
    pub(super) fn hold(&self) -> impl Iterator<Item = &NodeSlot> {
        let queues = self.queue.slots.iter().filter(|slot| self.claims[slot.claim].permits.is_none());
        queues.chain(&self.permits.slots)
    }

    /// Returns the check that proves the nodes of the hold.
    pub(super) fn proof(&self) -> Operation {
        Operation::Check { paths: self.hold().filter_map(NodeSlot::path).collect() }
    }

    /// Grants, because it is our turn, or first makes the check that a grant may [need](crate::readiness).
    fn grant(&mut self, now: Now) {
        if self.flow.readiness.is_there(self.proven(), now) { self.granted() } else { self.go(Step::Check) }
    }

    /// Returns since when all nodes of the hold are proven, if they are.
    fn proven(&self) -> Option<Moment> {
        self.hold().map(NodeSlot::proven).min().flatten()
    }

    pub(super) fn checked(&mut self, checked: Outcome, sent: Moment, now: Now) {
        match checked {
            Outcome::Done => {
                // As of the sending: nobody knows how much later the quorum committed it.
                self.queue.prove(sent);
                self.permits.prove(sent);
                self.flow.failures.clear();
                match self.flow.readiness.after_check(now) {
                    Checked::Ready => self.granted(),
                    Checked::Again(at) => self.go_at(Step::Check, at),
                }
            }
            Outcome::NoNode => {
                // If there are several, the reply does not say which one is missing.
                if self.queue.slots.len() == 1 && self.permits.slots.is_empty() {
                    self.queue.lose(0);
                }
                self.enter_again();
            }
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Check, now),
        }
    }

    fn granted(&mut self) {
        let origin = self.queue.slots[0].origin();
        debug_assert!(self.turns.iter().all(|turn| *turn == Turn::Holds), "it is our turn in each queue");
        // The caller may have gone while the last check was under way.
        let (true, Some(origin), Some(proven)) = (self.flow.wanted, origin, self.proven()) else {
            return self.clean_up();
        };
        let nodes = self.hold().filter_map(NodeSlot::path).collect();
        let ignored = self.ignored.iter().map(|(directory, child)| format!("{directory}/{child}")).collect();
        self.flow.grant(Verdict::Granted { nodes, czxid: origin.czxid, proven, ignored });
        if self.permits.slots.is_empty() {
            self.stay();
        } else {
            // With its permits taken, it makes way for the next in the queue.
            self.flow.state = State::Ready(Step::Unqueue);
        }
    }

    pub(super) fn making_way(&self) -> Vec<Operation> {
        let places = self.queue.slots.iter().filter(|slot| self.claims[slot.claim].permits.is_some());
        places.filter_map(|slot| Some(Operation::Delete { path: slot.path()? })).collect()
    }

    pub(super) fn made_way(&mut self, outcomes: &[Outcome], now: Now) {
        if !outcomes.iter().all(super::is_deleted) {
            return self.delete_again(Step::Unqueue, outcomes, now);
        }
        // Each claim has one slot there.
        for (claim, _) in self.claims.iter().enumerate().filter(|(_, claim)| claim.permits.is_some()) {
            self.queue.lose(claim);
        }
        self.stay();
    }
}

/// How many permits are taken, and out of how many.
enum Count {
    Of {
        taken: Vec<String>,
        limit: u32,
    },
    /// Something is missing without which nobody can count.
    Gone,
    Refused(Refusal),
    Unknown,
}

impl Count {
    fn of(permits: &Permits, outcomes: Vec<Outcome>) -> Self {
        let (mut limit, mut taken) = (permits.limit, None);
        for outcome in outcomes {
            match outcome {
                Outcome::Children(children) => taken = Some(children),
                Outcome::Limit(Some(count)) => limit = count,
                Outcome::Limit(None) | Outcome::Found(_) => {}
                Outcome::NoNode => return Self::Gone,
                Outcome::Refused(refusal) => return Self::Refused(refusal),
                _ => return Self::Unknown,
            }
        }
        taken.map_or(Self::Unknown, |taken| Self::Of { taken, limit })
    }
}

fn is_within(taken: usize, limit: u32) -> bool {
    u32::try_from(taken).is_ok_and(|taken| taken <= limit)
}
