//! One session's lease against what its leader knows of it.
//!
//! The lock's own worlds take the lease's promise for granted. Here it is the promise that is
//! checked: the session's client, its follower and the leader, with links that keep their order and
//! may stand still for a while. The link to the leader may break at any moment, so at every moment
//! the lease must end before the leader would end the session if it heard nothing more.

use super::explorer::{Actions, Violation, World};
use super::machine::Moment;
use super::subject::{Answer, Machine, Term};
use std::time::Duration;

/// The session's timeout, in twentieths: the time unit of the client library's timers.
const TIMEOUT: u8 = 20;
/// The client library pings when it has sent nothing for so long,
const PING_AFTER: u8 = 3;
/// and drops a connection on which it has received nothing for 8, which a timer notices by 9.
const DROP_AFTER: u8 = 9;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Request {
    Ping,
    Read(u8),
    Write(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum FromLeader {
    Ping,
    Commit(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The client sends a read, or a quorum write.
    Read,
    Write,
    /// A link stands still, or moves again.
    TurnClient,
    TurnLeader,
    Step,
}

/// What may go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Stops {
    /// How often the client's link may still stop for a while.
    pub(crate) client: u8,
    /// How often the leader's may.
    pub(crate) leader: u8,
    /// Whether the leader's link moves again after a stop.
    pub(crate) resumes: bool,
}

#[derive(Clone, Hash, Debug)]
pub(crate) struct Pulse {
    machine: &'static Machine,
    now: u8,
    /// How often the leader pings the follower: half a tick of the servers.
    period: u8,
    end: u8,
    stops: Stops,
    lease: Box<dyn Term>,
    last_sent: u8,
    last_received: u8,
    pinging: bool,
    /// Whether it has sent a request in this unit of time.
    asked: bool,
    dropped: bool,
    client_link: (bool, Vec<Request>),
    leader_link: (bool, Vec<FromLeader>),
    /// The follower has heard of the session since it last answered the leader's ping.
    heard: bool,
    /// When the leader heard last of the session.
    known: u8,
}

impl Pulse {
    pub(crate) fn new(machine: &'static Machine, period: u8, end: u8, stops: Stops) -> Self {
        Self {
            machine,
            now: 0,
            period,
            end,
            stops,
            lease: (machine.lease)(Duration::from_secs(u64::from(TIMEOUT)), at(0)),
            last_sent: 0,
            last_received: 0,
            pinging: false,
            asked: false,
            dropped: false,
            client_link: (false, Vec::new()),
            leader_link: (false, Vec::new()),
            heard: false,
            known: 0,
        }
    }

    fn is_expired(&self) -> bool {
        self.now >= self.known + TIMEOUT
    }

    fn send(&mut self, request: Request) {
        self.last_sent = self.now;
        self.client_link.1.push(request);
        self.flow();
    }

    /// Everything moves that is on a link which does not stand still.
    fn flow(&mut self) {
        loop {
            if !self.client_link.0 && !self.client_link.1.is_empty() {
                self.heard = true;
                match self.client_link.1.remove(0) {
                    Request::Ping => {
                        self.pinging = false;
                        self.last_received = self.now;
                    }
                    Request::Read(sent) => {
                        self.last_received = self.now;
                        self.note(Answer::Read, sent);
                    }
                    Request::Write(_) if self.is_expired() => {}
                    Request::Write(sent) => self.leader_link.1.push(FromLeader::Commit(sent)),
                }
            } else if !self.leader_link.0 && !self.leader_link.1.is_empty() {
                match self.leader_link.1.remove(0) {
                    FromLeader::Ping if self.heard && !self.is_expired() => {
                        self.heard = false;
                        self.known = self.now;
                    }
                    FromLeader::Ping => {}
                    FromLeader::Commit(sent) => {
                        self.last_received = self.now;
                        self.note(Answer::QuorumWrite, sent);
                    }
                }
            } else {
                break;
            }
        }
        if self.leader_link.0 && !self.stops.resumes {
            // It will never arrive.
            self.leader_link.1.clear();
        }
    }

    fn note(&mut self, answer: Answer, sent: u8) {
        if (self.machine.renews)(answer) {
            self.lease.acknowledge(at(sent), at(self.now));
        }
    }

    fn step(&mut self) {
        self.now += 1;
        self.asked = false;
        if self.now % self.period == 0 {
            self.leader_link.1.push(FromLeader::Ping);
            self.flow();
        }
        if self.now >= self.last_received + DROP_AFTER {
            self.dropped = true;
        } else if !self.pinging && self.now >= self.last_sent + PING_AFTER {
            self.pinging = true;
            self.send(Request::Ping);
        }
    }
}

impl World for Pulse {
    type Action = Action;

    fn actions(&self) -> Actions<Action> {
        let mut actions = Actions { progress: Vec::new(), faults: Vec::new() };
        if self.dropped || self.now >= self.end {
            return actions;
        }
        actions.progress.push(Action::Step);
        if !self.asked {
            actions.faults.extend([Action::Read, Action::Write]);
        }
        if self.client_link.0 || self.stops.client > 0 {
            actions.faults.push(Action::TurnClient);
        }
        if if self.leader_link.0 { self.stops.resumes } else { self.stops.leader > 0 } {
            actions.faults.push(Action::TurnLeader);
        }
        actions
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Step => self.step(),
            Action::Read | Action::Write => {
                self.asked = true;
                let is_write = action == Action::Write;
                self.send(if is_write { Request::Write(self.now) } else { Request::Read(self.now) });
            }
            Action::TurnClient => {
                self.stops.client -= u8::from(!self.client_link.0);
                self.client_link.0 = !self.client_link.0;
                self.flow();
            }
            Action::TurnLeader => {
                self.stops.leader -= u8::from(!self.leader_link.0);
                self.leader_link.0 = !self.leader_link.0;
                self.flow();
            }
        }
    }

    fn check(&self) -> Result<(), Violation> {
        let end = at(self.known + TIMEOUT);
        if self.lease.until() > end {
            let detail = format!("the lease runs until {:?}, the session to {end:?}", self.lease.until());
            return Err(Violation { property: "lease", detail });
        }
        Ok(())
    }

    fn check_at_rest(&self, _: &[Action]) -> Result<(), Violation> {
        Ok(())
    }
}

fn at(units: u8) -> Moment {
    Moment::at(Duration::from_secs(u64::from(units)))
}
