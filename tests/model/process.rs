//! A process with several callers of a lock: their machine, the machines of their attempts, and what a shell does for them.
//!
//! A shell runs an attempt as a task, which learns a little later what the callers' machine has decided. So what a task does
//! by itself is an action of the model: to set out, to leave, to hear of a loss.

use super::crowd::{Gathering, Plan};
use super::ensemble::Ensemble;
use super::explorer::Violation;
use super::machine::Moment;
use super::machine::callers::held::{HeldAt, Own};
use super::machine::callers::{
    Action, Answer, Call, CallerId, Callers, Open, PlaceId, Remembered, Trust, TurnId,
};
use super::machine::lease::Lease;
use super::machine::name::{Role, Uuid};
use super::machine::protocol::{Operation, Outcome, Patience, Refusal, Verdict};
use super::machine::status::{LossReason, Status};
use super::setup::TIMEOUT;
use super::subject::{Attempt, HeldTurn, Sort, Task, Want};
use super::watch::Watch;
use std::collections::VecDeque;
use std::rc::Rc;

/// A caller of a process, and how far its call has got.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Person {
    /// It will call so often.
    Away(u8),
    /// It has found nothing at once, and queues next.
    Asked(u8),
    /// It waits for the answer to the call of this name.
    Waits { caller: CallerId, left: u8 },
    /// It has a hold of this turn.
    Holds { caller: CallerId, turn: TurnId, left: u8 },
}

/// An attempt.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Spot {
    pub(crate) lock: usize,
    pub(crate) place: PlaceId,
    pub(crate) attempt: Attempt,
    pub(crate) watches: Vec<Watch>,
    tries: bool,
    /// The node of its own writer.
    within: Option<String>,
    pub(crate) has_set_out: bool,
    /// The state of its hold, once it is granted.
    pub(crate) status: Option<Status>,
    pub(crate) node: String,
    was_refused: bool,
    is_given_up: bool,
    has_heard_of_loss: bool,
    has_left: bool,
    pub(crate) is_kept: bool,
    /// Whether its holders know that others wait.
    pub(crate) is_wanted: bool,
    /// How many have taken it since the process was told that others wait.
    since_wanted: Option<u8>,
    was_taken: bool,
    /// A write that a former holder guarded may still be under way.
    is_unsettled: bool,
    /// The latest call of its lock when it was granted.
    latest_call: CallerId,
}

/// Requests on the connection of a process, in the order in which they were sent.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Flight {
    pub(crate) lock: usize,
    pub(crate) place: PlaceId,
    pub(crate) operations: Vec<Operation>,
    pub(crate) sent: Moment,
    pub(crate) outcomes: Option<Vec<Outcome>>,
}

#[derive(Clone, Hash, Debug)]
struct Granted {
    lock: usize,
    turn: TurnId,
    place: PlaceId,
    owner: u8,
    is_bound: bool,
    holds: u8,
}

/// What a try has left.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Recollection {
    lock: usize,
    session: i64,
    since: Moment,
    pub(crate) watch: Option<Watch>,
    is_told: bool,
}

#[derive(Clone, Hash, Debug)]
pub(crate) struct Process {
    pub(crate) number: usize,
    pub(crate) locks: Vec<Callers<Task>>,
    pub(crate) people: Vec<Person>,
    pub(crate) spots: Vec<Spot>,
    pub(crate) flights: VecDeque<Flight>,
    turns: Vec<Granted>,
    pub(crate) session: i64,
    /// Of that session, in which tries are remembered.
    lease: Lease,
    serial: u8,
    /// Whether its nodes have to be confirmed before they are passed on.
    pub(crate) is_unproven: bool,
    pub(crate) proving: Vec<(usize, PlaceId)>,
    pub(crate) memory: Option<Recollection>,
    pub(crate) is_deserted: bool,
    pub(crate) violation: Option<Violation>,
}

/// The parts of the world that a process sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) gathering: &'a Gathering,
    pub(crate) now: Moment,
}

impl View<'_> {
    fn now(&self) -> super::machine::protocol::Now {
        super::machine::protocol::Now { moment: self.now, lease_until: self.now + TIMEOUT }
    }

    fn plan(&self, process: usize, person: usize) -> Plan {
        self.gathering.processes[process][person]
    }
}

