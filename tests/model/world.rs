//! The ensemble, the clients around the shipped machine, and what can happen to them.

use super::action::Action;
use super::client::{Caller, Client, Session};
use super::ensemble::{Ensemble, Watch};
use super::explorer::{Actions, Violation, World};
use super::machine::Moment;
use super::machine::exchange::{Node, Operation, Origin, Outcome, Refusal, Verdict, WatchEvent};
use super::setup::{Clock, Faults, Setup, TIMEOUT};
use super::subject::Machine;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) setup: Rc<Setup>,
    pub(crate) ensemble: Ensemble,
    pub(crate) clients: Vec<Client>,
    /// What may still go wrong.
    faults: Faults,
    ticks: u8,
    /// The token of the latest grant whose node was there.
    pub(crate) last_token: i64,
    pub(crate) violation: Option<Violation>,
}

impl Hash for Scene {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ensemble.hash(state);
        self.clients.hash(state);
        self.faults.hash(state);
        (self.ticks, self.last_token, &self.violation).hash(state);
    }
}

impl Scene {
    pub(crate) fn new(setup: &Setup, machine: &'static Machine) -> Self {
        let mut clients = vec![Client::new(machine, setup.patience); setup.clients];
        for (number, client) in clients.iter_mut().enumerate() {
            client.open(number, Moment::default(), 1, 1);
            client.poll(Moment::default());
        }
        Self {
            setup: Rc::new(setup.clone()),
            ensemble: Ensemble::new(setup.parent.is_some(), setup.parent.unwrap_or(0)),
            clients,
            faults: setup.faults,
            ticks: 0,
            last_token: 0,
            violation: None,
        }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment::at(Duration::from_secs(u64::from(self.ticks)))
    }

