//! The callers of one process that want the same lock: who waits, who enters, who holds, and which node is kept.
//!
//! However many threads wait for a mutex, the servers see at most two nodes of theirs: the holder's, and one queued ahead for
//! the next caller. That one is created while the holder works, so that a hand-over within the process takes one round trip.
//! If holds are too short for that, the next node is created right behind the deletion of the holder's, which also takes one
//! round trip, and no watch. Callers that can hold together, such as readers, have a node each. A node that may linger, or
//! have several turns, is passed on instead, without a request.
//!
//! The simple way, with the tasks of the callers sharing a few fields under a lock, hides the interesting orders: a caller that
//! goes away as it is granted, a node that is given up as somebody wants it. So this is a machine. It knows no task, no lock
//! and no clock, and the model checker drives it together with the machines of the attempts.
//!
//! # The life of a caller
//!
//! A *caller* is one call. A *place* is one attempt with its nodes. A *turn* is one grant of a place to one owner, and each
//! hold of a reentrant owner is one more hold of its turn.
//!
//! ```text
//!            take: a node that is kept and known, without a wait ---------------------------+
//!            again: another hold of a turn that the owner has ------------------------------+
//!                                                                                           v
//!  join ---> Waiting -- Begin --> Entering -- entered ------- Grant, Answer(Held) -------> has a hold -- release
//!    |         | ^                  |   |                                 ^                                 |
//!    |         | |                  |   +- refused - Answer(Busy, Failed)  |                                 |
//!    |         | +----- Serve ------+ gone, and somebody waits            |                                 |
//!    |         +--- the kept place is free and known: takes it -----------+        Others, PassedOn, Released
//!    |         +--- its owner is granted: shares that turn ---------------+
//!    +-- a try, and the lock is busy: Answer(Busy)
//! ```
//!
//! A place goes its own way, which does not end with its caller:
//!
//! ```text
//!  Begin --> entering -- entered --> held, by one turn after the other -- GiveUp, or lost --> left --> ended
//!               |                                                                              ^
//!               +-- refused, or gone and nobody waits (GiveUp) --------------------------------+
//! ```
//!
//! # The order of calls
//!
//! * After each call, the shell polls [`poll_action`](Callers::poll_action) until there is none, and does each action before the
//!   next. [`take`](Callers::take) and [`again`](Callers::again) lead to none. All this happens under one mutex, so that
//!   nobody sees what is half done. Only the effects may come later: a caller may learn of its answer at any time.
//! * To acquire: [`again`](Callers::again) if the lock is reentrant, then [`take`](Callers::take), and then
//!   [`join`](Callers::join). Before a join: [`HeldAt::writer`](held::HeldAt::writer), whose turn has to agree to be
//!   [the last of its place](Callers::end_passing) in its own `Callers`. Without such a writer, one that waits asks
//!   [`HeldAt::own`](held::HeldAt::own) for each of its claims.
//! * Each answer is given once. A caller that goes away before it has its answer is [gone](Callers::handle_gone). That may come
//!   too late, and is ignored then: the shell sees the answer with nobody to take it, and releases it.
//! * Of each place, in this order: [`handle_entered`](Callers::handle_entered), [`handle_busy`](Callers::handle_busy) or [`handle_failed`](Callers::handle_failed),
//!   unless it was given up before; then, if it was granted or given up, [`handle_left`](Callers::handle_left) as soon as the
//!   deletion of its nodes is sent; and in any case [`handle_ended`](Callers::handle_ended) when nothing is left of it. While it
//!   is held, [`handle_wanted`](Callers::handle_wanted) and [`handle_lost`](Callers::handle_lost) may come. If its task is
//!   dropped, [`handle_abandoned`](Callers::handle_abandoned) takes the place of all that is still to come.
//! * `trust` is asked for a place that was granted, and tells what its session knows of it at this moment.
//! * Time is a parameter. The shell calls [`handle_timeout`](Callers::handle_timeout) at the moment that
//!   [`poll_timeout`](Callers::poll_timeout) names. That changes with every release of a node that lingers. A shell that does
//!   not want to look each time looks at [`next_wake`](Callers::next_wake).
//!
//! # Parts
//!
//! * [`turns`](crate::turns): who may next take a node that is kept; [`memory`](crate::memory): how long "busy" is believed
//! * `width`: how many nodes there may be; `kept`: the place that is passed on; `place`: the records
//! * [`held`]: what owners hold at one path through any lock, for callers that would wait for themselves

mod action;
pub mod held;
mod kept;
mod place;
mod places;
#[cfg(test)]
mod tests;
mod tries;
mod width;

