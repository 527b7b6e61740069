//! The place that is passed on within the process, instead of creating a node for each holder.
//!
//! Such a turn rests on memory, so everything that the client knows must agree with it. A caller takes the place without a
//! request only while it is [known](Trust::Known). Otherwise the quorum has to answer for it first: without a connection
//! nothing would be reported.

use super::action::Action;
use super::place::{Place, Turn};
use super::{CallerId, Callers, Moment, Owner, PlaceId, Trust, TurnId};
use crate::turns::Turns;
use std::time::Duration;

/// How long it takes to notice that a connection broke.
const MOMENT: Duration = Duration::from_millis(10);
/// A lapsed lease takes two checks to be restored. After that, there is a pause between checks.
const CHECKS_AT_ONCE: u32 = 2;

/// The result of releasing one hold of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReleaseOutcome {
    /// The owner has other holds of the turn.
    Others,
    /// The next holder in this process gets the place, or others have it too.
    PassedOn,
    /// The place is given up.
    Released,
    /// The hold had been lost.
    Lost,
}

/// The checks of the kept place for a caller that waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Checking {
    is_under_way: bool,
    /// How many have come back since it was last known.
    checks: u32,
    /// Until when it waits before the next one.
    pub(super) pause: Option<Moment>,
}

impl Checking {
    /// Whether a pause is over.
    pub(super) fn handle_timeout(&mut self, now: Moment) -> bool {
        let is_over = self.pause.is_some_and(|until| now >= until);
        if is_over {
            self.pause = None;
        }
        is_over
    }

    fn is_due(&self) -> bool {
        !self.is_under_way && self.pause.is_none()
    }

    fn handle_answer(&mut self, now: Moment) {
        self.is_under_way = false;
        self.checks += 1;
        self.pause = (self.checks >= CHECKS_AT_ONCE).then(|| now + MOMENT);
    }

    /// None is needed. One that is under way still comes back.
    fn forget(&mut self) {
        (self.checks, self.pause) = (0, None);
    }
}

impl<O: Owner> Callers<O> {
    /// Takes a place that the process has kept, without a request and without a wait. `None` if there is none that may be
    /// taken so, or others come first. This leads to no action: the shell makes the grant.
    pub fn take(
        &mut self,
        owner: O,
        is_reentrant: bool,
        trust: impl Fn(PlaceId) -> Trust,
    ) -> Option<(TurnId, PlaceId)> {
        let place = self.kept.filter(|_| self.waiting.is_empty() && !self.is_closed)?;
        if !self.take_kept(trust) {
            return None;
        }
        Some((self.add_turn(place, owner, is_reentrant && owner.returns()), place))
    }

    /// Releases one hold of a turn. `is_unsettled` says that a write which it guards may still be under way: that must not land
    /// under the next one's hold.
    pub fn release(
        &mut self,
        turn: TurnId,
        is_unsettled: bool,
        trust: impl Fn(PlaceId) -> Trust,
        now: Moment,
    ) -> ReleaseOutcome {
        let Ok(at) = self.turns.binary_search_by_key(&turn, |turn| turn.id) else {
            return ReleaseOutcome::Lost;
        };
        let place = self.turns[at].place;
        self.turns[at].holds -= 1;
        let is_held = self.place(place).is_some_and(Place::is_held);
        let is_held = is_held && trust(place) != Trust::Over;
        if self.turns[at].holds > 0 {
            return if is_held { ReleaseOutcome::Others } else { ReleaseOutcome::Lost };
        }
        if self.give_back(at, is_held, is_unsettled, trust, now) {
            return ReleaseOutcome::PassedOn;
        }
        if !is_held {
            // It was lost, so nobody waits for its end. But others who have it may still rely on an earlier promise.
            self.turns.remove(at);
            self.actions.push_back(Action::Over { turn });
            if self.turns.iter().any(|other| other.place == place) {
                return ReleaseOutcome::Lost;
            }
        }
        self.give_up(place);
        if is_held { ReleaseOutcome::Released } else { ReleaseOutcome::Lost }
    }

    /// Makes this the last turn of its place, which is deleted when the turn ends; `false` if it has ended.
    pub fn end_passing(&mut self, turn: TurnId) -> bool {
        let Ok(at) = self.turns.binary_search_by_key(&turn, |turn| turn.id) else { return false };
        let Turn { place, holds, .. } = self.turns[at];
        if holds == 0 {
            return false;
        }
        // The next writer of this process must not take over a writer's node while its reader is beside it.
        if let Some(place) = self.place_mut(place) {
            place.end_turns();
        }
        // Those who wait queue for another node.
        self.begin_next(false);
        true
    }

