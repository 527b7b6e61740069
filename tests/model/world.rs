//! The ensemble, the clients around the shipped machine, and the events.

use super::action::Action;
use super::client::{Caller, Client};
use super::ensemble::{Child, Ensemble};
use super::explorer::{Actions, Violation, World};
use super::line::Line;
use super::machine::Moment;
use super::machine::name::mark_of_companion;
use super::setup::{Clock, Faults, Setup, TIMEOUT};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) setup: Rc<Setup>,
    pub(crate) ensemble: Ensemble,
    pub(crate) clients: Vec<Client>,
    /// One for each client, even if it shares that of another.
    pub(crate) lines: Vec<Line>,
    /// The faults that are still possible.
    pub(crate) faults: Faults,
    pub(crate) ticks: u8,
    /// The highest token granted on each queue to a contender whose nodes existed: to any contender, and to one that excludes
    /// all others.
    pub(crate) tokens: Vec<(i64, i64)>,
    /// The nodes of the last deletion, if a server may lose it.
    pub(crate) lost: Vec<(&'static str, Child)>,
    /// The node of a hold that has just been released.
    pub(crate) released: Option<String>,
    pub(crate) violation: Option<Violation>,
}

impl Hash for Scene {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ensemble.hash(state);
        self.clients.hash(state);
        self.lines.hash(state);
        self.faults.hash(state);
        (self.ticks, &self.tokens, &self.lost, &self.violation).hash(state);
    }
}