pub use action::{Action, Answer};
pub use held::Own;
pub use kept::ReleaseOutcome;
pub use tries::{Open, Remembered};

use super::Moment;
use super::claim::Claim;
use super::protocol::Patience;
use super::turns::{Passing, Turns};
use kept::Checking;
use place::{Place, Stage, Turn};
use std::collections::VecDeque;
use std::time::Duration;
use tries::Tries;
use width::Width;

/// A brief hold is shorter than this. A contender of another process that arrives within that time may get ahead of the
/// next caller of this process.
pub const BRIEF: Duration = Duration::from_millis(1);

/// One call that waits for the lock, or tries it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallerId(pub u64);

/// One attempt, with its nodes at the servers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlaceId(pub u64);

/// One grant of a place to one owner. All holds of a reentrant owner share it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TurnId(pub u64);

/// The unit to which a hold belongs, as a task or a thread.
pub trait Owner: Copy + Eq {
    /// Whether it can come back and release what it acquired.
    fn returns(self) -> bool;
}

/// A call for the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Call<O> {
    /// The owner of the call.
    pub owner: O,
    /// Whether its calls share one turn.
    pub is_reentrant: bool,
    /// Whether it waits.
    pub patience: Patience,
    /// Whether it goes inside a turn of its owner, which has the write side and is then [the last of its
    /// place](Callers::end_passing).
    pub is_within: bool,
}

impl<O: Owner> Call<O> {
    /// Whether only the owner may release what it gets.
    fn is_bound(&self) -> bool {
        self.is_reentrant && self.owner.returns()
    }
}

/// A call, and its name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Caller<O> {
    id: CallerId,
    call: Call<O>,
}

/// How far the nodes of a place that was granted can be relied on at this moment. The shell works it out when it is asked,
/// because a session may learn of a loss at any time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trust {
    /// Its hold is good, its lease runs, and there is a connection, so that its loss would be reported. So it may be taken
    /// without a request.
    Known,
    /// As far as is known it is good, but the quorum has to confirm it before it is taken.
    Unproven,
    /// It is lost, or its release has begun.
    Over,
}

/// The callers of one process that want the same lock.
///
/// # Examples
///
/// ```
/// use zklock_machine::Moment;
/// use zklock_machine::callers::{Action, Answer, Call, Callers, Owner, ReleaseOutcome, Trust};
/// use zklock_machine::claim::Claim;
/// use zklock_machine::name::Scheme;
/// use zklock_machine::protocol::Patience;
/// use zklock_machine::turns::Passing;
///
/// #[derive(Clone, Copy, PartialEq, Eq, Debug)]
/// struct Thread(u32);
///
/// impl Owner for Thread {
///     fn returns(self) -> bool {
///         true
///     }
/// }
///
/// let now = Moment::default();
/// let known = |_| Trust::Known;
/// let mut callers = Callers::new(&[Claim::new("/a", Scheme::Mutex)], Passing::default());
/// let call = |thread| Call { owner: Thread(thread), is_reentrant: false, patience: Patience::Waits, is_within: false };
/// let one = callers.join(call(1), None, known, now);
/// let Some(Action::Begin { place, caller, .. }) = callers.poll_action() else { panic!("it is free") };
/// assert_eq!(caller, one);
///
/// callers.handle_entered(place, known, now);
/// let Some(Action::Grant { turn, .. }) = callers.poll_action() else { panic!("it is granted") };
/// assert_eq!(callers.poll_action(), Some(Action::Answer { caller: one, answer: Answer::Held(turn) }));
///
/// assert_eq!(callers.release(turn, false, known, now), ReleaseOutcome::Released);
/// assert_eq!(callers.poll_action(), Some(Action::GiveUp { place }));
/// callers.handle_left(place, now);
/// callers.handle_ended(place, None, now);
/// assert_eq!(callers.poll_action(), Some(Action::Over { turn }));
/// assert!(callers.is_unused());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Callers<O> {
    width: Width,
    /// Whether several callers can hold it together.
    is_shared: bool,
    /// Whether a node of it is created in one request that waits for nothing.
    is_simple: bool,
    /// How a node is passed on, instead of creating one for each holder.
    passing: Passing,
    last_caller: u64,
    last_place: u64,
    last_turn: u64,
    /// Those that have no place yet, in the order in which they came, and so of their names.
    waiting: VecDeque<Caller<O>>,
    /// In the order of their names.
    places: Vec<Place<O>>,
    /// In the order of their names.
    turns: Vec<Turn<O>>,
    /// The number of places that count against the width.
    attempts: usize,
    /// The counted place that has not entered yet. The next one begins after it, so that they enter in order.
    entering: Option<PlaceId>,
    /// The latest place that may be passed on.
    kept: Option<PlaceId>,
    checking: Checking,
    /// Whether the latest hold was a brief one.
    was_brief: bool,
    /// Until when the next attempt waits for the end of the hold, which will probably be brief too.
    holds_back: Option<Moment>,
    tries: Tries,
    is_deserted: bool,
    is_closed: bool,
    actions: VecDeque<Action<O>>,
}