    pub(crate) fn violate(&mut self, property: &'static str, detail: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { property, detail });
        }
    }

    /// Whether the session may have ended on the leader.
    fn may_expire(&self, session: &Session) -> bool {
        // The leader itself has seen the opening; of writes it may have been told a quarter late.
        let opened = self.now().since(session.opened);
        let silent = self.now().since(session.touched);
        let over = opened >= TIMEOUT && silent >= TIMEOUT - TIMEOUT / 4;
        session.expired.is_none() && (self.setup.clock == Clock::Leaps || over)
    }

    fn add_actions_of(&self, number: u8, client: &Client, actions: &mut Actions<Action>) {
        let Actions { progress, faults } = actions;
        if client.contender.is_idle() && client.session.is_none() {
            progress.push(Action::Open(number));
        }
        if client.contender.is_gone()
            && client.caller == Caller::Ended
            && client.attempt < self.setup.attempts
        {
            progress.push(Action::TryAgain(number));
        }
        match client.next_operation() {
            Some(Operation::List | Operation::Inspect { .. } | Operation::Watch { .. }) => {
                let views = self.ensemble.views(client.floor).len();
                progress.extend((0..views).map(|view| Action::Execute(number, view as u8)));
            }
            Some(_) => progress.push(Action::Execute(number, 0)),
            None => {}
        }
        if let Some(flight) = &client.flight {
            if flight.replies.len() == flight.operations.len() {
                progress.push(Action::Deliver(number));
            }
        } else if !client.is_down && client.watch.as_ref().is_some_and(|watch| watch.fired.is_some()) {
            progress.push(Action::Tell(number));
        }
        if client.is_down && client.session.as_ref().is_some_and(|session| session.expired.is_none()) {
            progress.push(Action::Connect(number));
        }
        if client.contender.poll_timeout().is_some() {
            progress.push(Action::Resume(number));
        }
        if matches!(client.caller, Caller::Holds(_)) {
            progress.push(Action::Release(number));
        }
        if client.session.as_ref().is_some_and(|session| session.expired.is_some()) {
            progress.push(Action::Learn(number));
        }
        self.add_faults_of(number, client, faults);
    }

    fn add_faults_of(&self, number: u8, client: &Client, faults: &mut Vec<Action>) {
        let session = client.session.as_ref();
        if let (Some(flight), true) = (&client.flight, self.faults.losses > 0) {
            let executed = flight.replies.len() as u8;
            let at_most = executed.min(flight.operations.len() as u8 - 1);
            faults.extend((0..=at_most).map(|known| Action::Lose(number, known)));
            if flight.replies.len() < flight.operations.len()
                && session.is_some_and(|it| it.expired.is_none())
            {
                faults.extend((0..=executed).map(|known| Action::GiveUp(number, known)));
            }
        } else if client.watch.is_some() && !client.is_down && self.faults.losses > 0 {
            faults.push(Action::Lose(number, 0));
        }
        let next = client.next_operation();
        let enters = client.late.is_empty() && matches!(next, Some(Operation::Create { .. }));
        if self.faults.twins > 0 && enters && self.ensemble.head().exists {
            faults.push(Action::Twin(number));
        }
        if self.faults.refusals > 0 && client.late.is_empty() && next.is_some() {
            faults.push(Action::Refuse(number));
        }
        if self.faults.cancels > 0 && client.caller == Caller::Wants {
            faults.push(Action::Cancel(number));
        }
        if self.faults.expiries > 0 && session.is_some_and(|session| self.may_expire(session)) {
            faults.push(Action::Expire(number));
        }
        if self.faults.beats > 0 && client.can_beat(self.now()) {
            faults.push(Action::Beat(number));
        }
    }

    fn execute(&mut self, number: usize, view: u8) {
        let now = self.now();
        let client = &mut self.clients[number];
        let (Some(operation), Some(session)) = (client.next_operation().cloned(), &client.session) else {
            return;
        };
        let views = self.ensemble.views(client.floor);
        let read = views[usize::from(view).min(views.len() - 1)].clone();
        let owner = (number, client.attempt);
        let is_there = |name: &String| self.ensemble.head().find(name).is_some();
        let done_if = |done| if done { Outcome::Done } else { Outcome::NoNode };
        let mut reads = false;
        let outcome = match &operation {
            Operation::Create { prefix } => {
                let created = self.ensemble.create(prefix, session.id, owner);
                if created.is_some() {
                    client.removed = None;
                }
                created.map_or(Outcome::NoNode, |child| {
                    let origin = Origin { czxid: child.czxid, session: child.session };
                    Outcome::Created(Node {
                        name: child.name,
                        origin: self.setup.tells_origin.then_some(origin),
                    })
                })
            }
            Operation::CreateParents => {
                self.ensemble.create_directory();
                Outcome::Done
            }
            Operation::Sync => Outcome::Done,
            Operation::Check { name } => done_if(is_there(name)),
            Operation::Delete { name } => done_if(self.ensemble.delete(|child| child.name == *name)),
            Operation::List => {
                reads = true;
                if read.1.exists { Outcome::Children(read.1.names()) } else { Outcome::NoNode }
            }
            Operation::Inspect { name } => {
                reads = true;
                read.1.find(name).map_or(Outcome::NoNode, |child| {
                    let origin = Some(Origin { czxid: child.czxid, session: child.session });
                    Outcome::Found(Node { name: child.name.clone(), origin })
                })
            }
            Operation::Watch { name } => {
                reads = true;
                let watch = Watch::new(name, &views[usize::from(view).min(views.len() - 1)..]);
                let outcome = done_if(watch.is_some());
                // Nobody listens to a watch that was given up.
                client.watch = watch.filter(|_| client.late.is_empty());
                outcome
            }
        };
        client.floor = if reads { client.floor.max(read.0) } else { self.ensemble.zxid() };
        let zxid = client.floor;
        client.answer(outcome, zxid);
        if let (Some(session), false) = (&mut client.session, reads) {
            session.touched = now;
        }
    }

    fn refuse(&mut self, number: usize) {
        let zxid = self.clients[number].floor;
        self.clients[number].answer(Outcome::Refused(Refusal::Denied), zxid);
    }

    /// The connection of a client that waits is lost: the watch is left again on the next server,
    /// which sees what happened meanwhile only as far as it can be seen.
    fn leave_watch_again(&mut self, number: usize) {
        let client = &mut self.clients[number];
        if let Some(watch) = &mut client.watch {
            if let Some((event, zxid)) = &mut watch.fired {
                let is_there = self.ensemble.head().find(&watch.name).is_some();
                *event = if is_there { WatchEvent::Changed } else { WatchEvent::Deleted };
                *zxid = self.ensemble.zxid();
            }
        }
    }

    fn remove(&mut self, goes: impl Fn(usize) -> bool) {
        let now = self.now();
        for (index, child) in self.ensemble.head().children.iter().enumerate() {
            let client = &mut self.clients[child.client];
            if goes(index) && client.attempt == child.attempt {
                client.removed = Some(now);
            }
        }
    }

    /// Time passes, and heartbeats are made if they are not actions of their own.
    fn step(&mut self) {
        let before = self.ticks;
        self.ticks += if self.setup.clock == Clock::Leaps { 2 } else { 1 };
        if self.setup.clock == Clock::Leaps {
            let beats: Vec<_> = (before + 1..=self.ticks)
                .map(|tick| Moment::at(Duration::from_secs(u64::from(tick))))
                .collect();
            let head = self.ensemble.head();
            for client in &mut self.clients {
                let Caller::Holds(czxid) = client.caller else { continue };
                let is_there = head.children.iter().any(|child| child.czxid == czxid);
                if client.removed.is_some() && !is_there {
                    client.end();
                } else {
                    client.beat_through(&beats);
                }
            }
        }
    }

    /// After every step: what the contenders have to say and to send, and what the watches see.
    fn settle(&mut self) {
        let now = self.now();
        for number in 0..self.clients.len() {
            if let Some(verdict) = self.clients[number].poll(now) {
                self.hear(number, verdict);
            }
        }
        let zxid = self.ensemble.zxid();
        let mut oldest = zxid;
        for client in &mut self.clients {
            if client.is_through(self.setup.attempts) && !client.will_create() {
                (client.session, client.flight, client.watch) = (None, None, None);
                client.late.clear();
                (client.seen, client.floor) = (0, 0);
            } else if client.session.is_some() {
                if let Some(watch) = &mut client.watch {
                    watch.look(self.ensemble.head(), zxid);
                }
                oldest = oldest.min(client.seen);
            }
        }
        self.ensemble.forget_before(oldest);
    }

    fn hear(&mut self, number: usize, verdict: Verdict) {
        let client = &mut self.clients[number];
        if client.caller != Caller::Wants {
            return self.violate("one answer", format!("{verdict:?} to a caller that has its answer"));
        }
        match verdict {
            Verdict::Failed(_) => client.caller = Caller::Ended,
            Verdict::Granted { name, czxid, proven } => {
                client.caller = Caller::Holds(czxid);
                if client.proof.is_none_or(|(sent, _)| proven > sent) {
                    self.violate("own node", format!("{name} was not proven at {proven:?}"));
                }
                self.judge_grant(number, &name, czxid);
            }
        }
    }
}