impl Process {
    pub(crate) fn new(number: usize, gathering: &Gathering) -> Self {
        let lock = |(sort, passes): &(Sort, _)| {
            Callers::new(&[Want::new(super::crowd::PATH, *sort).claim()], *passes)
        };
        Self {
            number,
            locks: gathering.locks.iter().map(lock).collect(),
            people: gathering.processes[number].iter().map(|plan| Person::Away(plan.times)).collect(),
            spots: Vec::new(),
            flights: VecDeque::new(),
            turns: Vec::new(),
            session: (number as i64 + 1) * 100,
            lease: Lease::new(TIMEOUT, Moment::default()),
            serial: 0,
            is_unproven: false,
            proving: Vec::new(),
            memory: None,
            is_deserted: false,
            violation: None,
        }
    }

    fn violate(&mut self, property: &'static str, detail: String) {
        let violation = self.wrong(property, detail);
        self.violation.get_or_insert(violation);
    }

    fn wrong(&self, property: &'static str, mut detail: String) -> Violation {
        detail.insert_str(0, &format!("process {}: ", self.number));
        Violation { property, detail }
    }

    /// Calls the machine of a lock's callers, with what its session knows of their places.
    fn call<T>(
        &mut self,
        lock: usize,
        call: impl FnOnce(&mut Callers<Task>, &dyn Fn(PlaceId) -> Trust) -> T,
    ) -> T {
        let Self { locks, spots, is_unproven, .. } = self;
        call(&mut locks[lock], &|place| {
            let spot = spots.iter().find(|spot| (spot.lock, spot.place) == (lock, place));
            match spot.and_then(|spot| spot.status) {
                Some(Status::Held) if *is_unproven => Trust::Unproven,
                Some(Status::Held) => Trust::Known,
                _ => Trust::Over,
            }
        })
    }

    pub(crate) fn spot(&self, lock: usize, place: PlaceId) -> Option<&Spot> {
        self.spots.iter().find(|spot| (spot.lock, spot.place) == (lock, place))
    }

    fn spot_mut(&mut self, lock: usize, place: PlaceId) -> Option<&mut Spot> {
        self.spots.iter_mut().find(|spot| (spot.lock, spot.place) == (lock, place))
    }

    fn turn(&self, lock: usize, turn: TurnId) -> Option<&Granted> {
        self.turns.iter().find(|granted| (granted.lock, granted.turn) == (lock, turn))
    }

    fn turn_mut(&mut self, lock: usize, turn: TurnId) -> Option<&mut Granted> {
        self.turns.iter_mut().find(|granted| (granted.lock, granted.turn) == (lock, turn))
    }

    /// What is held here, by the turns' places in `turns`, and what is kept, by the places in `spots`.
    fn held(&self, gathering: &Gathering) -> HeldAt<HeldTurn, usize> {
        let mut held = HeldAt::default();
        for (number, turn) in self.turns.iter().enumerate() {
            let spot = self.spot(turn.lock, turn.place).and_then(|spot| spot.status);
            let status = spot.unwrap_or(Status::Lost(LossReason::ClientClosed));
            let Granted { owner, is_bound, holds, .. } = *turn;
            let turn_held = HeldTurn { number, owner, is_bound, has_holds: holds > 0, status };
            held.add(&gathering.claim(turn.lock), turn_held);
        }
        for (number, spot) in self.spots.iter().enumerate().filter(|(_, spot)| spot.is_kept) {
            held.note_kept(role(gathering, spot.lock), number);
        }
        held
    }

    /// The place of a person's hold, if it is good.
    pub(crate) fn holding(&self, view: View<'_>, person: usize) -> Option<&Spot> {
        let Person::Holds { turn, .. } = self.people[person] else { return None };
        let lock = view.plan(self.number, person).lock;
        let spot = self.spot(lock, self.turn(lock, turn)?.place)?;
        (spot.status == Some(Status::Held)).then_some(spot)
    }

