//! Processes with several callers each, which want the same path: the machine of a process's callers, together with the
//! machines of their attempts.
//!
//! Other cases show how an attempt copes with servers that lag or lose replies in the middle. Here the servers do a flight at
//! once, and show only the latest state. What is explored is everything in between: who calls, gives up and releases when.

use super::ensemble::{Ensemble, Owner};
use super::explorer::{Actions, Violation, World, possible};
use super::machine::Moment;
use super::machine::claim::Claim;
use super::machine::protocol::Patience;
use super::machine::status::Status;
use super::machine::turns::Passing;
use super::process::{Person, Process, Shared, Spot, View};
use super::server::{Shown, write};
use super::subject::{Sort, Want};
use super::trouble::budget;
use super::watch::Watch;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

/// The directory that all want.
pub(crate) const PATH: &str = "/a";

/// A heartbeat, after which what was seen before is no longer believed.
const STEP: u64 = 1_000;

/// Time for which only a node lingers.
const LONG: Duration = Duration::from_secs(100);

/// The plan of one caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// The lock that it calls for, by its number.
    pub(crate) lock: usize,
    pub(crate) owner: u8,
    pub(crate) is_reentrant: bool,
    pub(crate) patience: Patience,
    /// How often it calls.
    pub(crate) times: u8,
    /// Whether a write that it guards may still be under way when it releases.
    pub(crate) writes: bool,
}

budget! {
    /// How often each thing may still happen.
    Mishaps {
        /// Callers that go away, before they have their answer or as they get it.
        cancels,
        /// Flights whose replies are lost.
        losses,
        /// Holds that are lost.
        lapses,
        expiries,
        /// Times that a process's nodes have to be confirmed again, and checks without an answer.
        doubts,
        /// Heartbeats.
        steps,
        /// Nodes that have lingered for long enough.
        timeouts,
        /// Processes whose last handle is dropped.
        deserts,
        /// Clients that are closed.
        closes,
    }
}

/// One configuration.
#[derive(Clone, Debug)]
pub(crate) struct Gathering {
    pub(crate) name: &'static str,
    /// The locks of each process, all at one path.
    pub(crate) locks: Vec<(Sort, Passing)>,
    /// The callers of each process.
    pub(crate) processes: Vec<Vec<Plan>>,
    /// Whether an owner does one thing at a time: while one of its calls waits, it does not call again.
    pub(crate) is_sequential: bool,
    /// Whether an owner releases nothing while one of its calls waits.
    pub(crate) keeps_all: bool,
    /// Whether things can happen between the moment when a call finds nothing at once and that when it queues.
    pub(crate) is_apart: bool,
    pub(crate) mishaps: Mishaps,
}

impl Gathering {
    /// The claim of the lock with this number.
    pub(crate) fn claim(&self, lock: usize) -> Claim {
        Want::new(PATH, self.locks[lock].0).claim()
    }
}

/// Something that can happen. The first number is the process's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// This person calls.
    Join(u8, u8),
    /// It has found nothing at once, and queues.
    Queue(u8, u8),
    /// It gives up, or has gone as it gets its answer.
    Leave(u8, u8),
    Release(u8, u8),
    /// The servers execute the next requests.
    Execute(u8),
    Deliver(u8),
    /// The replies are lost.
    Garble(u8),
    /// A watch of this attempt fires.
    Tell(u8, u8),
    /// The watch of a try fires.
    Remind(u8),
    /// The pause of this attempt is over.
    Resume(u8, u8),
    /// The task of this attempt leaves.
    Withdraw(u8, u8),
    /// The task of this attempt hears that its hold is lost.
    Hear(u8, u8),
    /// A check is answered, or not.
    Check(u8, bool),
    /// The time of this lock is over.
    TimeOut(u8, u8),
    Doubt(u8),
    Lapse(u8, u8),
    Expire(u8),
    Desert(u8),
    Close(u8),
    Step,
}

#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    gathering: Shared,
    ensemble: Ensemble,
    processes: Vec<Process>,
    mishaps: Mishaps,
    millis: u64,
}

/// One holder, as the properties see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Holder {
    process: usize,
    owner: u8,
}

impl Hash for Crowd {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.ensemble, &self.processes, self.mishaps, self.millis).hash(state);
    }
}

impl Crowd {
    pub(crate) fn new(gathering: &Gathering) -> Self {
        let numbers = 0..gathering.processes.len();
        Self {
            gathering: Rc::new(gathering.clone()),
            ensemble: Ensemble::new(&[PATH], Some(0), None),
            processes: numbers.map(|number| Process::new(number, gathering)).collect(),
            mishaps: gathering.mishaps,
            millis: STEP,
        }
    }

    fn now(&self) -> Moment {
        Moment::at(Duration::from_millis(self.millis))
    }