impl World for Scene {
    type Action = Action;

    fn actions(&self) -> Actions<Action> {
        let mut actions = Actions { progress: Vec::new(), faults: Vec::new() };
        let are_alike = self.setup.slow >= self.clients.len();
        let mut at_work = false;
        for (number, client) in (0..).zip(&self.clients) {
            let before = actions.progress.len();
            self.add_actions_of(number, client, &mut actions);
            let mut added = actions.progress[before..].iter();
            at_work |=
                usize::from(number) >= self.setup.slow && added.any(|it| *it != Action::Release(number));
            // It is enough that clients that are alike act for the first time in this order.
            if are_alike && !client.acted {
                break;
            }
        }
        let faults = &mut actions.faults;
        let children = self.ensemble.head().children.len() as u8;
        if self.faults.deletions > 0 {
            faults.extend((0..children).map(Action::Delete));
        }
        if self.faults.changes > 0 {
            faults.extend((0..children).map(Action::Change));
        }
        if self.faults.parent_deletions > 0 && self.ensemble.head().exists {
            faults.push(Action::DeleteParent);
        }
        if self.faults.steps > 0 && !at_work {
            faults.push(Action::Step);
        }
        actions
    }

    fn apply(&mut self, action: Action) {
        use Action as A;
        let now = self.now();
        if let A::Execute(number, _)
        | A::Lose(number, _)
        | A::GiveUp(number, _)
        | A::Twin(number)
        | A::Refuse(number)
        | A::Cancel(number)
        | A::Expire(number) = action
        {
            self.clients[usize::from(number)].acted = true;
        }
        match action {
            A::Execute(number, view) => self.execute(usize::from(number), view),
            A::Deliver(number) => {
                let client = &mut self.clients[usize::from(number)];
                let all = client.flight.as_ref().map_or(0, |flight| flight.operations.len());
                client.receive(all, now);
            }
            A::Tell(number) => {
                let client = &mut self.clients[usize::from(number)];
                if let Some((event, zxid)) = client.watch.as_ref().and_then(|watch| watch.fired) {
                    client.hear(event, zxid, now);
                }
            }
            A::Resume(number) => {
                // Pauses are shorter than a tick.
                let client = &mut self.clients[usize::from(number)];
                let until = client.contender.poll_timeout().unwrap_or_default();
                client.contender.handle_timeout(until);
            }
            A::Release(number) => self.clients[usize::from(number)].end(),
            A::Learn(number) => self.clients[usize::from(number)].learn(now),
            A::Connect(number) => self.clients[usize::from(number)].is_down = false,
            A::Open(number) => {
                let oldest = self.ensemble.views(0)[0].0;
                let zxid = self.ensemble.zxid();
                self.clients[usize::from(number)].open(usize::from(number), now, oldest, zxid);
            }
            A::TryAgain(number) => {
                self.clients[usize::from(number)].try_again(usize::from(number), self.setup.patience);
            }
            A::Lose(number, known) => {
                self.faults.losses -= 1;
                self.leave_watch_again(usize::from(number));
                let client = &mut self.clients[usize::from(number)];
                client.receive(usize::from(known), now);
                client.disconnect();
            }
            A::GiveUp(number, known) => {
                self.faults.losses -= 1;
                let client = &mut self.clients[usize::from(number)];
                if let Some(flight) = &client.flight {
                    client.late.extend_from_slice(&flight.operations[flight.replies.len()..]);
                }
                client.receive(usize::from(known), now);
            }
            A::Twin(number) => {
                self.faults.twins -= 1;
                let first = self.clients[usize::from(number)].next_operation().cloned();
                self.execute(usize::from(number), 0);
                let client = &mut self.clients[usize::from(number)];
                client.late.extend(first);
                self.execute(usize::from(number), 0);
                let client = &mut self.clients[usize::from(number)];
                client.receive(0, now);
                client.disconnect();
            }
            A::Refuse(number) => {
                self.faults.refusals -= 1;
                self.refuse(usize::from(number));
            }
            A::Cancel(number) => {
                self.faults.cancels -= 1;
                self.clients[usize::from(number)].end();
            }
            A::Expire(number) => {
                self.faults.expiries -= 1;
                let leaps = self.setup.clock == Clock::Leaps;
                if let Some(session) = &mut self.clients[usize::from(number)].session {
                    // Where time is real, the lease has to be over by itself.
                    session.expired = Some(if leaps { now } else { now + TIMEOUT * 100 });
                    let id = session.id;
                    self.ensemble.delete(|child| child.session == id);
                }
            }
            A::Beat(number) => {
                self.faults.beats -= 1;
                let client = &mut self.clients[usize::from(number)];
                if let Caller::Holds(czxid) = client.caller {
                    let mut children = self.ensemble.head().children.iter();
                    let name = children.find(|child| child.czxid == czxid).map(|child| child.name.clone());
                    client.beat(name.unwrap_or_default(), now);
                }
            }
            A::Delete(index) => {
                self.faults.deletions -= 1;
                self.remove(|other| other == usize::from(index));
                let czxid = self.ensemble.head().children[usize::from(index)].czxid;
                self.ensemble.delete(|child| child.czxid == czxid);
            }
            A::DeleteParent => {
                self.faults.parent_deletions -= 1;
                self.remove(|_| true);
                self.ensemble.delete_directory();
            }
            A::Change(index) => {
                self.faults.changes -= 1;
                self.ensemble.change(usize::from(index));
            }
            A::Step => {
                self.faults.steps -= 1;
                self.step();
            }
        }
        self.settle();
    }

    fn check(&self) -> Result<(), Violation> {
        self.check_properties()
    }

    fn check_at_rest(&self) -> Result<(), Violation> {
        self.check_end()
    }
}