impl Scene {
    pub(crate) fn new(setup: &Setup) -> Self {
        let mut clients: Vec<_> = setup.plans.iter().map(Client::new).collect();
        let mut lines = vec![Line::new(); clients.len()];
        for (number, (client, line)) in clients.iter_mut().zip(&mut lines).enumerate() {
            if client.caller != Caller::Asleep {
                line.open(number, Moment::default(), 1, 1);
                client.enter(number, line);
                client.poll(line, Moment::default());
            }
        }
        let paths = setup.paths();
        Self {
            setup: Rc::new(setup.clone()),
            ensemble: Ensemble::new(&paths, setup.parent, setup.limit.map(|limit| limit.0)),
            clients,
            lines,
            faults: setup.faults,
            // A memory is older than the events that follow it, by less than a tick.
            ticks: setup.plans.iter().any(|plan| plan.remembers).into(),
            tokens: vec![(0, 0); paths.len()],
            lost: Vec::new(),
            released: None,
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

    /// The number of the line that a client is on.
    pub(crate) fn line_of(&self, number: usize) -> usize {
        self.setup.plans[number].within.unwrap_or(number)
    }

    /// The clients that are on this line.
    pub(crate) fn clients_on(&self, line: usize) -> Vec<usize> {
        (0..self.clients.len()).filter(|number| self.line_of(*number) == line).collect()
    }

    /// Whether this client is done with everything.
    pub(crate) fn is_done(&self, number: usize) -> bool {
        let client = &self.clients[number];
        let never_begins =
            || client.caller == Caller::Asleep && self.clients[self.line_of(number)].caller == Caller::Ended;
        client.is_through(self.setup.attempts) || never_begins() || self.is_idle(number)
    }

    /// Lets the contenders act and the watches fire, after every step.
    fn settle(&mut self) {
        let now = self.now();
        for number in 0..self.clients.len() {
            let line = self.line_of(number);
            while let Some(told) = self.clients[number].poll(&self.lines[line], now) {
                self.hear(number, told);
            }
        }
        let zxid = self.ensemble.zxid();
        let mut oldest = zxid;
        for line in 0..self.lines.len() {
            let on_it = self.clients_on(line);
            let will_create = |number: &usize| self.clients[*number].will_create(&self.lines[line]);
            if on_it
                .iter()
                .all(|number| self.is_done(*number) && !self.is_idle(*number) && !will_create(number))
            {
                self.lines[line].close();
                for number in on_it {
                    let client = &mut self.clients[number];
                    client.flight = None;
                    client.watches.clear();
                    client.late.clear();
                }
            } else if self.lines[line].session.is_some() {
                oldest = oldest.min(self.lines[line].seen);
            }
        }
        self.look();
        self.note_who_is_busy();
        self.note_who_is_wanted();
        self.note_what_is_free();
        self.ensemble.forget_before(oldest);
    }

    /// Lets the watches see the new state.
    fn look(&mut self) {
        let zxid = self.ensemble.zxid();
        let mut told = Vec::new();
        for (number, client) in self.clients.iter_mut().enumerate() {
            for watch in &mut client.watches {
                if watch.look(self.ensemble.head(), zxid) {
                    told.push((number, watch.on.clone()));
                }
            }
            if let Some(watch) = client.memory_watch() {
                watch.look(self.ensemble.head(), zxid);
            }
        }
        for (number, target) in told {
            self.judge_wake(number, &target);
        }
        self.released = None;
    }
}

impl World for Scene {
    type Action = Action;

    fn actions(&self) -> Actions<Action> {
        let mut actions = Actions { progress: Vec::new(), faults: Vec::new() };
        let are_alike = self.setup.slow >= self.clients.len() && self.setup.are_alike();
        let mut at_work = false;
        for (number, client) in (0..).zip(&self.clients) {
            let before = actions.progress.len();
            self.add_actions_of(number, client, &mut actions);
            let mut added = actions.progress[before..].iter();
            at_work |=
                usize::from(number) >= self.setup.slow && added.any(|it| *it != Action::Release(number));
            // Clients that are interchangeable need only act for the first time in this order.
            if are_alike && !client.acted {
                break;
            }
        }
        let head = self.ensemble.head();
        if let (Some((_, raised)), Some((limit, _))) = (self.setup.limit, head.limit) {
            if raised > limit {
                actions.progress.push(Action::Raise);
            }
        }
        let faults = &mut actions.faults;
        let children = head.children().count() as u8;
        // Companions stay: if one is deleted while both nodes are being deleted, the lock's node stays until its session ends. And
        // others ask in the node that everybody knows, not in the companion.
        let known = || {
            let children = (0..).zip(head.children());
            let known = children.filter(|(_, (_, child))| mark_of_companion(&child.name).is_none());
            known.map(|(index, _)| index)
        };
        if self.faults.deletions > 0 {
            faults.extend(known().map(Action::Delete));
        }
        if self.faults.changes > 0 {
            faults.extend((0..children).map(Action::Change));
        }
        if self.faults.revokes > 0 {
            faults.extend(known().map(Action::Revoke));
        }
        if self.faults.parent_deletions > 0 {
            let there = (0..).zip(&head.directories).filter(|(_, directory)| directory.exists);
            faults.extend(there.map(|(index, _)| Action::DeleteParent(index)));
        }
        if self.faults.steps > 0 && !at_work {
            faults.push(Action::Step);
        }
        actions
    }

    fn apply(&mut self, action: Action) {
        use Action as A;
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
            A::Execute(number, view) => self.execute(number.into(), view),
            A::Deliver(number) => self.deliver(number.into()),
            A::Tell(number) => self.tell(number.into()),
            A::Resume(number) => self.resume(number.into()),
            A::Release(number) => self.give_back(number.into(), false),
            A::Pass(number) => self.pass(number.into()),
            A::Take(number) => self.take(number.into()),
            A::TimeOut(number) => self.time_out(number.into()),
            A::Learn(number) => self.learn(number.into()),
            A::Connect(number) => self.connect(number.into()),
            A::Haunt(number) => {
                self.faults.ghosts -= 1;
                self.connect(number.into());
                self.lines[usize::from(number)].ghosts.clone_from(&self.lost);
            }
            A::Restart(number) => {
                self.receive(number.into(), 0);
                self.disconnect(number.into());
            }
            A::Open(number) => self.open(number.into()),
            A::TryAgain(number) => self.try_again(number.into()),
            A::Begin(number) => self.begin(number.into()),
            A::Raise => self.ensemble.set_limit(self.setup.limit.map_or(0, |limit| limit.1)),
            A::Lose(number, known) => self.lose(number.into(), known.into()),
            A::GiveUp(number, known) => self.give_up(number.into(), known.into()),
            A::Twin(number) => self.execute_twice(number.into()),
            A::Refuse(number) => {
                self.faults.refusals -= 1;
                self.refuse(number.into());
            }
            A::Cancel(number) => {
                self.faults.cancels -= 1;
                self.cancel(number.into());
            }
            A::Expire(number) => self.expire(number.into()),
            A::Beat(number) => {
                self.faults.beats -= 1;
                let now = self.now();
                self.clients[usize::from(number)].beat(now);
            }
            A::Delete(index) => self.delete(index.into()),
            A::DeleteParent(index) => self.delete_directory(index.into()),
            A::Change(index) => {
                self.faults.changes -= 1;
                self.ensemble.change(index.into(), false);
            }
            A::Revoke(index) => {
                self.faults.revokes -= 1;
                self.ensemble.change(index.into(), true);
            }
            A::Step => {
                self.faults.steps -= 1;
                self.step();
            }
        }
        self.settle();
    }

    fn describe(&self, action: Action) -> String {
        let (Action::Execute(number, _) | Action::Deliver(number)) = action else {
            return format!("{action:?}");
        };
        let client = &self.clients[usize::from(number)];
        let line = &self.lines[self.line_of(number.into())];
        match (action, client.next_operation(line), &client.flight) {
            (Action::Execute(..), Some(operation), _) => format!("{action:?} {operation:?}"),
            (Action::Deliver(_), _, Some(flight)) => format!("{action:?} {:?}", flight.replies),
            _ => format!("{action:?}"),
        }
    }

    fn check(&self) -> Result<(), Violation> {
        self.check_properties()
    }

    fn check_at_rest(&self, progress: &[Action]) -> Result<(), Violation> {
        if progress.is_empty() {
            self.check_end()
        } else if progress.iter().all(|action| matches!(action, Action::Release(_))) {
            self.check_waiting()?;
            self.check_told()
        } else {
            Ok(())
        }
    }
}

impl Scene {
    /// Time passes, and heartbeats are made if they are not separate actions.
    fn step(&mut self) {
        let before = self.ticks;
        let leaps = self.setup.clock == Clock::Leaps;
        self.ticks += if leaps { 2 } else { 1 };
        if !leaps {
            return;
        }
        let at = |tick: u8| Moment::at(Duration::from_secs(tick.into()));
        let beats: Vec<_> = (before + 1..=self.ticks).map(at).collect();
        for number in 0..self.clients.len() {
            let line = self.line_of(number);
            if self.lost_nodes(number).next().is_some() {
                self.clients[number].end();
            } else {
                self.clients[number].beat_through(&mut self.lines[line], &beats);
            }
        }
    }