    /// A person calls.
    pub(crate) fn join(&mut self, view: View<'_>, person: usize) {
        let Person::Away(times) = self.people[person] else { return };
        let (plan, left) = (view.plan(self.number, person), times - 1);
        let Plan { lock, owner, is_reentrant, .. } = plan;
        if is_reentrant {
            if let Some(turn) = self.locks[lock].again(Task(owner)) {
                self.hold(lock, turn);
                self.people[person] = Person::Holds { caller: CallerId(0), turn, left };
                if self.holding(view, person).is_none() {
                    self.release(view, person);
                }
                return;
            }
        }
        let taken = self.call(lock, |callers, trust| {
            callers.take(Task(owner), is_reentrant, trust).map(|(turn, place)| (turn, place, trust(place)))
        });
        if let Some((turn, place, trust)) = taken {
            if trust != Trust::Known {
                self.violate("passed on", format!("{place:?} is taken unseen"));
            }
            self.grant(view, lock, turn, place, owner, is_reentrant);
            self.hold(lock, turn);
            self.people[person] = Person::Holds { caller: CallerId(0), turn, left };
            return;
        }
        self.people[person] = Person::Asked(left);
        if !view.gathering.is_apart {
            self.queue(view, person);
        }
    }

    /// A person who has found nothing at once queues.
    pub(crate) fn queue(&mut self, view: View<'_>, person: usize) {
        let Person::Asked(left) = self.people[person] else { return };
        let Plan { lock, owner, is_reentrant, patience, .. } = view.plan(self.number, person);
        let (held, claim) = (self.held(view.gathering), view.gathering.claim(lock));
        let writer = held.writer(&owner, std::slice::from_ref(&claim));
        let writer = writer.map(|writer| self.turns[writer.number].clone());
        let writer = writer.filter(|writer| self.locks[writer.lock].end_passing(writer.turn));
        self.act(view, None);
        let has_turn = is_reentrant && self.locks[lock].is_bound_to(Task(owner));
        let is_deadlock = || !has_turn && matches!(held.own(&owner, &claim), Own::Deadlock { .. });
        if patience == Patience::Waits && writer.is_none() && is_deadlock() {
            self.people[person] = Person::Away(left);
            return;
        }
        let within = writer.and_then(|writer| Some(self.spot(writer.lock, writer.place)?.node.clone()));
        let call = Call { owner: Task(owner), is_reentrant, patience, is_within: within.is_some() };
        let (session, lease) = (self.session, self.lease.clone());
        let open = Some(Open { session, lease: &lease });
        let caller = self.call(lock, |callers, trust| callers.join(call, open, trust, view.now));
        self.people[person] = Person::Waits { caller, left };
        self.act(view, within.as_deref());
        if matches!(self.people[person], Person::Away(_)) && patience == Patience::TriesOnce {
            self.judge_busy(view, person);
        }
    }

    /// A try was told at once that the lock is busy.
    fn judge_busy(&mut self, view: View<'_>, person: usize) {
        let lock = view.plan(self.number, person).lock;
        let waits = self.waiters(view, lock).any(|(other, _)| other != person);
        let holds =
            |other: usize| view.plan(self.number, other).lock == lock && self.holding(view, other).is_some();
        let is_there = waits || (0..self.people.len()).any(|other| other != person && holds(other));
        let is_good = |memory: &Recollection| {
            let is_young = view.now < memory.since + TIMEOUT / 10;
            memory.lock == lock && memory.session == self.session && !memory.is_told && is_young
        };
        if !is_there && !self.memory.as_ref().is_some_and(is_good) {
            self.violate("busy", format!("person {person} is told so, and nobody has it"));
        }
    }

    /// A person does not want its answer any more.
    pub(crate) fn leave(&mut self, view: View<'_>, person: usize) {
        let lock = view.plan(self.number, person).lock;
        match self.people[person] {
            Person::Waits { caller, .. } => {
                self.people[person] = Person::Away(0);
                self.locks[lock].handle_gone(caller);
            }
            // It came too late, and nobody takes the hold.
            Person::Holds { caller, .. } => {
                self.locks[lock].handle_gone(caller);
                self.act(view, None);
                self.release(view, person);
            }
            Person::Away(_) | Person::Asked(_) => {}
        }
    }

    pub(crate) fn release(&mut self, view: View<'_>, person: usize) {
        let Person::Holds { turn, left, .. } = self.people[person] else { return };
        let Plan { lock, writes, .. } = view.plan(self.number, person);
        self.people[person] = Person::Away(left);
        let Some(granted) = self.turn_mut(lock, turn) else {
            return self.violate("own turn", format!("{turn:?} is over while it is held"));
        };
        granted.holds -= 1;
        let (place, is_last) = (granted.place, granted.holds == 0);
        if let Some(spot) = self.spot_mut(lock, place).filter(|_| writes && is_last) {
            spot.is_unsettled = true;
        }
        self.call(lock, |callers, trust| callers.release(turn, writes, trust, view.now));
    }

