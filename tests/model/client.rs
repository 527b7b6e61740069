//! A client: a contender, and the part of the driver that it needs.
//!
//! It keeps the rules of the contender's documentation: one flight at a time, replies together,
//! every acknowledged quorum write to the lease first.

use super::ensemble::Watch;
use super::machine::Moment;
use super::machine::exchange::{Now, Operation, Outcome, Patience, Verdict, WatchEvent};
use super::setup::TIMEOUT;
use super::subject::{Answer, Attempt, Machine, Term};

/// What the caller of an attempt knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Caller {
    /// It waits for the verdict.
    Wants,
    /// It was granted the lock with this token.
    Holds(i64),
    /// It gave up, was told that the attempt failed, released the hold, or was told of its loss.
    Ended,
}

/// A session, as far as its client knows; and what the servers know of it.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Session {
    pub(crate) id: i64,
    lease: Box<dyn Term>,
    /// When the latest of the acknowledged writes was sent.
    last_sent: Moment,
    pub(crate) opened: Moment,
    /// When the leader committed something of it last: a follower that is cut off answers reads too.
    pub(crate) touched: Moment,
    /// The servers have ended it, and its lease is over by decree if it was not by itself.
    pub(crate) expired: Option<Moment>,
}

impl Session {
    pub(crate) fn lease_until(&self) -> Moment {
        self.expired.map_or(self.lease.until(), |cut| cut.min(self.lease.until()))
    }
}

/// Requests on their way, and the replies so far: outcomes with the transaction as of which they are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Flight {
    pub(crate) operations: Vec<Operation>,
    sent: Moment,
    pub(crate) replies: Vec<(Outcome, i64)>,
    /// Sent by the driver for a holder, not by the contender.
    pub(crate) heartbeat: bool,
}

#[derive(Clone, Hash, Debug)]
pub(crate) struct Client {
    machine: &'static Machine,
    pub(crate) contender: Box<dyn Attempt>,
    /// The number of its attempt.
    pub(crate) attempt: u8,
    pub(crate) caller: Caller,
    pub(crate) session: Option<Session>,
    pub(crate) flight: Option<Flight>,
    /// Requests that were given up, but not by the connection: they come before any other.
    pub(crate) late: Vec<Operation>,
    pub(crate) watch: Option<Watch>,
    /// The transaction that the client has seen: no server lets it in that is behind.
    pub(crate) seen: i64,
    /// The transaction that its server has at least applied.
    pub(crate) floor: i64,
    /// Whether it has done anything yet.
    pub(crate) acted: bool,
    /// When its node was removed by an operator.
    pub(crate) removed: Option<Moment>,
    /// When the latest acknowledged proof of its node was sent, and whether it is the last thing heard.
    pub(crate) proof: Option<(Moment, bool)>,
    /// Without a connection: nothing is sent.
    pub(crate) is_down: bool,
    /// Sessions and attempts so far, for marks that differ.
    serial: u8,
}

impl Client {
    pub(crate) fn new(machine: &'static Machine, patience: Patience) -> Self {
        Self {
            machine,
            contender: (machine.contender)(patience),
            attempt: 1,
            caller: Caller::Wants,
            session: None,
            flight: None,
            late: Vec::new(),
            watch: None,
            seen: 0,
            floor: 0,
            acted: false,
            removed: None,
            proof: None,
            is_down: false,
            serial: 0,
        }
    }

    /// Begins the next attempt, in the same session if it lasts.
    pub(crate) fn try_again(&mut self, number: usize, patience: Patience) {
        self.contender = (self.machine.contender)(patience);
        self.attempt += 1;
        self.caller = Caller::Wants;
        (self.removed, self.proof) = (None, None);
        self.enter(number);
    }

    /// A new session, on a server that has applied `floor`.
    pub(crate) fn open(&mut self, number: usize, now: Moment, seen: i64, floor: i64) {
        self.serial += 1;
        let id = session_id(number, self.serial);
        let lease = (self.machine.lease)(TIMEOUT, now);
        self.session = Some(Session { id, lease, last_sent: now, opened: now, touched: now, expired: None });
        (self.seen, self.floor) = (seen, floor);
        self.late.clear();
        self.is_down = false;
        self.enter(number);
    }

    fn enter(&mut self, number: usize) {
        if let Some(session) = &self.session {
            self.serial += 1;
            let mark = (u128::from(self.serial) << 8) + u128::try_from(number).unwrap_or(0) + 1;
            // The client comes first in the mark, so that names do not stand in the order of creation.
            self.contender.handle_session(session.id, session.lease.heartbeat(), mark.reverse_bits());
        }
    }

    /// The request that its server executes next.
    pub(crate) fn next_operation(&self) -> Option<&Operation> {
        self.session.as_ref().filter(|session| session.expired.is_none())?;
        self.late.first().or_else(|| {
            let flight = self.flight.as_ref()?;
            flight.operations.get(flight.replies.len())
        })
    }

    /// Whether a node of it may still come into being.
    pub(crate) fn will_create(&self) -> bool {
        let is_live = self.session.as_ref().is_some_and(|session| session.expired.is_none());
        let sent = self.flight.iter().flat_map(|flight| flight.operations.iter().skip(flight.replies.len()));
        let mut pending = self.late.iter().chain(sent);
        is_live && pending.any(|operation| matches!(operation, Operation::Create { .. }))
    }

    /// The server has executed that request.
    pub(crate) fn answer(&mut self, outcome: Outcome, zxid: i64) {
        if !self.late.is_empty() {
            self.late.remove(0);
        } else if let Some(flight) = &mut self.flight {
            flight.replies.push((outcome, zxid));
        }
    }