    fn add_people(&self, number: usize, actions: &mut Actions<Event>) {
        let (process, plans) = (&self.processes[number], &self.gathering.processes[number]);
        let at = number as u8;
        for (person, plan) in plans.iter().enumerate() {
            let is_waiting = plans.iter().zip(&process.people).enumerate().any(|(other, (its, state))| {
                other != person && its.owner == plan.owner && matches!(state, Person::Waits { .. })
            });
            let (may_call, may_release) =
                (!self.gathering.is_sequential || !is_waiting, !self.gathering.keeps_all || !is_waiting);
            let index = person as u8;
            match process.people[person] {
                Person::Away(left) if left > 0 && may_call => {
                    // People that are interchangeable call for the first time in this order.
                    let is_first = left == plan.times;
                    let is_before = |other: usize| {
                        is_first
                            && are_alike(&plans[other], plan)
                            && process.people[other] == Person::Away(left)
                    };
                    // One at a time holds and calls again, if it is sequential.
                    let is_inside = |other: usize| {
                        plans[other].owner == plan.owner
                            && matches!(process.people[other], Person::Holds { .. })
                    };
                    let is_out_of_turn = self.gathering.is_sequential
                        && (0..person).any(|other| plans[other].owner == plan.owner)
                        && !(0..person).any(is_inside);
                    let was_inside = |other: usize| matches!(process.people[other], Person::Away(0));
                    let has_missed =
                        (0..person).any(|other| plans[other].owner == plan.owner && was_inside(other));
                    if !(0..person).any(is_before) && (!is_out_of_turn || has_missed) {
                        actions.progress.push(Event::Join(at, index));
                    }
                }
                Person::Asked(_) => actions.progress.push(Event::Queue(at, index)),
                Person::Waits { .. } if self.mishaps.cancels > 0 => {
                    actions.faults.push(Event::Leave(at, index));
                }
                Person::Holds { caller, .. } if may_release => {
                    actions.progress.push(Event::Release(at, index));
                    if self.mishaps.cancels > 0 && caller.0 > 0 {
                        actions.faults.push(Event::Leave(at, index));
                    }
                }
                _ => {}
            }
        }
    }

    fn add_spots(&self, number: usize, actions: &mut Actions<Event>) {
        let process = &self.processes[number];
        let at = number as u8;
        for (index, spot) in (0..).zip(&process.spots) {
            let flies = process.flights.iter().any(|it| (it.lock, it.place) == (spot.lock, spot.place));
            let has_fired = spot.watches.iter().any(|watch| watch.fired.is_some());
            actions.progress.extend(possible([
                (Event::Tell(at, index), has_fired && !flies),
                // A waiter also looks again after some time. That is only needed if no watch can fire.
                (
                    Event::Resume(at, index),
                    spot.attempt.poll_timeout().is_some() && !spot.attempt.is_waiting(),
                ),
                (Event::Withdraw(at, index), Process::must_leave(spot)),
                (Event::Hear(at, index), Process::has_loss_to_hear(spot)),
            ]));
            if self.mishaps.lapses > 0 && spot.status == Some(Status::Held) {
                actions.faults.push(Event::Lapse(at, index));
            }
        }
    }

    fn add_others(&self, number: usize, actions: &mut Actions<Event>) {
        let Actions { progress, faults } = actions;
        let process = &self.processes[number];
        let at = number as u8;
        if process.flights.iter().any(|flight| flight.outcomes.is_none()) {
            progress.push(Event::Execute(at));
        }
        if let Some(first) = process.flights.front() {
            if first.outcomes.is_some() {
                progress.push(Event::Deliver(at));
            }
            if self.mishaps.losses > 0 {
                faults.push(Event::Garble(at));
            }
        }
        let is_fired = |watch: &Watch| watch.fired.is_some();
        if process.memory.as_ref().and_then(|memory| memory.watch.as_ref()).is_some_and(is_fired) {
            progress.push(Event::Remind(at));
        }
        if !process.proving.is_empty() {
            progress.push(Event::Check(at, true));
            if self.mishaps.doubts > 0 {
                faults.push(Event::Check(at, false));
            }
        }
        for (index, lock) in (0..).zip(&process.locks) {
            let Some(due) = lock.poll_timeout() else { continue };
            if due.since(self.now()) < LONG {
                progress.push(Event::TimeOut(at, index));
            } else if self.mishaps.timeouts > 0 {
                faults.push(Event::TimeOut(at, index));
            }
        }
        let Mishaps { doubts, expiries, deserts, closes, .. } = self.mishaps;
        let is_kept = process.spots.iter().any(|spot| spot.is_kept);
        faults.extend(possible([
            (Event::Doubt(at), doubts > 0 && !process.is_unproven && is_kept),
            (Event::Expire(at), expiries > 0 && (!process.spots.is_empty() || process.memory.is_some())),
            (Event::Desert(at), deserts > 0 && !process.is_deserted),
            (Event::Close(at), closes > 0 && !process.is_deserted),
        ]));
    }