    fn expire(&mut self, number: usize) {
        self.faults.expiries -= 1;
        let now = self.now();
        let leaps = self.setup.clock == Clock::Leaps;
        if let Some(session) = &mut self.lines[number].session {
            // If time passes by ticks, the lease must be over by itself.
            session.expired = Some(if leaps { now } else { now + TIMEOUT * 100 });
            let id = session.id;
            self.ensemble.delete(|_, child| child.owner.session == id);
        }
    }

    /// An operator deletes the child with this number, counted over all directories.
    fn delete(&mut self, index: usize) {
        self.faults.deletions -= 1;
        let found = self.ensemble.head().children().nth(index);
        let path = found.map(|(directory, child)| format!("{directory}/{}", child.name));
        if let Some(path) = path {
            self.note_removal(|other| *other == path);
            self.ensemble.delete_all(&[path]);
        }
    }

    fn delete_directory(&mut self, index: usize) {
        self.faults.parent_deletions -= 1;
        let path = self.ensemble.head().directories[index].path;
        self.note_removal(|other| other.rsplit_once('/').is_some_and(|split| split.0 == path));
        self.ensemble.delete_directory(path);
    }

    fn note_removal(&mut self, goes: impl Fn(&String) -> bool) {
        let now = self.now();
        for (directory, child) in self.ensemble.head().children() {
            let path = format!("{directory}/{}", child.name);
            let Some(client) = self.clients.get_mut(child.owner.client) else { continue };
            if client.attempt == child.owner.attempt && goes(&path) {
                // A name may come back in a directory that was deleted and created again.
                client.removed.retain(|(other, _)| *other != path);
                client.removed.push((path, now));
            }
        }
    }
}