    /// Gives up a kept place if nobody uses it: somebody whom it excludes wants to queue.
    pub fn give_up_idle(&mut self, place: PlaceId) {
        let Some(turns) = self.place_mut(place).and_then(|place| place.kept.as_mut()) else { return };
        if turns.is_idle() {
            turns.handle_end();
            self.give_up(place);
        }
    }

    /// A check of this place came back, or got no answer.
    pub fn handle_checked(&mut self, place: PlaceId, trust: impl Fn(PlaceId) -> Trust, now: Moment) {
        if self.kept == Some(place) {
            self.checking.handle_answer(now);
        }
        self.pass_on(trust);
        self.begin_next(false);
    }

    /// Others wait for what this place has, or have asked for it.
    pub fn handle_wanted(&mut self, place: PlaceId) {
        let turns = self.place_mut(place).and_then(|place| place.kept.as_mut());
        if turns.is_some_and(Turns::handle_wanted) {
            return self.give_up(place);
        }
        self.set_wanted(place, true);
        // The next caller of this process queues behind the others.
        self.begin_next(false);
    }

    /// Gives the kept place to those who wait, as long as there are turns.
    pub(super) fn pass_on(&mut self, trust: impl Fn(PlaceId) -> Trust) {
        let Some(kept) = self.kept else { return };
        let mut is_unproven = false;
        while let Some(front) = self.waiting.front().map(|front| front.id) {
            if self.take_kept(&trust) {
                if let Some(next) = self.waiting.pop_front() {
                    self.grant(kept, &next, false);
                }
                continue;
            }
            is_unproven = self.kept_turns().is_some_and(Turns::may_take) && trust(kept) == Trust::Unproven;
            if is_unproven {
                self.check(kept, front);
            }
            break;
        }
        if !is_unproven {
            self.checking.forget();
        }
        self.leave_untaken();
        let is_wanted = !self.waiting.is_empty() || self.kept_turns().is_some_and(Turns::is_wanted);
        // Told last: by now it is known who still waits.
        self.set_wanted(kept, is_wanted);
    }

    /// Nobody waits. A place that has stayed for one who does not come is given up, unless it lingers.
    pub(super) fn leave_untaken(&mut self) {
        if self.waiting.is_empty() && self.kept_turns_mut().is_some_and(Turns::handle_untaken) {
            self.give_up_kept();
        }
    }

    pub(super) fn give_up_kept(&mut self) {
        if let Some(kept) = self.kept {
            self.give_up(kept);
        }
    }

    pub(super) fn kept_turns(&self) -> Option<&Turns> {
        self.place(self.kept?)?.kept.as_ref()
    }

    pub(super) fn kept_turns_mut(&mut self) -> Option<&mut Turns> {
        self.place_mut(self.kept?)?.kept.as_mut()
    }

    /// Takes a turn on the kept place, if it may be taken without a request.
    fn take_kept(&mut self, trust: impl Fn(PlaceId) -> Trust) -> bool {
        let Some(kept) = self.kept else { return false };
        trust(kept) == Trust::Known && self.kept_turns_mut().is_some_and(Turns::take)
    }

    fn check(&mut self, kept: PlaceId, caller: CallerId) {
        self.actions.push_back(Action::Asks { caller });
        if self.checking.is_due() {
            self.checking.is_under_way = true;
            self.actions.push_back(Action::Prove { place: kept });
        }
    }

    /// A turn without holds leaves its place to the next, or to others who have it too; `false` if the place has to go.
    fn give_back(
        &mut self,
        at: usize,
        is_held: bool,
        is_unsettled: bool,
        trust: impl Fn(PlaceId) -> Trust,
        now: Moment,
    ) -> bool {
        let Turn { id: turn, place: id, .. } = self.turns[at];
        let (awaits, is_deserted) = (!self.waiting.is_empty(), self.is_deserted);
        let is_latest = self.kept == Some(id);
        let Some(place) = self.place_mut(id) else { return false };
        let Some(turns) = &mut place.kept else { return false };
        // Ended before it is given back, so that nobody takes it.
        if !is_held || !is_latest || is_unsettled {
            turns.handle_end();
        }
        let is_over = turns.give_back(awaits, now);
        let has_others = turns.has_holders() && is_held;
        if !has_others && (is_over || is_deserted) {
            turns.handle_end();
            return false;
        }
        self.turns.remove(at);
        self.actions.push_back(Action::Over { turn });
        self.pass_on(trust);
        self.begin_next(false);
        true
    }
}