impl<O: Owner> Callers<O> {
    /// Makes the machine of a lock with these claims, whose nodes are passed on in this way.
    pub fn new(claims: &[Claim], passing: Passing) -> Self {
        Self {
            width: Width::of(claims, passing),
            is_shared: !claims.iter().any(|claim| claim.scheme.role().excludes(claim.scheme.role())),
            is_simple: claims.len() == 1,
            passing,
            last_caller: 0,
            last_place: 0,
            last_turn: 0,
            waiting: VecDeque::new(),
            places: Vec::new(),
            turns: Vec::new(),
            attempts: 0,
            entering: None,
            kept: None,
            checking: Checking::default(),
            was_brief: false,
            holds_back: None,
            tries: Tries::default(),
            is_deserted: false,
            is_closed: false,
            actions: VecDeque::new(),
        }
    }

    /// Returns what to do next.
    pub fn poll_action(&mut self) -> Option<Action<O>> {
        self.actions.pop_front()
    }

    /// Returns the place that may be passed on, if there is one.
    pub fn kept(&self) -> Option<PlaceId> {
        self.kept
    }

    /// Returns the counted place that is on its way in, and the caller that it serves.
    pub fn entering(&self) -> Option<(PlaceId, Option<CallerId>)> {
        let place = self.place(self.entering?)?;
        Some((place.id, place.caller.as_ref().map(|caller| caller.id)))
    }

    /// Returns the caller that a place serves, which has no answer yet.
    pub fn served_at(&self, place: PlaceId) -> Option<CallerId> {
        self.place(place)?.caller.as_ref().map(|caller| caller.id)
    }

    /// Returns how many holds of a turn have not been released.
    pub fn holds_of(&self, turn: TurnId) -> usize {
        let at = self.turns.binary_search_by_key(&turn, |turn| turn.id);
        at.map_or(0, |at| self.turns[at].holds)
    }

    /// Whether any caller of this lock holds it.
    pub fn is_held(&self, trust: impl Fn(PlaceId) -> Trust) -> bool {
        let is_held = |place: &Place<O>| place.is_held() && trust(place.id) != Trust::Over;
        self.turns.iter().any(|turn| self.place(turn.place).is_some_and(is_held))
    }

    /// Returns how many callers of this lock come before this one, with the one that is on its way in; 0 if it does not wait for
    /// them.
    pub fn ahead_of(&self, caller: CallerId) -> usize {
        self.waits_at(caller).map_or(0, |at| 1 + at)
    }

    /// Whether nobody waits or has anything, and nothing is at the servers.
    pub fn is_unused(&self) -> bool {
        self.waiting.is_empty() && self.places.is_empty() && self.turns.is_empty()
    }

    /// Returns another hold of a turn that the owner has and nobody else may release; `None` if there is none. It may be lost:
    /// an inner section must not be entered then, and the shell releases the hold again.
    pub fn again(&mut self, owner: O) -> Option<TurnId> {
        let turn = self.turns.iter_mut().find(|turn| turn.is_bound_to(owner))?;
        turn.holds += 1;
        Some(turn.id)
    }

    /// Whether the owner has a turn that nobody else may release.
    pub fn is_bound_to(&self, owner: O) -> bool {
        self.turns.iter().any(|turn| turn.is_bound_to(owner))
    }