    /// Does what the callers' machine wants. `within` is the node of the writer inside which an attempt begins.
    pub(crate) fn act(&mut self, view: View<'_>, within: Option<&str>) {
        loop {
            let next = (0..self.locks.len()).find_map(|lock| Some((lock, self.locks[lock].poll_action()?)));
            let Some((lock, action)) = next else { break };
            self.act_once(view, lock, action, within);
        }
        self.set_out(view);
        self.poll(view);
    }

    fn act_once(&mut self, view: View<'_>, lock: usize, action: Action<Task>, within: Option<&str>) {
        match action {
            Action::Begin { place, caller, tried_before, .. } => {
                self.begin(view, lock, place, caller, tried_before, within);
            }
            Action::Serve { caller, place } => {
                let is_entering =
                    self.spot(lock, place).is_some_and(|spot| spot.status.is_none() && !spot.is_given_up);
                if self.waiting(view, lock, caller).is_none() || !is_entering {
                    self.violate("heir", format!("{place:?} goes to {caller:?}"));
                }
            }
            Action::Grant { turn, place, owner, is_bound, is_kept } => {
                self.grant(view, lock, turn, place, owner.0, is_bound);
                if let Some(spot) = self.spot_mut(lock, place).filter(|_| is_kept) {
                    spot.is_kept = true;
                    spot.attempt.handle_notice();
                }
            }
            Action::Answer { caller, answer: Answer::Held(turn) } => {
                let Some(person) = self.waiting(view, lock, caller) else {
                    return self.violate("one answer", format!("a hold for {caller:?}"));
                };
                let is_first = self.turn(lock, turn).is_some_and(|turn| turn.holds == 0);
                let Person::Waits { left, .. } = self.people[person] else { return };
                self.people[person] = Person::Holds { caller, turn, left };
                self.hold(lock, turn);
                self.judge_order(view, lock, caller, is_first);
            }
            Action::Answer { caller, answer } => match self.waiting(view, lock, caller) {
                Some(person) => {
                    let Person::Waits { left, .. } = self.people[person] else { return };
                    self.people[person] = Person::Away(left);
                    if answer == Answer::Busy && view.plan(self.number, person).patience == Patience::Waits {
                        self.violate("busy", format!("{caller:?} waits, and is told so"));
                    }
                }
                None => self.violate("one answer", format!("a refusal for {caller:?}")),
            },
            Action::GiveUp { place } => {
                let Some(spot) = self.spot_mut(lock, place) else { return };
                spot.is_given_up = true;
                if let Some(status) = &mut spot.status {
                    status.release();
                }
            }
            Action::Prove { place } => self.proving.push((lock, place)),
            Action::Wanted { place, is_wanted } => {
                if let Some(spot) = self.spot_mut(lock, place) {
                    spot.is_wanted = is_wanted;
                }
            }
            Action::Over { turn } => {
                if self.turn(lock, turn).is_none_or(|turn| turn.holds > 0) {
                    self.violate("own turn", format!("{turn:?} is over, and is held or unknown"));
                }
                self.turns.retain(|granted| (granted.lock, granted.turn) != (lock, turn));
            }
            Action::Asks { .. } | Action::StopWatching => {}
        }
    }

    /// The people that wait for this lock, each with its call.
    fn waiters(&self, view: View<'_>, lock: usize) -> impl Iterator<Item = (usize, CallerId)> {
        self.people.iter().enumerate().filter_map(move |(person, state)| match state {
            Person::Waits { caller, .. } if view.plan(self.number, person).lock == lock => {
                Some((person, *caller))
            }
            _ => None,
        })
    }

    /// The person that waits for the answer to this call.
    fn waiting(&self, view: View<'_>, lock: usize, call: CallerId) -> Option<usize> {
        self.waiters(view, lock).find(|(_, caller)| *caller == call).map(|(person, _)| person)
    }