    /// The server executes the oldest requests of a process that it has not executed.
    fn execute(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let Some(at) = process.flights.iter().position(|flight| flight.outcomes.is_none()) else { return };
        let flight = process.flights[at].clone();
        let owner = Owner { session: process.session, client: number, attempt: flight.place.0 as u8 };
        let mut outcomes = Vec::new();
        for operation in &flight.operations {
            let shown = Shown { tree: self.ensemble.head(), ghosts: &[] };
            let (outcome, watched) = shown
                .read(operation, owner.session)
                .unwrap_or_else(|| (write(&mut self.ensemble, operation, owner, false, true), None));
            let views = self.ensemble.views(self.ensemble.zxid());
            let watch = watched.and_then(|target| Watch::new(target, views));
            let is_its = |spot: &&mut Spot| (spot.lock, spot.place) == (flight.lock, flight.place);
            if let Some(spot) = process.spots.iter_mut().find(is_its) {
                spot.watches.extend(watch);
            }
            outcomes.push(outcome);
        }
        process.flights[at].outcomes = Some(outcomes);
    }

    /// Lets the watches see the new state.
    fn look(&mut self) {
        let zxid = self.ensemble.zxid();
        for process in &mut self.processes {
            let of_try = process.memory.iter_mut().filter_map(|memory| memory.watch.as_mut());
            let watches = process.spots.iter_mut().flat_map(|spot| &mut spot.watches).chain(of_try);
            for watch in watches {
                watch.look(self.ensemble.head(), zxid);
            }
        }
        self.ensemble.forget_before(zxid);
    }

    /// The places of all good holds, each with the sort of its lock.
    fn holds(&self) -> Vec<(Holder, &Spot, Want)> {
        let mut holds = Vec::new();
        for process in &self.processes {
            for person in 0..process.people.len() {
                if let Some(spot) = process.holding(self.view(), person) {
                    let holder = Holder {
                        process: process.number,
                        owner: self.gathering.processes[process.number][person].owner,
                    };
                    holds.push((holder, spot, Want::new(PATH, self.gathering.locks[spot.lock].0)));
                }
            }
        }
        holds
    }

    fn view(&self) -> View<'_> {
        View { gathering: &self.gathering, now: self.now() }
    }

    /// Whether one of the two is inside the other, which is its owner's.
    fn are_one(one: (Holder, &Spot), other: (Holder, &Spot)) -> bool {
        let is_within = Process::is_within(one.1, &other.1.node) || Process::is_within(other.1, &one.1.node);
        one.0 == other.0 && is_within
    }

    /// Whether two people share one turn.
    fn share(&self) -> Result<(), Violation> {
        for process in &self.processes {
            let plans = &self.gathering.processes[process.number];
            for (person, plan) in plans.iter().enumerate() {
                let Person::Holds { turn, .. } = process.people[person] else { continue };
                let is_same = |other: &usize| {
                    let same = plans[*other].lock == plan.lock && plans[*other].owner != plan.owner;
                    same && matches!(process.people[*other], Person::Holds { turn: its, .. } if its == turn)
                };
                if let Some(other) = (0..plans.len()).find(is_same) {
                    let detail = format!("process {}: {person} and {other} have one turn", process.number);
                    return Err(Violation { property: "own turn", detail });
                }
            }
        }
        Ok(())
    }
}

impl World for Crowd {
    type Action = Event;

    fn actions(&self) -> Actions<Event> {
        let mut actions = Actions { progress: Vec::new(), faults: Vec::new() };
        for number in 0..self.processes.len() {
            self.add_people(number, &mut actions);
            self.add_spots(number, &mut actions);
            self.add_others(number, &mut actions);
        }
        if self.mishaps.steps > 0 {
            actions.faults.push(Event::Step);
        }
        actions
    }

