//! What happens to a place at the servers.

use super::action::{Action, Answer};
use super::kept::Checking;
use super::place::{Place, Stage, Turn};
use super::tries::Remembered;
use super::width::Width;
use super::{BRIEF, Callers, Moment, Owner, PlaceId, Trust};
use crate::turns::Turns;

impl<O: Owner> Callers<O> {
    /// The servers have granted this place. If it was given up before, nobody wants it: the shell deletes its nodes.
    pub fn handle_entered(&mut self, id: PlaceId, trust: impl Fn(PlaceId) -> Trust, now: Moment) {
        let (passing, is_shared, width) = (self.passing, self.is_shared, self.width);
        let Some(place) = self.place_mut(id).filter(|place| place.stage == Stage::Entering) else { return };
        let Some(caller) = place.caller.take() else { return };
        (place.stage, place.was_granted) = (Stage::Held, true);
        let is_kept = place.is_counted && !caller.call.is_within && passing.is_on();
        place.kept = is_kept.then(|| Turns::new(passing, is_shared));
        if place.is_counted && width == Width::Two {
            place.holds_since = Some(now);
            // The node of the next would delay the deletion of this one, because servers serve a session's requests in order,
            // and it would need a watch. Created right behind the deletion, it is the first in the queue at once.
            // Only where somebody waits: most locks have one caller, and the timer for it costs two system calls.
            self.holds_back = (self.was_brief && !is_kept && !self.waiting.is_empty()).then(|| now + BRIEF);
        }
        // The one that it was entered for comes first, then those who can have it after that or beside it. Only those who are
        // left need another node.
        self.grant(id, &caller, is_kept);
        if is_kept {
            self.kept = Some(id);
            // A check of the place before may never matter again.
            self.checking = Checking::default();
        }
        self.pass_on(trust);
        self.has_entered(id);
        self.begin_next(false);
    }

    /// A try has found the lock busy. What its attempt has left to do is its own affair.
    pub fn handle_busy(&mut self, id: PlaceId) {
        self.handle_refused(id, Answer::Busy);
    }

    /// The attempt cannot go on.
    pub fn handle_failed(&mut self, id: PlaceId) {
        self.handle_refused(id, Answer::Failed);
    }

    /// The hold of this place is lost. A turn stays as long as its owner has holds of it: until they are released, no inner
    /// section may be entered.
    pub fn handle_lost(&mut self, id: PlaceId) {
        if let Some(place) = self.place_mut(id) {
            place.is_lost |= place.stage == Stage::Held;
            place.end_turns();
        }
    }

    /// The deletion of this place's nodes is sent, or has to wait for a reply. So an attempt that begins now in the same session
    /// does not end up behind it.
    pub fn handle_left(&mut self, id: PlaceId, now: Moment) {
        let Some(place) = self.place_mut(id) else { return };
        let was_granted = place.was_granted;
        self.leave(id, now);
        self.has_entered(id);
        // The next attempt follows right behind, even for one that waited for the node that was kept.
        self.begin_next(was_granted);
    }

    /// Nothing is left of this place, except the watch of a try that found the lock busy.
    pub fn handle_ended(&mut self, id: PlaceId, remembered: Option<Remembered>, now: Moment) {
        if let Some(place) = self.forget(id, now) {
            if place.was_busy {
                self.tries.note_busy(remembered);
            }
            if let Some(caller) = place.caller {
                self.answer(caller.id, Answer::Failed);
            }
            self.begin_next(false);
        }
    }

    /// The task of this place is dropped with its runtime, so that nothing more can be started.
    pub fn handle_abandoned(&mut self, id: PlaceId, now: Moment) {
        if let Some(place) = self.forget(id, now) {
            if let Some(caller) = place.caller {
                self.answer(caller.id, Answer::Closed);
            }
            self.turn_away();
        }
    }

    fn handle_refused(&mut self, id: PlaceId, answer: Answer) {
        let Some(place) = self.place_mut(id).filter(|place| place.stage == Stage::Entering) else { return };
        place.stage = Stage::Leaving;
        place.was_busy = answer == Answer::Busy;
        if let Some(caller) = place.caller.take() {
            self.answer(caller.id, answer);
        }
        self.has_entered(id);
        self.begin_next(false);
    }

    /// It is no longer on its way in.
    fn has_entered(&mut self, id: PlaceId) {
        self.entering = self.entering.filter(|entering| *entering != id);
    }

    /// It no longer has the lock.
    fn leave(&mut self, id: PlaceId, now: Moment) {
        let Some(place) = self.place_mut(id) else { return };
        place.stage = Stage::Leaving;
        place.end_turns();
        if let Some(since) = place.holds_since.take() {
            self.was_brief = now.since(since) < BRIEF;
            self.holds_back = None;
        }
    }

    fn forget(&mut self, id: PlaceId, now: Moment) -> Option<Place<O>> {
        self.leave(id, now);
        let place = self.places.remove(self.place_at(id)?);
        self.has_entered(id);
        self.attempts -= usize::from(place.is_counted);
        if self.kept == Some(id) {
            self.kept = None;
            self.checking = Checking::default();
        }
        debug_assert_eq!(self.attempts, self.places.iter().filter(|place| place.is_counted).count());
        // A turn with holds stays, so that its owner enters no inner section on another node.
        let over = |turn: &Turn<O>| turn.place == id && turn.holds == 0;
        let ended = self.turns.iter().filter(|turn| over(turn)).map(|turn| Action::Over { turn: turn.id });
        self.actions.extend(ended);
        self.turns.retain(|turn| !over(turn));
        Some(place)
    }
}
