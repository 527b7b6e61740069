//! The local queue: the callers of one client that want the same lock.
//!
//! Who of them waits, enters and holds, and what becomes of each node, is decided by a machine, [`Callers`]. Here is its shell:
//! one mutex around the machine and what belongs to its names (the waiters, the attempts' tasks, the grants). Each method
//! locks it, tells the machine what has happened, and does what the machine answers. What may run code of others, such as
//! dropping a hold, is done after the mutex is unlocked.
//!
//! So processes take turns, however many threads they have. Queueing more nodes ahead would be closer to the order of
//! arrival, but not free. Measured with one more: a hand-over within a process took a quarter more requests and half more
//! bytes, because a contender behind several others lists again; among several processes it took no more requests, but 60 %
//! more bytes. (`tests/FIGURES.md`: "Queueing more ahead". The times did not differ by more than they vary.)

mod attempt;
mod held_at;
mod holder_lookup;
mod waiter;

use crate::attempt::refused::deadlock;
use crate::attempt::shared::Shared;
use crate::base::clock;
use crate::base::debt::Debt;
use crate::base::error::Error;
use crate::base::owner::Owner;
use crate::base::sync::{Mutex, MutexGuard, lock_ignoring_poison};
use crate::base::wait::Wait;
use crate::hold::grant::{Grant, Granter};
use crate::hold::hold::Hold;
use crate::hold::token::Token;
use crate::machine::Moment;
use crate::machine::callers::{
    self, Action, Call, CallerId, Callers, Open, Own, PlaceId, ReleaseOutcome, Remembered, Trust, TurnId,
};
use crate::machine::claim::Claim;
use crate::machine::protocol::{Patience, WatchEvent};
use crate::machine::status::Status;
use crate::machine::turns::Passing;
use crate::session::session::Holding;
use crate::zookeeper::ensemble::Pending;
use attempt::Attempt;
pub(crate) use held_at::HeldAt;
use holder_lookup::HolderLookup;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::sync::watch;
use waiter::Waiter;
pub(crate) use waiter::{Acquired, Ticket, span_of_call};

impl callers::Owner for Owner {
    fn returns(self) -> bool {
        Owner::returns(self)
    }
}

/// Everything that one client wants of one lock.
pub(crate) struct LocalQueue {
    /// The lock's name in messages.
    pub(crate) path: Arc<str>,
    pub(crate) claims: Arc<[Claim]>,
    /// One for each claim.
    held_at: Vec<Arc<HeldAt>>,
    /// How a node is passed on, instead of creating one for each holder.
    passing: Passing,
    pub(crate) shared: Arc<Shared>,
    state: Mutex<State>,
    holder_lookup: HolderLookup,
    this: Weak<Self>,
}

/// The machine, and what its names stand for.
struct State {
    callers: Callers<Owner>,
    waiters: BTreeMap<CallerId, Waiter>,
    places: BTreeMap<PlaceId, PlaceRecord>,
    grants: BTreeMap<TurnId, Arc<Grant>>,
    /// The watch that the last busy try has left. Dropping it removes it.
    busy_watch: Option<Pending<WatchEvent>>,
}

/// An attempt, as its queue knows it. Its task looks after the nodes.
struct PlaceRecord {
    debt: Arc<Debt>,
    /// Since when it has waited for the servers' answer; `None` while it waits behind others.
    asks: Option<Moment>,
    /// The names of its nodes, if it may have to wait.
    nodes: Vec<String>,
    /// The token of the write side that it is inside of.
    writer: Option<Token>,
    /// What it was granted.
    holding: Option<Arc<Holding>>,
    wish: watch::Sender<Wish>,
}

/// What its queue wants of a place's task. A later wish takes the place of one that the task has not seen: one that has entered
/// serves no other caller, and one that is given up need not be proven.
#[derive(Clone, Copy, PartialEq)]
enum Wish {
    /// Enter for this caller, which waits so long.
    Serve(CallerId, Wait),
    /// Let the quorum confirm the nodes.
    Prove,
    /// Leave.
    GiveUp,
}