    /// The first `known` replies arrive, and nothing more will.
    pub(crate) fn receive(&mut self, known: usize, now: Moment) {
        let Some(flight) = self.flight.take() else { return };
        if let Some((_, is_latest)) = &mut self.proof {
            *is_latest = false;
        }
        let mut outcomes = Vec::new();
        for (operation, (outcome, zxid)) in flight.operations.iter().zip(flight.replies).take(known) {
            self.seen = self.seen.max(zxid);
            self.note(operation, &outcome, flight.sent, now);
            outcomes.push(outcome);
        }
        if outcomes.len() < flight.operations.len() {
            outcomes.resize(flight.operations.len(), Outcome::Unknown);
            self.watch = None;
        }
        let now = self.now(now);
        if flight.heartbeat {
            if outcomes[0] == Outcome::NoNode {
                self.end();
            }
        } else {
            self.contender.handle_replies(outcomes, flight.sent, now);
        }
    }

    /// Tells the lease of what was acknowledged.
    fn note(&mut self, operation: &Operation, outcome: &Outcome, sent: Moment, now: Moment) {
        let answer = match (operation, outcome) {
            (Operation::Create { .. }, Outcome::Created(_)) | (Operation::Check { .. }, Outcome::Done) => {
                self.proof = Some((sent, true));
                Answer::QuorumWrite
            }
            (Operation::Delete { .. }, Outcome::Done) => Answer::QuorumWrite,
            _ => Answer::Read,
        };
        if let (Some(session), true) = (&mut self.session, (self.machine.renews)(answer)) {
            session.lease.acknowledge(sent, now);
            session.last_sent = session.last_sent.max(sent);
        }
    }

    /// The connection is lost: the next server knows only what this client has seen.
    pub(crate) fn disconnect(&mut self) {
        self.late.clear();
        self.floor = self.seen;
        self.is_down = true;
    }

    /// The watch tells; its server has applied what it tells of.
    pub(crate) fn hear(&mut self, event: WatchEvent, zxid: i64, now: Moment) {
        self.watch = None;
        if let Some((_, is_latest)) = &mut self.proof {
            *is_latest = false;
        }
        self.floor = self.floor.max(zxid);
        let now = self.now(now);
        self.contender.handle_watch(event, now);
    }

    /// The client learns that its session is over.
    pub(crate) fn learn(&mut self, now: Moment) {
        let now = self.now(now);
        (self.session, self.watch) = (None, None);
        self.late.clear();
        match self.flight.take() {
            Some(flight) if !flight.replies.is_empty() && !flight.heartbeat => {
                let mut outcomes: Vec<_> = flight.replies.into_iter().map(|reply| reply.0).collect();
                outcomes.pop();
                outcomes.resize(flight.operations.len(), Outcome::SessionOver);
                self.contender.handle_replies(outcomes, flight.sent, now);
            }
            _ => self.contender.handle_session_over(),
        }
        if matches!(self.caller, Caller::Holds(_)) {
            self.caller = Caller::Ended;
        }
    }

    /// The caller gives up, releases, or is told of a loss.
    pub(crate) fn end(&mut self) {
        self.caller = Caller::Ended;
        if self.flight.as_ref().is_some_and(|flight| flight.heartbeat) {
            self.flight = None;
        }
        self.contender.handle_end();
    }

    /// A holder proves its node, as its driver does at every heartbeat.
    pub(crate) fn beat(&mut self, name: String, now: Moment) {
        let operations = vec![Operation::Check { name }];
        self.flight = Some(Flight { operations, sent: now, replies: Vec::new(), heartbeat: true });
    }

    pub(crate) fn can_beat(&self, now: Moment) -> bool {
        let live = self.session.as_ref().is_some_and(|session| session.last_sent < now);
        matches!(self.caller, Caller::Holds(_)) && self.flight.is_none() && !self.is_down && live
    }

    /// As many heartbeats as fall due between two moments, all of them answered.
    pub(crate) fn beat_through(&mut self, moments: &[Moment]) {
        if let (Caller::Holds(_), Some(session)) = (self.caller, &mut self.session) {
            if session.expired.is_none() && !self.is_down {
                for moment in moments {
                    session.lease.acknowledge(*moment, *moment);
                    session.last_sent = session.last_sent.max(*moment);
                }
                session.touched = moments.last().copied().unwrap_or(session.touched);
            }
        }
    }

    /// What the contender has to say and to send now.
    pub(crate) fn poll(&mut self, now: Moment) -> Option<Verdict> {
        // What is sent without a connection would wait without limit.
        let flight = if self.is_down { None } else { self.contender.poll_flight() };
        if let Some(operations) = flight {
            assert!(self.flight.is_none(), "one flight at a time");
            self.watch = None;
            self.flight = Some(Flight { operations, sent: now, replies: Vec::new(), heartbeat: false });
        }
        self.contender.poll_verdict()
    }

    fn now(&self, moment: Moment) -> Now {
        let lease_until = self.session.as_ref().map_or(Moment::default(), Session::lease_until);
        Now { moment, lease_until }
    }

    /// Whether nothing will happen any more.
    pub(crate) fn is_through(&self, attempts: u8) -> bool {
        self.contender.is_gone() && self.caller == Caller::Ended && self.attempt >= attempts
    }
}

fn session_id(number: usize, serial: u8) -> i64 {
    let number = i64::try_from(number).unwrap_or(0);
    (number + 1) * 100 + i64::from(serial)
}