    fn begin(
        &mut self,
        view: View<'_>,
        lock: usize,
        place: PlaceId,
        caller: CallerId,
        tried_before: bool,
        within: Option<&str>,
    ) {
        let Some(person) = self.waiting(view, lock, caller) else {
            return self.violate("begins", format!("an attempt for {caller:?}, who does not wait"));
        };
        let patience = view.plan(self.number, person).patience;
        let at_most = match view.gathering.locks[lock].0 {
            Sort::Single => 1,
            Sort::Mutex | Sort::Unmarked | Sort::Write => 2,
            _ => usize::MAX,
        };
        if self.spots.iter().filter(|spot| spot.lock == lock).count() >= at_most {
            self.violate("width", format!("more than {at_most} attempts for lock {lock}"));
        }
        let want = Want::new(super::crowd::PATH, view.gathering.locks[lock].0);
        let name = within.and_then(|path| path.rsplit('/').next()).map(str::to_owned);
        let patience_within = if name.is_some() { Patience::Waits } else { patience };
        let mut attempt = Attempt::new(&[want], name.as_deref(), patience_within);
        if tried_before {
            attempt.handle_tried_before();
        }
        self.spots.push(Spot {
            lock,
            place,
            attempt,
            watches: Vec::new(),
            tries: patience == Patience::TriesOnce,
            within: name,
            has_set_out: false,
            status: None,
            node: String::new(),
            was_refused: false,
            is_given_up: false,
            has_heard_of_loss: false,
            has_left: false,
            is_kept: false,
            is_wanted: false,
            since_wanted: None,
            was_taken: false,
            is_unsettled: false,
            latest_call: CallerId(0),
        });
        if patience == Patience::TriesOnce {
            self.give_up_idle_for(view, lock);
        }
    }

    /// Gives up what nobody uses, for a try.
    fn give_up_idle_for(&mut self, view: View<'_>, lock: usize) {
        let kept: Vec<_> = self.held(view.gathering).kept(role(view.gathering, lock)).copied().collect();
        for at in kept {
            self.locks[self.spots[at].lock].give_up_idle(self.spots[at].place);
        }
    }

    /// Begins the attempts that need not wait for a release.
    fn set_out(&mut self, view: View<'_>) {
        for at in 0..self.spots.len() {
            let spot = &self.spots[at];
            if spot.has_set_out || spot.is_given_up || spot.tries && self.is_being_released(view, spot.lock) {
                continue;
            }
            self.enter(at);
        }
    }

    fn is_being_released(&self, view: View<'_>, lock: usize) -> bool {
        let sort = view.gathering.locks[lock].0;
        let idle = self.spots.iter().any(|spot| {
            let excludes = Want::new("", view.gathering.locks[spot.lock].0).excludes(&Want::new("", sort));
            spot.is_kept && spot.status == Some(Status::Releasing) && excludes
        });
        idle || self.held(view.gathering).releases(role(view.gathering, lock)).next().is_some()
    }

    /// An attempt gets a session.
    fn enter(&mut self, at: usize) {
        self.serial += 1;
        let mark = (u128::from(self.serial) << 8) + self.number as u128 + 1;
        let spot = &mut self.spots[at];
        spot.has_set_out = true;
        spot.attempt.handle_session(self.session, TIMEOUT / 10, Uuid::from_random(mark.reverse_bits()));
    }

    fn grant(
        &mut self,
        view: View<'_>,
        lock: usize,
        turn: TurnId,
        place: PlaceId,
        owner: u8,
        is_bound: bool,
    ) {
        self.turns.push(Granted { lock, turn, place, owner, is_bound, holds: 0 });
        let in_a_row = view.gathering.locks[lock].1.turns;
        let latest_call = self.people.iter().map(|person| match person {
            Person::Waits { caller, .. } | Person::Holds { caller, .. } => *caller,
            Person::Away(_) | Person::Asked(_) => CallerId(0),
        });
        let latest_call = latest_call.max().unwrap_or(CallerId(0));
        let Some(spot) = self.spot_mut(lock, place) else {
            return self.violate("passed on", format!("{place:?} is taken, and it is gone"));
        };
        let again = std::mem::replace(&mut spot.was_taken, true);
        if !again {
            spot.latest_call = latest_call;
        }
        spot.since_wanted = spot.since_wanted.map(|taken| taken + u8::from(again));
        // One had it when the process was told.
        let are_too_many = spot.since_wanted.is_some_and(|taken| u32::from(taken) >= in_a_row) && again;
        let (is_held, is_unsettled, is_given_up) =
            (spot.status == Some(Status::Held), spot.is_unsettled, spot.is_given_up);
        if are_too_many {
            self.violate("turns", format!("{place:?} is taken more than {in_a_row} times in a row"));
        }
        if again && (!is_held || is_given_up) {
            self.violate("passed on", format!("{place:?} is taken after its end"));
        }
        if is_unsettled {
            self.violate("unsettled", format!("{place:?} is taken while a write may be under way"));
        }
    }

