//! The events that one client can meet, and their effects.

use super::action::Action;
use super::client::{Caller, Client, Flight, is_creation, name_of, new_nodes};
use super::ensemble::Directory;
use super::explorer::{Actions, possible};
use super::line::Session;
use super::machine::protocol::{NewNode, Operation, Refusal, Verdict, WatchEvent};
use super::properties::Grant;
use super::setup::{Clock, Faults, TIMEOUT};
use super::tries::Recollection;
use super::world::Scene;

impl Scene {
    /// Whether the session may have ended on the leader.
    fn may_expire(&self, session: &Session) -> bool {
        // The leader itself has seen the opening, but it may learn of writes a quarter of the timeout late.
        let opened = self.now().since(session.opened);
        let silent = self.now().since(session.touched);
        let over = opened >= TIMEOUT && silent >= TIMEOUT - TIMEOUT / 4;
        session.expired.is_none() && (self.setup.clock == Clock::Leaps || over)
    }

    pub(super) fn add_actions_of(&self, number: u8, client: &Client, actions: &mut Actions<Action>) {
        let index = usize::from(number);
        let line = &self.lines[self.line_of(index)];
        let Actions { progress, faults } = actions;
        let is_own_line = self.line_of(index) == index;
        let may_try = client.caller == Caller::Ended && client.attempt < self.setup.attempts;
        let is_held = |writer: usize| matches!(self.clients[writer].caller, Caller::Holds(_));
        let may_begin =
            client.caller == Caller::Asleep && self.setup.plans[index].within.is_some_and(is_held);
        progress.extend(possible([
            (Action::Open(number), client.contender.is_idle() && line.session.is_none() && is_own_line),
            (Action::TryAgain(number), client.contender.is_gone() && may_try),
            (Action::Begin(number), may_begin),
        ]));
        match client.next_operation(line) {
            Some(operation) if is_read(operation) => {
                let views = self.ensemble.views(line.floor).len();
                progress.extend((0..views).map(|view| Action::Execute(number, view as u8)));
            }
            Some(operation) => {
                progress.push(Action::Execute(number, 0));
                if self.is_at_the_end(operation) {
                    progress.push(Action::Execute(number, 1));
                }
            }
            None => {}
        }
        let is_executed = |flight: &Flight| flight.replies.len() == flight.operations.len();
        let has_to_tell = client.watches.iter().any(|watch| watch.fired.is_some())
            || client.memory.as_ref().is_some_and(Recollection::has_to_tell);
        // A waiter also looks again after some time. That is only needed if no watch can fire.
        let looks_again = !client.contender.is_waiting() || !client.removed.is_empty();
        // A client that keeps nodes learns of their loss by a heartbeat.
        let looks_again = looks_again && self.lost_nodes(index).next().is_none();
        let is_cut = is_own_line && line.is_down && line.is_live();
        let is_expired = line.session.as_ref().is_some_and(|session| session.expired.is_some());
        progress.extend(possible([
            (Action::Deliver(number), client.flight.as_ref().is_some_and(is_executed)),
            (Action::Tell(number), client.flight.is_none() && !line.is_down && has_to_tell),
            (Action::Resume(number), client.contender.poll_timeout().is_some() && looks_again),
            (Action::Release(number), is_held(index)),
            (Action::Take(number), self.may_take(index) && self.is_awaited(index)),
            (Action::TimeOut(number), self.has_time_to_go(index)),
            (Action::Restart(number), !line.ghosts.is_empty()),
            (Action::Connect(number), is_cut),
            (Action::Learn(number), is_own_line && is_expired),
        ]));
        faults.extend(possible([(
            Action::Haunt(number),
            is_cut && self.faults.ghosts > 0 && !self.lost.is_empty(),
        )]));
        self.add_faults_of(number, client, faults);
    }