/// What becomes of a place. Its task tells most of it.
enum Event {
    /// It has come to wait behind others, or does so no longer. `nodes` has the names of its nodes if they are new.
    Queued {
        nodes: Option<Vec<String>>,
        is_behind_others: bool,
    },
    /// The servers have granted it.
    Entered(Arc<Holding>),
    /// It is a try, and has found the lock busy.
    Busy,
    Failed(Error),
    /// Others wait for what it has.
    Wanted,
    Lost,
    /// The check that the machine has asked for is over.
    Checked,
    /// A moment has come at which something is due, not only for this place.
    Timeout,
    /// The last handle of the client was dropped.
    Deserted,
    /// It is in somebody's way. If nobody uses it, it is given up.
    InTheWay,
    /// The deletion of its nodes is on its way.
    Left,
    /// Nothing is left of it at the servers, except the watch of a try that found the lock busy.
    Ended(Option<(Remembered, Pending<WatchEvent>)>),
    /// Its task is dropped, because the runtime is gone.
    Abandoned,
}

/// What the machine's actions leave to do when the mutex is unlocked.
#[derive(Default)]
struct Effects {
    begun: Vec<(Attempt, bool)>,
    /// Holds of callers that have just gone away.
    undelivered: Vec<Hold>,
    /// Whether a caller waits behind others whose owner holds the lock itself.
    waits_beside_own: bool,
}

/// What the session knows of a place at this moment.
fn trust(places: &BTreeMap<PlaceId, PlaceRecord>, place: PlaceId) -> Trust {
    let Some(holding) = places.get(&place).and_then(|place| place.holding.as_ref()) else {
        return Trust::Over;
    };
    if holding.status() != Status::Held {
        Trust::Over
    } else if holding.session.is_connected() && !holding.session.valid_for(holding).is_zero() {
        Trust::Known
    } else {
        Trust::Unproven
    }
}