    fn hold(&mut self, lock: usize, turn: TurnId) {
        match self.turn_mut(lock, turn) {
            Some(granted) => granted.holds += 1,
            None => self.violate("own turn", format!("{turn:?} was never granted")),
        }
    }

    /// Of those who wait, the first comes first. One that shares a turn of its own does not count.
    fn judge_order(&mut self, view: View<'_>, lock: usize, granted: CallerId, is_first: bool) {
        let sort = Want::new("", view.gathering.locks[lock].0);
        let is_ahead = |(person, caller): &(usize, CallerId)| {
            view.plan(self.number, *person).patience == Patience::Waits && *caller < granted
        };
        let ahead = self.waiters(view, lock).find(is_ahead);
        if let Some((person, _)) = ahead.filter(|_| is_first && sort.excludes(&sort)) {
            self.violate("order", format!("{granted:?} comes before person {person}"));
        }
    }

    /// Lets the attempts say what they have to say, and send what they have to send.
    pub(crate) fn poll(&mut self, view: View<'_>) {
        let mut at = 0;
        while at < self.spots.len() {
            let spot = &mut self.spots[at];
            let (lock, place) = (spot.lock, spot.place);
            if let Some(verdict) = spot.attempt.poll_verdict() {
                self.hear(view, at, verdict);
                at = 0;
                continue;
            }
            let may_send = !self.flights.iter().any(|flight| (flight.lock, flight.place) == (lock, place));
            let spot = &mut self.spots[at];
            if let Some(operations) = may_send.then(|| spot.attempt.poll_flight()).flatten() {
                spot.watches.clear();
                self.flights.push_back(Flight { lock, place, operations, sent: view.now, outcomes: None });
            }
            at += 1;
        }
        self.end(view);
    }

    fn hear(&mut self, view: View<'_>, at: usize, verdict: Verdict) {
        let spot = &mut self.spots[at];
        let (lock, place) = (spot.lock, spot.place);
        match verdict {
            Verdict::Granted { nodes, .. } => {
                spot.status = Some(if spot.is_given_up { Status::Releasing } else { Status::Held });
                spot.node = nodes[0].clone();
                self.call(lock, |callers, trust| callers.handle_entered(place, trust, view.now));
            }
            Verdict::Failed(refusal) => {
                spot.was_refused = true;
                match refusal {
                    Refusal::Busy => self.locks[lock].handle_busy(place),
                    _ => self.locks[lock].handle_failed(place),
                }
            }
            Verdict::Wanted => {
                spot.since_wanted = spot.since_wanted.or(Some(0));
                self.locks[lock].handle_wanted(place);
            }
            Verdict::Deleted => {
                if let Some(status) = &mut spot.status {
                    status.lose(LossReason::NodeDeleted);
                }
            }
        }
        self.act(view, None);
    }

    /// Forgets the attempts of which nothing is left.
    fn end(&mut self, view: View<'_>) {
        let flies = |spot: &Spot| {
            self.flights.iter().any(|flight| (flight.lock, flight.place) == (spot.lock, spot.place))
        };
        let is_over = |spot: &Spot| {
            let has_ended = spot.has_left || spot.was_refused;
            has_ended && !flies(spot) && (spot.attempt.is_gone() || !spot.has_set_out)
        };
        let Some(at) = self.spots.iter().position(is_over) else { return };
        let mut spot = self.spots.remove(at);
        let since = spot.attempt.busy_since();
        if let Some(since) = since {
            let watch = spot.watches.pop();
            let lock = spot.lock;
            self.memory = Some(Recollection { lock, session: self.session, since, watch, is_told: false });
        }
        let remembered = since.map(|since| Remembered::new(self.session, since));
        self.locks[spot.lock].handle_ended(spot.place, remembered, view.now);
        self.act(view, None);
    }