    fn apply(&mut self, action: Event) {
        use Event as E;
        let gathering = self.gathering.clone();
        if let E::TimeOut(number, lock) = action {
            let due = self.processes[usize::from(number)].locks[usize::from(lock)].poll_timeout();
            if let Some(due) = due.filter(|due| *due > self.now()) {
                self.millis += due.since(self.now()).as_millis() as u64;
            }
        }
        let view = View { gathering: &gathering, now: self.now() };
        let mishaps = &mut self.mishaps;
        let spent = match action {
            E::Leave(..) => Some(&mut mishaps.cancels),
            E::Garble(_) => Some(&mut mishaps.losses),
            E::Check(_, false) | E::Doubt(_) => Some(&mut mishaps.doubts),
            E::Lapse(..) => Some(&mut mishaps.lapses),
            E::Expire(_) => Some(&mut mishaps.expiries),
            E::Desert(_) => Some(&mut mishaps.deserts),
            E::Close(_) => Some(&mut mishaps.closes),
            E::Step => Some(&mut mishaps.steps),
            _ => None,
        };
        spent.into_iter().for_each(|spent| *spent -= 1);
        match action {
            E::Join(number, person) => self.processes[usize::from(number)].join(view, person.into()),
            E::Queue(number, person) => self.processes[usize::from(number)].queue(view, person.into()),
            E::Leave(number, person) => self.processes[usize::from(number)].leave(view, person.into()),
            E::Release(number, person) => self.processes[usize::from(number)].release(view, person.into()),
            E::Execute(number) => self.execute(number.into()),
            E::Deliver(number) => self.processes[usize::from(number)].receive(view, true),
            E::Garble(number) => self.processes[usize::from(number)].receive(view, false),
            E::Tell(number, spot) => self.processes[usize::from(number)].tell(view, spot.into()),
            E::Remind(number) => self.processes[usize::from(number)].tell_memory(),
            E::Resume(number, spot) => self.processes[usize::from(number)].resume(spot.into()),
            E::Withdraw(number, spot) => self.processes[usize::from(number)].withdraw(view, spot.into()),
            E::Hear(number, spot) => self.processes[usize::from(number)].hear_of_loss(spot.into()),
            E::Check(number, is_answered) => self.processes[usize::from(number)].check(view, is_answered),
            E::TimeOut(number, lock) => {
                let process = &mut self.processes[usize::from(number)];
                let is_due = process.locks[usize::from(lock)].poll_timeout().is_some();
                let lingers = is_due && process.spots.iter().any(|spot| spot.is_kept);
                mishaps.timeouts = mishaps.timeouts.saturating_sub(u8::from(lingers));
                process.time_out(view, lock.into());
            }
            E::Doubt(number) => self.processes[usize::from(number)].is_unproven = true,
            E::Lapse(number, spot) => self.processes[usize::from(number)].lose(spot.into()),
            E::Expire(number) => self.processes[usize::from(number)].expire(view, &mut self.ensemble),
            E::Desert(number) => self.processes[usize::from(number)].desert(),
            E::Close(number) => self.processes[usize::from(number)].close(&mut self.ensemble),
            E::Step => self.millis += STEP,
        }
        self.processes.iter_mut().for_each(|process| process.act(view, None));
        self.look();
    }

    fn describe(&self, action: Event) -> String {
        let flights = |number: u8| &self.processes[usize::from(number)].flights;
        match action {
            Event::Execute(number) => {
                let next = flights(number).iter().find(|flight| flight.outcomes.is_none());
                format!("{action:?} {:?}", next.map(|flight| (flight.place, &flight.operations)))
            }
            Event::Deliver(number) => {
                let next = flights(number).front();
                format!("{action:?} {:?}", next.map(|flight| (flight.place, &flight.outcomes)))
            }
            _ => format!("{action:?}"),
        }
    }

    fn check(&self) -> Result<(), Violation> {
        if let Some(violation) = self.processes.iter().find_map(|process| process.violation.clone()) {
            return Err(violation);
        }
        let holds = self.holds();
        for (number, (holder, spot, want)) in holds.iter().enumerate() {
            for (other, its, wants) in &holds[number + 1..] {
                let is_own = Self::are_one((*holder, spot), (*other, its));
                let is_same = holder.process == other.process;
                let is_shared = is_same && self.is_one_turn(holder.process, spot, its);
                if want.excludes(wants) && !is_own && !is_shared {
                    let detail = format!("{} of {holder:?} and {} of {other:?}", spot.node, its.node);
                    return Err(Violation { property: "exclusive", detail });
                }
            }
        }
        self.share()
    }

    fn check_at_rest(&self, progress: &[Event]) -> Result<(), Violation> {
        if progress.is_empty() {
            let ends = |process: &Process| process.check_end(&self.gathering);
            self.processes.iter().try_for_each(ends)
        } else if progress.iter().all(|event| matches!(event, Event::Release(..))) {
            self.processes.iter().try_for_each(|process| {
                process.check_told(self.view())?;
                process.check_next(self.view())
            })
        } else {
            Ok(())
        }
    }
}

impl Crowd {
    /// Whether everybody who has this place has it by one turn.
    fn is_one_turn(&self, process: usize, one: &Spot, other: &Spot) -> bool {
        (one.lock, one.place) == (other.lock, other.place) && self.processes[process].has_one_turn(one)
    }
}

fn are_alike(one: &Plan, other: &Plan) -> bool {
    Plan { owner: 0, ..*one } == Plan { owner: 0, ..*other }
}