    fn add_faults_of(&self, number: u8, client: &Client, faults: &mut Vec<Action>) {
        let index = usize::from(number);
        let line = &self.lines[self.line_of(index)];
        let Faults { losses, twins, refusals, cancels, expiries, takes, beats, .. } = self.faults;
        if let (Some(flight), true) = (&client.flight, losses > 0) {
            let executed = flight.replies.len() as u8;
            let at_most = executed.min(flight.operations.len() as u8 - 1);
            faults.extend((0..=at_most).map(|known| Action::Lose(number, known)));
            if flight.replies.len() < flight.operations.len() && line.is_live() {
                faults.extend((0..=executed).map(|known| Action::GiveUp(number, known)));
            }
        } else if losses > 0 && !line.is_down && (!client.watches.is_empty() || client.memory.is_some()) {
            faults.push(Action::Lose(number, 0));
        }
        let next = client.next_operation(line).filter(|_| client.late.is_empty());
        let creates = |operation| {
            is_creation(operation) && new_nodes(operation).iter().all(|node| self.has_directory(node))
        };
        let is_awaited = self.is_awaited(index);
        let may_cancel = client.caller == Caller::Wants || is_awaited;
        let expires = |session| self.may_expire(session);
        let may_expire = self.line_of(index) == index && line.session.as_ref().is_some_and(expires);
        let may_pass = matches!(client.caller, Caller::Holds(_)) && client.passed.is_some();
        faults.extend(possible([
            (Action::Twin(number), twins > 0 && next.is_some_and(creates)),
            (Action::Refuse(number), refusals > 0 && next.is_some()),
            (Action::Cancel(number), cancels > 0 && may_cancel),
            (Action::Expire(number), expiries > 0 && may_expire),
            (Action::Pass(number), takes > 0 && may_pass),
            (Action::Take(number), takes > 0 && self.may_take(index) && !is_awaited),
            (Action::Beat(number), beats > 0 && client.can_beat(line, self.now())),
        ]));
    }

    /// Whether the operation is a creation that could get a number beyond the last.
    fn is_at_the_end(&self, operation: &Operation) -> bool {
        let is_at_the_end = |node: &NewNode| {
            self.ensemble.head().directory(&node.directory).is_some_and(Directory::is_at_the_end)
        };
        let nodes = new_nodes(operation);
        !nodes.is_empty() && nodes.iter().all(is_at_the_end)
    }

    fn has_directory(&self, node: &NewNode) -> bool {
        self.ensemble.head().directory(&node.directory).is_some()
    }

    pub(super) fn deliver(&mut self, number: usize) {
        let all = self.clients[number].flight.as_ref().map_or(0, |flight| flight.operations.len());
        self.receive(number, all);
    }

    pub(super) fn receive(&mut self, number: usize, known: usize) {
        let (now, line) = (self.now(), self.line_of(number));
        let plan = &self.setup.plans[number];
        self.clients[number].receive(plan, &mut self.lines[line], known, now);
    }

    pub(super) fn hear(&mut self, number: usize, verdict: Verdict) {
        if verdict == Verdict::Wanted {
            return self.hear_wanted(number);
        }
        if verdict == Verdict::Deleted {
            return self.hear_deleted(number);
        }
        let client = &mut self.clients[number];
        if client.caller != Caller::Wants {
            return self.violate("one answer", format!("{verdict:?} to a caller that has its answer"));
        }
        match verdict {
            Verdict::Failed(Refusal::Busy) if self.setup.plans[number].within.is_some() => {
                self.violate("downgrade", "its own writer is in its way".to_owned());
            }
            Verdict::Failed(Refusal::Busy) if !client.was_busy => {
                self.violate("busy", format!("client {number} is told so, and nobody had what it wants"));
            }
            Verdict::Failed(_) => client.caller = Caller::Ended,
            Verdict::Wanted | Verdict::Deleted => {}
            Verdict::Granted { nodes, czxid, proven, .. } => {
                client.caller = Caller::Holds(nodes.clone());
                client.was_granted = true;
                self.judge_grant(number, &Grant { nodes, czxid, proven });
                self.begin_passing(number);
            }
        }
    }