    /// Whether the task of this attempt has to leave.
    pub(crate) fn must_leave(spot: &Spot) -> bool {
        !spot.has_left && !spot.was_refused && (spot.is_given_up || spot.has_heard_of_loss)
    }

    pub(crate) fn withdraw(&mut self, view: View<'_>, at: usize) {
        let spot = &mut self.spots[at];
        let (lock, place) = (spot.lock, spot.place);
        spot.has_left = true;
        spot.attempt.handle_end();
        self.poll(view);
        self.locks[lock].handle_left(place, view.now);
    }

    /// Whether the task of this attempt has yet to learn of a loss.
    pub(crate) fn has_loss_to_hear(spot: &Spot) -> bool {
        matches!(spot.status, Some(Status::Lost(_))) && !spot.has_heard_of_loss
    }

    pub(crate) fn hear_of_loss(&mut self, at: usize) {
        let spot = &mut self.spots[at];
        spot.has_heard_of_loss = true;
        let (lock, place) = (spot.lock, spot.place);
        self.locks[lock].handle_lost(place);
    }

    /// A hold is lost: its lease has lapsed.
    pub(crate) fn lose(&mut self, at: usize) {
        if let Some(status) = &mut self.spots[at].status {
            status.lose(LossReason::LeaseLapsed);
        }
    }

    /// Replies arrive, or nothing is known of them.
    pub(crate) fn receive(&mut self, view: View<'_>, is_known: bool) {
        let Some(flight) = self.flights.pop_front() else { return };
        let count = flight.operations.len();
        let outcomes = flight.outcomes.filter(|_| is_known).unwrap_or(vec![Outcome::Unknown; count]);
        if let Some(spot) = self.spot_mut(flight.lock, flight.place) {
            if !is_known {
                spot.watches.clear();
            }
            spot.attempt.handle_replies(outcomes, flight.sent, view.now());
        }
    }

    /// A watch of this attempt fires.
    pub(crate) fn tell(&mut self, view: View<'_>, at: usize) {
        let spot = &mut self.spots[at];
        let Some((event, _)) = spot.watches.iter().find_map(|watch| watch.fired) else { return };
        spot.watches.clear();
        spot.attempt.handle_watch(event, view.now());
    }

    pub(crate) fn tell_memory(&mut self) {
        let Some(memory) = &mut self.memory else { return };
        memory.is_told = true;
        memory.watch = None;
        self.locks[memory.lock].handle_watch();
    }

    pub(crate) fn resume(&mut self, at: usize) {
        let attempt = &mut self.spots[at].attempt;
        let until = attempt.poll_timeout().unwrap_or_default();
        attempt.handle_timeout(until);
    }

    /// A check comes back.
    pub(crate) fn check(&mut self, view: View<'_>, is_answered: bool) {
        let (lock, place) = self.proving.remove(0);
        self.is_unproven &= !is_answered;
        self.call(lock, |callers, trust| callers.handle_checked(place, trust, view.now));
    }

    pub(crate) fn time_out(&mut self, view: View<'_>, lock: usize) {
        self.call(lock, |callers, trust| callers.handle_timeout(trust, view.now));
    }

    pub(crate) fn desert(&mut self) {
        self.is_deserted = true;
        self.locks.iter_mut().for_each(Callers::handle_deserted);
    }

    /// Its client is closed, and with it the session.
    pub(crate) fn close(&mut self, ensemble: &mut Ensemble) {
        let session = self.session;
        ensemble.delete(|_, child| child.owner.session == session);
        self.is_deserted = true;
        self.flights.clear();
        self.locks.iter_mut().for_each(Callers::handle_closed);
        for spot in &mut self.spots {
            spot.watches.clear();
            spot.attempt.handle_session_over();
            spot.attempt.handle_end();
            if let Some(status) = &mut spot.status {
                status.abandon();
            } else if !spot.is_given_up && !spot.was_refused {
                (spot.was_refused, spot.has_set_out) = (true, true);
                self.locks[spot.lock].handle_failed(spot.place);
            }
        }
    }