    /// Queues a caller. `open` is the session in which an earlier try may have left a watch, and matters to tries alone.
    pub fn join(
        &mut self,
        call: Call<O>,
        open: Option<Open<'_>>,
        trust: impl Fn(PlaceId) -> Trust,
        now: Moment,
    ) -> CallerId {
        self.last_caller += 1;
        let id = CallerId(self.last_caller);
        let tries = call.patience == Patience::TriesOnce;
        if self.is_closed {
            self.answer(id, Answer::Closed);
            return id;
        }
        // Another call of its owner was granted after this one had found nothing at once: it would wait for itself.
        if let Some(turn) = call.is_reentrant.then(|| self.again(call.owner)).flatten() {
            self.answer(id, Answer::Held(turn));
            return id;
        }
        // The way in through its own write side is open to this caller alone.
        if tries && !call.is_within && self.is_known_busy(open, now) {
            self.answer(id, Answer::Busy);
            return id;
        }
        // A try that could succeed beside other holders must not wait until one of them has got in.
        let is_free = self.width == Width::Next || self.is_shared;
        let caller = Caller { id, call };
        if self.width == Width::All || is_free && tries || caller.call.is_within {
            self.begin(caller, false, false);
            return id;
        }
        if tries && (self.entering_caller() || !self.waiting.is_empty() || self.is_held(&trust)) {
            self.answer(id, Answer::Busy);
            return id;
        }
        debug_assert!(
            self.waiting.back().is_none_or(|last| last.id < caller.id),
            "they are found by their names"
        );
        self.waiting.push_back(caller);
        // Another permit may be free, and readers do not wait for readers.
        if self.width != Width::Next && !self.is_shared {
            self.tell_holders();
        }
        // An idle node may need a check first.
        self.pass_on(trust);
        // Only then for a node of its own.
        self.begin_next(false);
        id
    }