    pub(super) fn tell(&mut self, number: usize) {
        let (now, line) = (self.now(), self.line_of(number));
        let client = &mut self.clients[number];
        if let Some((event, zxid)) = client.watches.iter().find_map(|watch| watch.fired) {
            client.hear(&mut self.lines[line], event, zxid, now);
        } else {
            client.hear_of_memory(&mut self.lines[line]);
        }
    }

    /// Pauses are shorter than a tick.
    pub(super) fn resume(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let until = client.contender.poll_timeout().unwrap_or_default();
        client.contender.handle_timeout(until);
    }

    pub(super) fn learn(&mut self, line: usize) {
        let now = self.now();
        for number in self.clients_on(line) {
            self.clients[number].learn(&self.lines[line], now);
        }
        self.lines[line].session = None;
    }

    pub(super) fn open(&mut self, line: usize) {
        let (now, oldest, zxid) = (self.now(), self.ensemble.views(0)[0].0, self.ensemble.zxid());
        self.lines[line].open(line, now, oldest, zxid);
        self.clients[line].late.clear();
        self.clients[line].enter(line, &mut self.lines[line]);
    }

    pub(super) fn try_again(&mut self, number: usize) {
        if self.is_remembered(number) {
            return self.answer_from_memory(number);
        }
        self.clients[number].try_again(&self.setup.plans[number]);
        self.clients[number].enter(number, &mut self.lines[number]);
    }

    /// The caller of the writer takes the read side.
    pub(super) fn begin(&mut self, number: usize) {
        let writer = self.line_of(number);
        let Caller::Holds(nodes) = &self.clients[writer].caller else { return };
        let name = name_of(&nodes[0]);
        self.clients[number].begin_within(&self.setup.plans[number], &name);
        self.clients[number].enter(number, &mut self.lines[writer]);
    }

    /// The connection is lost after this many replies to this client.
    pub(super) fn lose(&mut self, number: usize, known: usize) {
        self.faults.losses -= 1;
        self.receive(number, known);
        self.disconnect(number);
    }

    pub(super) fn disconnect(&mut self, number: usize) {
        let line = self.line_of(number);
        for other in self.clients_on(line) {
            if other != number {
                self.receive(other, 0);
            }
            self.clients[other].late.clear();
            self.clients[other].lose_watch_of_memory();
            for watch in &mut self.clients[other].watches {
                watch.leave_again(self.ensemble.head(), self.ensemble.zxid());
                // If a server shows deleted nodes, the client doubts its silence in time.
                if !self.lines[line].ghosts.is_empty() {
                    watch.fired = watch.fired.or(Some((WatchEvent::Changed, self.ensemble.zxid())));
                }
            }
        }
        self.lines[line].disconnect();
    }

    pub(super) fn give_up(&mut self, number: usize, known: usize) {
        self.faults.losses -= 1;
        let client = &mut self.clients[number];
        if let Some(flight) = &client.flight {
            client.late.extend_from_slice(&flight.operations[flight.replies.len()..]);
        }
        self.receive(number, known);
    }

    pub(super) fn execute_twice(&mut self, number: usize) {
        self.faults.twins -= 1;
        let line = self.line_of(number);
        let first = self.clients[number].next_operation(&self.lines[line]).cloned();
        self.execute(number, 0);
        self.clients[number].late.extend(first);
        self.execute(number, 0);
        self.receive(number, 0);
        self.disconnect(number);
    }
}

fn is_read(operation: &Operation) -> bool {
    use Operation as O;
    matches!(
        operation,
        O::List { .. }
            | O::ListMarked { .. }
            | O::ListAndWatch { .. }
            | O::Inspect { .. }
            | O::Owns { .. }
            | O::Watch { .. }
            | O::WatchOwn { .. }
            | O::ReadLimit { .. }
    )
}