    /// Its session ends, and the next one begins.
    pub(crate) fn expire(&mut self, view: View<'_>, ensemble: &mut Ensemble) {
        let session = self.session;
        ensemble.delete(|_, child| child.owner.session == session);
        self.session += 1;
        self.flights.clear();
        self.lease = Lease::new(TIMEOUT, view.now);
        for at in 0..self.spots.len() {
            let spot = &mut self.spots[at];
            if let Some(status) = &mut spot.status {
                if !status.lose(LossReason::SessionExpired) && *status == Status::Releasing {
                    *status = Status::Released;
                }
            }
            spot.watches.clear();
            if spot.has_set_out && !spot.attempt.is_gone() {
                spot.attempt.handle_session_over();
                if spot.attempt.is_idle() {
                    self.enter(at);
                }
            }
        }
    }

    /// Checks that a holder knows of those who have come since, while nobody does anything but hold.
    pub(crate) fn check_told(&self, view: View<'_>) -> Result<(), Violation> {
        for spot in self.spots.iter().filter(|spot| spot.status == Some(Status::Held) && !spot.is_wanted) {
            let sort = Want::new("", view.gathering.locks[spot.lock].0);
            let mut waiters = self.waiters(view, spot.lock);
            let is_used = (0..self.people.len()).any(|person| {
                self.holding(view, person)
                    .is_some_and(|other| (other.lock, other.place) == (spot.lock, spot.place))
            });
            let came_since = |(_, caller)| spot.is_kept || caller > spot.latest_call;
            if is_used && sort.excludes(&sort) && waiters.any(came_since) {
                let detail = format!("the holder of {:?} does not know who waits", spot.place);
                return Err(self.wrong("wanted", detail));
            }
        }
        Ok(())
    }

    /// Checks that the next caller has queued, while nobody does anything but hold, unless it will take over the node.
    pub(crate) fn check_next(&self, view: View<'_>) -> Result<(), Violation> {
        for (lock, (sort, passes)) in view.gathering.locks.iter().enumerate() {
            let has_turns = |spot: &Spot| {
                let is_spent = spot.since_wanted.is_some_and(|taken| u32::from(taken) + 1 >= passes.turns);
                spot.is_kept && spot.status == Some(Status::Held) && !is_spent
            };
            let will_do = |spot: &Spot| spot.lock == lock && (spot.status.is_none() || has_turns(spot));
            let is_queue = matches!(sort, Sort::Mutex | Sort::Write);
            if is_queue && self.waiters(view, lock).next().is_some() && !self.spots.iter().any(will_do) {
                let detail = format!("nobody has queued for those who wait for lock {lock}");
                return Err(self.wrong("next", detail));
            }
        }
        Ok(())
    }

    /// Checks that nobody waits any more, and that nothing is left but a node that lingers.
    pub(crate) fn check_end(&self, gathering: &Gathering) -> Result<(), Violation> {
        let violation = |property, detail| Err(self.wrong(property, detail));
        if let Some(person) = self.people.iter().position(|person| matches!(person, Person::Waits { .. })) {
            return violation("lost wake-up", format!("person {person} waits, and nothing happens any more"));
        }
        let may_linger = |spot: &Spot| {
            let is_kept = self.locks[spot.lock].kept() == Some(spot.place) && spot.is_kept;
            is_kept
                && spot.status == Some(Status::Held)
                && !gathering.locks[spot.lock].1.linger.is_zero()
                && !self.is_deserted
        };
        if let Some(spot) = self.spots.iter().find(|spot| !may_linger(spot)) {
            return violation("nothing owed", format!("{:?} of lock {} is left", spot.place, spot.lock));
        }
        if let Some(turn) = self.turns.first() {
            return violation("nothing owed", format!("{:?} of lock {} is left", turn.turn, turn.lock));
        }
        match self.locks.iter().find(|lock| !lock.is_unused() && lock.kept().is_none()) {
            Some(lock) => violation("nothing owed", format!("{lock:?}")),
            None => Ok(()),
        }
    }

    /// Whether all who have this place have it by one turn.
    pub(crate) fn has_one_turn(&self, spot: &Spot) -> bool {
        let is_its = |turn: &&Granted| turn.holds > 0 && (turn.lock, turn.place) == (spot.lock, spot.place);
        self.turns.iter().filter(is_its).count() == 1
    }

    pub(crate) fn is_within(spot: &Spot, node: &str) -> bool {
        spot.within.as_deref().is_some_and(|name| node.ends_with(name))
    }
}

fn role(gathering: &Gathering, lock: usize) -> Role {
    gathering.claim(lock).scheme.role()
}

/// It is the same in all states of a world.
pub(crate) type Shared = Rc<Gathering>;