impl LocalQueue {
    /// `held_at` says what is held at the path of each claim, in their order.
    pub(crate) fn new(
        path: Arc<str>,
        claims: Vec<Claim>,
        passing: Passing,
        held_at: Vec<Arc<HeldAt>>,
        shared: Arc<Shared>,
    ) -> Arc<Self> {
        let state = Mutex::new(State {
            callers: Callers::new(&claims, passing),
            waiters: BTreeMap::new(),
            places: BTreeMap::new(),
            grants: BTreeMap::new(),
            busy_watch: None,
        });
        let holder_lookup = HolderLookup::default();
        Arc::new_cyclic(|this| Self {
            path,
            claims: claims.into(),
            held_at,
            passing,
            shared,
            state,
            holder_lookup,
            this: this.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock_ignoring_poison(&self.state)
    }

    // What callers want.

    /// Returns another hold of a grant that the owner has and nobody else may release; `None` if there is none.
    pub(crate) fn again(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        if self.shared.pool.is_closed() {
            return Err(Error::closed());
        }
        let mut state = self.lock();
        let Some(turn) = state.callers.again(owner) else { return Ok(None) };
        let Some(grant) = state.grants.get(&turn).cloned() else { return Ok(None) };
        drop(state);
        let hold = Hold::new(grant.clone());
        // An inner section is not entered if the outer one is lost.
        grant.check_not_lost()?;
        if hold.valid_for().is_zero() { Err(grant.unheard()) } else { Ok(Some(hold)) }
    }

    /// Returns a hold without a request and without a wait, on a node that the process has kept. `None` if there is no such
    /// node, or other callers of the process come first.
    pub(crate) fn take(&self, owner: Owner, reentrant: bool) -> Option<Hold> {
        if !self.passing.is_on() || self.shared.pool.is_closed() {
            return None;
        }
        let mut state = self.lock();
        let State { callers, places, .. } = &mut *state;
        let (turn, place) = callers.take(owner, reentrant, |place| trust(places, place))?;
        let grant = self.grant(&mut state, turn, place, owner, reentrant && owner.returns())?;
        Some(Hold::new(grant))
    }

    /// Queues a caller. When `wait` is nearly over, the queue finds out what the caller waits for. A caller that is ready
    /// to wait must not wait for something that only its owner can release.
    pub(crate) fn join(
        self: &Arc<Self>,
        owner: Owner,
        is_reentrant: bool,
        patience: Patience,
        wait: Wait,
    ) -> Result<Ticket, Error> {
        if self.shared.pool.is_closed() {
            return Err(Error::closed());
        }
        let within = self.writer(owner);
        let mut is_beside_own = false;
        if patience == Patience::Waits && within.is_none() {
            match self.own(owner) {
                Ok(Own::Beside) => is_beside_own = true,
                Ok(Own::InTheWay) => self.shared.counters.attempts.warn_of_own(&self.path),
                Ok(Own::Nothing | Own::Deadlock { .. }) => {}
                // Another call of the owner was granted after this one had found nothing at once. They share the turn.
                Err(_) if is_reentrant && self.lock().callers.is_bound_to(owner) => {}
                Err(deadlock) => return Err(deadlock),
            }
        }
        let call = Call { owner, is_reentrant, patience, is_within: within.is_some() };
        let (waiter, receiver) = Waiter::new(within, patience, wait, is_beside_own);
        // Read before the watch is polled: what arrives in between must not outweigh what the watch reports.
        let session = match patience {
            Patience::TriesOnce => self.shared.pool.slot().current(),
            Patience::Waits => None,
        };
        let open =
            session.filter(|session| session.is_connected()).map(|session| (session.id(), session.lease()));
        let mut state = self.lock();
        state.look_at_busy_watch();
        let State { callers, places, .. } = &mut *state;
        let open = open.as_ref().map(|(session, lease)| Open { session: *session, lease });
        let caller = callers.join(call, open, |place| trust(places, place), clock::now());
        state.waiters.insert(caller, waiter);
        let effects = self.act(&mut state);
        let is_behind_others = state.is_behind_others(caller);
        drop(state);
        self.finish(effects);
        let mut ticket = Ticket::new(self.clone(), caller, receiver);
        if is_behind_others {
            tracing::debug!(path = &*self.path, "waits behind others of this client");
            if wait.deadline().is_some() {
                let holder_lookup = self.clone().look_up_holder(wait, caller);
                ticket.holder_lookup = Some(self.shared.pool.runtime().spawn(holder_lookup).abort_handle());
            }
        }
        Ok(ticket)
    }

    /// The caller does not want its answer any more. Returns what is owed for its attempt, unless that goes on for another
    /// caller; `None` also if the answer was given before.
    fn leave(&self, caller: CallerId) -> Option<Arc<Debt>> {
        let mut state = self.lock();
        let waiter = state.waiters.remove(&caller)?;
        state.callers.handle_gone(caller);
        let effects = self.act(&mut state);
        let place = waiter.place.and_then(|place| state.places.get(&place));
        let debt = place.map(|place| place.debt.clone()).filter(|debt| !debt.is_in_use());
        drop(state);
        self.finish(effects);
        debt
    }

    // What owners hold already.

    /// Finds out what the owner holds here.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Deadlock`](crate::ErrorKind::Deadlock) if that hold is in the way and nobody else may release it.
    pub(crate) fn own(&self, owner: Owner) -> Result<Own, Error> {
        let mut own = Own::Nothing;
        for (claim, held_at) in self.claims.iter().zip(&self.held_at) {
            own = own.or(held_at.own(owner, claim));
            if let Own::Deadlock { held } = own {
                let path = if claim.layout.is_some() { &self.path } else { &claim.directory };
                return Err(deadlock(path, claim.scheme.role(), held));
            }
        }
        Ok(own)
    }

    /// Whether the owner may take the read side inside its own write side, so that its own node is not in the way.
    pub(crate) fn may_be_within(&self, owner: Owner) -> bool {
        let mut queues = self.claims.iter().zip(&self.held_at);
        queues.any(|(claim, held_at)| held_at.may_be_within(owner, claim))
    }

    /// Returns the owner's grant of the write side, which it alone can release, if this is the read side of the same lock.
    fn writer(&self, owner: Owner) -> Option<Arc<Grant>> {
        let writer = self.held_at.first()?.writer(owner, &self.claims)?;
        // The next writer of this process must not take over that node while the reader is beside it.
        writer.end_passing().then_some(writer.grant)
    }

    fn end_passing(&self, turn: TurnId) -> bool {
        let mut state = self.lock();
        let is_last = state.callers.end_passing(turn);
        self.perform(state);
        is_last
    }

    /// Waits until the releases that have begun are done, or refused: a node that cannot be deleted really is in the way.
    pub(crate) async fn released(&self) {
        let held_at = self.claims.iter().zip(&self.held_at);
        let releases = held_at.flat_map(|(claim, held_at)| held_at.give_up_idle_for(claim.scheme.role()));
        for mut release in releases.collect::<Vec<_>>() {
            // It cannot fail while somebody sees the release through.
            let _ = release.wait_for(|state| state.status != Status::Releasing).await;
        }
    }

    /// Whether the callers here wait for an attempt that the servers have not answered for this long.
    pub(crate) fn is_unanswered_for(&self, patience: Duration) -> bool {
        let state = self.lock();
        let is_held = state.callers.is_held(|place| trust(&state.places, place));
        !is_held
            && state.entering().and_then(|place| place.asks).is_some_and(|since| is_over(since, patience))
    }

    /// Returns since when a caller has waited for the servers' answer. `None` while it waits behind others, here or in the
    /// ensemble, and after its own answer.
    fn asks(&self, caller: CallerId) -> Option<Moment> {
        self.lock().asks(caller)
    }

    /// Whether a caller that has no answer yet waits behind others, here or in the ensemble.
    fn is_behind_others(&self, caller: CallerId) -> bool {
        self.lock().is_behind_others(caller)
    }

    // What becomes of attempts.

    /// Hears from the task of a place, in the order that the machine asks for.
    fn tell(&self, place: PlaceId, event: Event) {
        let (mut locked, now, mut waits_beside_own) = (self.lock(), clock::now(), false);
        let state = &mut *locked;
        let (callers, places) = (&mut state.callers, &state.places);
        let trust = |place| trust(places, place);
        match event {
            Event::Queued { nodes, is_behind_others } => {
                if let Some(place) = state.places.get_mut(&place) {
                    place.nodes = nodes.unwrap_or_else(|| std::mem::take(&mut place.nodes));
                    place.asks = if is_behind_others { None } else { place.asks.or(Some(now)) };
                }
                waits_beside_own = state.waits_beside_own(place);
            }
            Event::Entered(holding) => {
                let Some(entry) = state.places.get_mut(&place) else { return };
                if *entry.wish.borrow() == Wish::GiveUp {
                    entry.debt.owe();
                    holding.session.release(&holding);
                }
                entry.holding = Some(holding);
                let places = &state.places;
                callers.handle_entered(place, |place| self::trust(places, place), now);
            }
            Event::Busy => callers.handle_busy(place),
            Event::Failed(error) => {
                let served = callers.served_at(place);
                if let Some(waiter) = served.and_then(|caller| state.waiters.get_mut(&caller)) {
                    waiter.failure = Some(error);
                }
                callers.handle_failed(place);
            }
            Event::Wanted => callers.handle_wanted(place),
            Event::Lost => callers.handle_lost(place),
            Event::Checked => callers.handle_checked(place, trust, now),
            Event::Timeout => callers.handle_timeout(trust, now),
            Event::Deserted => callers.handle_deserted(),
            Event::InTheWay => callers.give_up_idle(place),
            Event::Left => callers.handle_left(place, now),
            Event::Ended(busy) => {
                let (remembered, watch) = busy.unzip();
                state.busy_watch = watch.or(state.busy_watch.take());
                callers.handle_ended(place, remembered, now);
                self.forget(state, place);
            }
            Event::Abandoned => {
                callers.handle_abandoned(place, now);
                self.forget(state, place);
            }
        }
        let mut effects = self.act(state);
        effects.waits_beside_own |= waits_beside_own;
        drop(locked);
        self.finish(effects);
    }

    fn forget(&self, state: &mut State, place: PlaceId) {
        let Some(ended) = state.places.remove(&place) else { return };
        if let Some(holding) = &ended.holding {
            self.held_at.iter().for_each(|held_at| held_at.forget_kept(holding));
            // Wakes all who wait for its end.
            holding.session.abandon(holding);
        }
        ended.debt.settle();
    }

    /// Returns when the next thing is due. A node may become idle at any moment, without notice.
    fn next_wake(&self) -> Option<Moment> {
        let state = self.lock();
        let next_wake = state.callers.next_wake(clock::now());
        state.callers.poll_timeout().into_iter().chain(next_wake).min()
    }

    // What the machine wants.

    /// Does what the machine wants, unlocks the state, and does the rest.
    fn perform(&self, mut state: MutexGuard<'_, State>) {
        let effects = self.act(&mut state);
        drop(state);
        self.finish(effects);
    }

    /// Does what the machine wants, as far as that can be done while the state is locked.
    #[must_use]
    fn act(&self, state: &mut State) -> Effects {
        if self.shared.pool.is_closed() {
            state.callers.handle_closed();
        }
        let mut effects = Effects::default();
        while let Some(action) = state.callers.poll_action() {
            self.act_on(state, action, &mut effects);
        }
        effects
    }

    /// Does the rest. Holds may call back, an attempt sends requests, and what is logged runs code of the program.
    fn finish(&self, effects: Effects) {
        effects.undelivered.iter().for_each(Hold::let_go);
        for (attempt, is_at_once) in effects.begun {
            attempt.start(is_at_once);
        }
        if effects.waits_beside_own {
            self.shared.counters.attempts.warn_of_own(&self.path);
        }
    }

    fn act_on(&self, state: &mut State, action: Action<Owner>, effects: &mut Effects) {
        match action {
            Action::Begin { place, caller, is_at_once, tried_before } => {
                let attempt = self.begin(state, place, caller, tried_before);
                effects.begun.extend(attempt.map(|attempt| (attempt, is_at_once)));
            }
            Action::Serve { place, caller } => {
                if let Some(heir) = state.waiters.get_mut(&caller) {
                    heir.place = Some(place);
                    let wish = Wish::Serve(caller, heir.wait);
                    state.wish(place, wish);
                }
                effects.waits_beside_own |= state.waits_beside_own(place);
            }
            Action::Asks { caller } => {
                if let Some(waiter) = state.waiters.get_mut(&caller) {
                    waiter.asks.get_or_insert_with(clock::now);
                }
            }
            Action::Grant { turn, place, owner, is_bound, is_kept } => {
                if is_kept {
                    self.note_kept(state, place);
                }
                self.grant(state, turn, place, owner, is_bound);
            }
            Action::Answer { caller, answer } => state.answer(caller, answer, effects),
            Action::GiveUp { place } => {
                if let Some(given_up) = state.places.get(&place) {
                    given_up.debt.owe();
                    // Its task then deletes the nodes.
                    if let Some(holding) = &given_up.holding {
                        holding.session.release(holding);
                    }
                }
                state.wish(place, Wish::GiveUp);
            }
            Action::Prove { place } => state.wish(place, Wish::Prove),
            Action::Wanted { place, is_wanted } => {
                if let Some(holding) = state.holding(place) {
                    holding.set_wanted(is_wanted);
                }
            }
            Action::Over { turn } => {
                if let Some(grant) = state.grants.remove(&turn) {
                    self.held_at.iter().for_each(|held_at| held_at.remove(&grant));
                }
            }
            Action::StopWatching => state.busy_watch = None,
        }
    }

    fn begin(
        &self,
        state: &mut State,
        place: PlaceId,
        caller: CallerId,
        tried_before: bool,
    ) -> Option<Attempt> {
        let queue = self.this.upgrade()?;
        let waiter = state.waiters.get_mut(&caller)?;
        waiter.place = Some(place);
        let record = PlaceRecord {
            debt: Debt::new(&self.shared.counters),
            asks: waiter.asks.or_else(|| Some(clock::now())),
            nodes: Vec::new(),
            // The resource that a reader inside of its own write side guards has seen the token of that. And the next writer
            // may already be queued, with a token smaller than that of the reader's node.
            writer: waiter.within.as_ref().map(|writer| writer.token()),
            holding: None,
            wish: watch::Sender::new(Wish::Serve(caller, waiter.wait)),
        };
        let attempt = Attempt::new(queue, place, &record, waiter, tried_before);
        state.places.insert(place, record);
        Some(attempt)
    }

    /// Notes a place that is kept for the next callers in this process.
    fn note_kept(&self, state: &State, place: PlaceId) {
        let Some(holding) = state.holding(place) else { return };
        for (claim, held_at) in self.claims.iter().zip(&self.held_at) {
            held_at.note_kept(claim.scheme.role(), &self.this, place, holding);
        }
    }

    /// Makes the grant of a turn, and registers it where other callers of this process look for it.
    fn grant(
        &self,
        state: &mut State,
        turn: TurnId,
        place: PlaceId,
        owner: Owner,
        is_bound: bool,
    ) -> Option<Arc<Grant>> {
        let PlaceRecord { writer, holding: Some(holding), .. } = state.places.get(&place)? else {
            return None;
        };
        let token = writer.unwrap_or_else(|| Token::of(holding.czxid));
        let slot = self.shared.pool.slot().clone();
        self.shared.counters.grants.add();
        let grant = Grant::new(holding.clone(), token, slot, owner, is_bound, self.this.clone(), turn);
        state.grants.insert(turn, grant.clone());
        for (claim, held_at) in self.claims.iter().zip(&self.held_at) {
            held_at.add(claim, &grant, &self.this);
        }
        Some(grant)
    }
}

impl State {
    fn holding(&self, place: PlaceId) -> Option<&Arc<Holding>> {
        self.places.get(&place)?.holding.as_ref()
    }

    /// Returns the counted place that is on its way in.
    fn entering(&self) -> Option<&PlaceRecord> {
        self.places.get(&self.callers.entering()?.0)
    }

    /// See [`LocalQueue::asks`].
    fn asks(&self, caller: CallerId) -> Option<Moment> {
        let waiter = self.waiters.get(&caller)?;
        match waiter.place {
            Some(place) => self.places.get(&place)?.asks,
            None => waiter.asks,
        }
    }

    fn is_behind_others(&self, caller: CallerId) -> bool {
        self.waiters.contains_key(&caller) && self.asks(caller).is_none()
    }

    /// Whether a place waits behind others for a caller whose owner holds the lock itself. Each caller counts once.
    fn waits_beside_own(&mut self, place: PlaceId) -> bool {
        let waits = self.places.get(&place).is_some_and(|place| place.asks.is_none());
        let caller = self.callers.served_at(place).filter(|_| waits);
        let waiter = caller.and_then(|caller| self.waiters.get_mut(&caller));
        waiter.is_some_and(|waiter| std::mem::take(&mut waiter.is_beside_own))
    }

    fn wish(&self, place: PlaceId, wish: Wish) {
        if let Some(place) = self.places.get(&place) {
            let before = place.wish.send_replace(wish);
            debug_assert!(before != Wish::GiveUp, "a place that is given up comes back");
        }
    }

    /// The watch is polled here instead of by a task. So it has fired before anybody can act on an answer that came after it
    /// on the same connection.
    fn look_at_busy_watch(&mut self) {
        let Some(watch) = &mut self.busy_watch else { return };
        if watch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            self.callers.handle_watch();
        }
    }

    fn answer(&mut self, caller: CallerId, answer: callers::Answer, effects: &mut Effects) {
        let held = |turn| self.grants.get(&turn).cloned().map(Hold::new);
        let Some(waiter) = self.waiters.remove(&caller) else {
            // It has gone: a hold that was meant for it is released.
            if let callers::Answer::Held(turn) = answer {
                effects.undelivered.extend(held(turn));
            }
            return;
        };
        let answered = match answer {
            callers::Answer::Held(turn) => Ok(held(turn)),
            callers::Answer::Busy => Ok(None),
            callers::Answer::Failed => Err(waiter.failure.unwrap_or_else(Error::closed)),
            callers::Answer::Closed => Err(Error::closed()),
        };
        let debt = waiter.place.and_then(|place| self.places.get(&place)).map(|place| place.debt.clone());
        if !matches!(answered, Ok(Some(_))) {
            debt.iter().for_each(|debt| debt.owe());
        }
        if let Err((Ok(Some(hold)), _)) = waiter.answer.send((answered, debt)) {
            effects.undelivered.push(hold);
        }
    }
}

impl Granter for LocalQueue {
    fn take_back(&self, turn: TurnId, grant: &Grant) -> ReleaseOutcome {
        let mut state = self.lock();
        let is_last = state.callers.holds_of(turn) <= 1;
        if is_last {
            grant.set_unused();
        }
        let State { callers, places, .. } = &mut *state;
        let left = callers.release(turn, grant.is_unsettled(), |place| trust(places, place), clock::now());
        self.perform(state);
        if is_last {
            // It is logged, so not while anything is locked.
            grant.note_end();
        }
        left
    }
}

fn is_over(since: Moment, patience: Duration) -> bool {
    clock::now().since(since) >= patience
}

#[cfg(test)]
mod tests;