    /// The caller does not want its answer any more. Its place goes to the next one here. A try leaves its place to nobody.
    pub fn handle_gone(&mut self, caller: CallerId) {
        if let Some(at) = self.waits_at(caller) {
            self.waiting.remove(at);
            self.leave_untaken();
            return;
        }
        let is_its = |place: &&mut Place<O>| place.caller.as_ref().is_some_and(|its| its.id == caller);
        let Some(place) = self.places.iter_mut().find(is_its) else { return };
        let id = place.id;
        let patience = place.caller.take().map(|gone| gone.call.patience);
        let passes = self.entering == Some(id) && patience == Some(Patience::Waits);
        match self.waiting.front() {
            // A try at the front is not ready to wait, and nobody may get ahead of it.
            Some(next) if passes && next.call.patience == Patience::Waits => {
                // It would have to queue again, behind contenders of other processes that have come meanwhile.
                let heir = self.waiting.pop_front();
                let caller = heir.as_ref().map_or(caller, |heir| heir.id);
                if let Some(place) = self.place_mut(id) {
                    place.caller = heir;
                }
                self.actions.push_back(Action::Serve { place: id, caller });
            }
            _ => self.give_up(id),
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Moment> {
        // A node that does not linger may stay for one who waits until it is confirmed, however long that takes.
        let lingers = self.kept_turns().filter(|turns| turns.lingers()).and_then(Turns::poll_timeout);
        [self.holds_back, self.checking.pause, lingers].into_iter().flatten().min()
    }

    /// Returns when to look at [`poll_timeout`](Self::poll_timeout) again at the latest, for a shell that does not do so after
    /// each release. A node that lingers is then given up on time or a moment late. `None` while no node is kept that may
    /// linger.
    pub fn next_wake(&self, now: Moment) -> Option<Moment> {
        let turns = self.kept_turns().filter(|turns| turns.lingers())?;
        Some(turns.next_wake(now))
    }

    /// A moment has come that [`poll_timeout`](Self::poll_timeout) named.
    pub fn handle_timeout(&mut self, trust: impl Fn(PlaceId) -> Trust, now: Moment) {
        if self.holds_back.is_some_and(|until| now >= until) {
            self.holds_back = None;
        }
        if self.kept_turns_mut().is_some_and(|turns| turns.lingers() && turns.handle_timeout(now)) {
            self.give_up_kept();
        }
        if self.checking.handle_timeout(now) {
            self.pass_on(trust);
        }
        self.begin_next(false);
    }

    /// The last handle of the client was dropped, so that nobody could take a kept node.
    pub fn handle_deserted(&mut self) {
        self.is_deserted = true;
        if let Some(kept) = self.kept {
            self.give_up_idle(kept);
        }
    }

    /// The client is closed. Attempts fail by themselves.
    pub fn handle_closed(&mut self) {
        self.is_closed = true;
        self.turn_away();
    }

    /// The watch that the last busy try has left reports something. Everything that the session heard before is known by then.
    pub fn handle_watch(&mut self) {
        if self.tries.forget() {
            self.actions.push_back(Action::StopWatching);
        }
    }

    fn is_known_busy(&mut self, open: Option<Open<'_>>, now: Moment) -> bool {
        self.tries.is_known_busy(open, now).unwrap_or_else(|_| {
            self.actions.push_back(Action::StopWatching);
            false
        })
    }

    /// Whether a caller waits for the place that is on its way in.
    fn entering_caller(&self) -> bool {
        matches!(self.entering(), Some((_, Some(_))))
    }

    fn waits_at(&self, caller: CallerId) -> Option<usize> {
        self.waiting.binary_search_by_key(&caller, |waiting| waiting.id).ok()
    }

    /// Tells those who hold the lock that others wait. What becomes of the kept place, `pass_on` says.
    fn tell_holders(&mut self) {
        let holders = self.turns.iter().map(|turn| turn.place).filter(|place| Some(*place) != self.kept);
        for place in holders.collect::<Vec<_>>() {
            self.set_wanted(place, true);
        }
    }

    fn set_wanted(&mut self, place: PlaceId, is_wanted: bool) {
        let told = self.place_mut(place).filter(|place| place.is_wanted != is_wanted);
        if let Some(told) = told {
            told.is_wanted = is_wanted;
            self.actions.push_back(Action::Wanted { place, is_wanted });
        }
    }

    fn answer(&mut self, caller: CallerId, answer: Answer) {
        self.actions.push_back(Action::Answer { caller, answer });
    }

    /// Answers all who wait: nothing begins any more.
    fn turn_away(&mut self) {
        while let Some(caller) = self.waiting.pop_front() {
            self.answer(caller.id, Answer::Closed);
        }
        self.leave_untaken();
    }

    /// Begins the next attempt, if it is time. `is_behind` says that a deletion has just been sent.
    fn begin_next(&mut self, is_behind: bool) {
        let is_full = self.attempts >= self.width.attempts();
        if self.entering.is_some() || is_full || self.holds_back.is_some() {
            return;
        }
        if self.kept_turns().is_some_and(|turns| !turns.is_spent()) {
            // Those who wait take that node.
            return;
        }
        if let Some(next) = self.waiting.pop_front() {
            // A try first waits for releases, and servers may be unable to create several nodes at once.
            let is_simple = self.width == Width::Two && self.is_simple;
            let is_at_once = is_behind && is_simple && next.call.patience == Patience::Waits;
            self.begin(next, true, is_at_once);
        }
    }

    fn begin(&mut self, caller: Caller<O>, is_counted: bool, is_at_once: bool) {
        self.last_place += 1;
        let (place, id) = (PlaceId(self.last_place), caller.id);
        debug_assert!(!is_counted || self.entering.is_none(), "a later one could get ahead");
        debug_assert!(!is_counted || self.attempts < self.width.attempts());
        self.places.push(Place::new(place, caller, is_counted));
        if is_counted {
            self.attempts += 1;
            self.entering = Some(place);
        }
        let tried_before = self.tries.was_busy;
        self.actions.push_back(Action::Begin { place, caller: id, is_at_once, tried_before });
    }

    fn add_turn(&mut self, place: PlaceId, owner: O, is_bound: bool) -> TurnId {
        self.last_turn += 1;
        let id = TurnId(self.last_turn);
        self.turns.push(Turn { id, place, owner, is_bound, holds: 1 });
        id
    }

    /// Grants a place to a caller, and lets others of the same owner share that.
    fn grant(&mut self, place: PlaceId, caller: &Caller<O>, is_kept: bool) {
        let Caller { id, call } = caller;
        let (owner, is_bound) = (call.owner, call.is_bound());
        let turn = self.add_turn(place, owner, is_bound);
        // The shell makes the grant before anybody learns of it.
        self.actions.push_back(Action::Grant { turn, place, owner, is_bound, is_kept });
        self.answer(*id, Answer::Held(turn));
        // Those that queued before their owner had it, as two calls of one task may, would wait for themselves.
        let shares = |other: &Call<O>| call.is_reentrant && other.is_reentrant && other.owner == owner;
        if !self.waiting.iter().any(|other| shares(&other.call)) {
            return;
        }
        for other in std::mem::take(&mut self.waiting) {
            if !shares(&other.call) {
                self.waiting.push_back(other);
                continue;
            }
            if let Some(turn) = self.turns.last_mut() {
                turn.holds += 1;
            }
            self.answer(other.id, Answer::Held(turn));
        }
    }

    fn place_at(&self, place: PlaceId) -> Option<usize> {
        self.places.binary_search_by_key(&place, |place| place.id).ok()
    }

    fn place(&self, place: PlaceId) -> Option<&Place<O>> {
        self.place_at(place).map(|at| &self.places[at])
    }

    fn place_mut(&mut self, place: PlaceId) -> Option<&mut Place<O>> {
        self.place_at(place).map(|at| &mut self.places[at])
    }

    /// Makes the shell delete its nodes.
    fn give_up(&mut self, place: PlaceId) {
        // Once: the deletion may be under way.
        if let Some(place) = self.place_mut(place).filter(|place| place.stage != Stage::Leaving) {
            place.stage = Stage::Leaving;
            let place = place.id;
            self.actions.push_back(Action::GiveUp { place });
        }
    }
}
