//! A client: a contender, and the part of the driver that it needs.
//!
//! It keeps the rules of the contender's documentation: one flight at a time, replies together,
//! every acknowledged quorum write to the lease first.

use super::line::Line;
use super::lingering::Passed;
use super::machine::Moment;
use super::machine::name::Uuid;
use super::machine::protocol::{NewNode, Operation, Outcome, Verdict, WatchEvent};
use super::setup::Plan;
use super::subject::{Attempt, Sort};
use super::tries::Recollection;
use super::watch::Watch;

/// The state of an attempt, as its caller knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Caller {
    /// It will begin when another client holds.
    Asleep,
    /// It waits for the verdict.
    Wants,
    /// It was granted the lock with these nodes.
    Holds(Vec<String>),
    /// It released the hold, and these nodes stay for the next caller of its process.
    Lingers(Vec<String>),
    /// It gave up, released the hold, or was told of a failure or of its loss.
    Ended,
}

/// Requests on their way, and the replies so far: each an outcome and the transaction that the server had reached.
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
    pub(crate) contender: Attempt,
    /// The number of its attempt.
    pub(crate) attempt: u8,
    pub(crate) caller: Caller,
    /// Whether the attempt was granted.
    pub(crate) was_granted: bool,
    pub(crate) flight: Option<Flight>,
    /// Requests that were given up while the connection goes on: they are executed before any other.
    pub(crate) late: Vec<Operation>,
    /// Only the first of them that fires is heard.
    pub(crate) watches: Vec<Watch>,
    /// The callers of its process that have its node, if that is passed on.
    pub(crate) passed: Option<Passed>,
    /// Whether others have waited behind it since its attempt began.
    pub(crate) was_wanted: bool,
    /// Whether it has done anything yet.
    pub(crate) acted: bool,
    /// Its nodes that an operator removed, and when.
    pub(crate) removed: Vec<(String, Moment)>,
    /// When the latest acknowledged proof of each of its nodes was sent.
    pub(crate) proofs: Vec<(String, Moment)>,
    /// Whether a proof is the last thing heard.
    pub(crate) is_proof_latest: bool,
    /// Whether the lock was not free at some time since its attempt began.
    pub(crate) was_busy: bool,
    /// Its memory of its last try, until it tries again.
    pub(crate) memory: Option<Recollection>,
    /// The tick and the transaction since which the lock that it tries is free, if it is.
    pub(crate) free_since: Option<(u8, i64)>,
}

impl Client {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            contender: new_attempt(plan),
            attempt: 1,
            caller: if plan.within.is_some() { Caller::Asleep } else { Caller::Wants },
            was_granted: false,
            flight: None,
            late: Vec::new(),
            watches: Vec::new(),
            passed: None,
            was_wanted: false,
            acted: false,
            removed: Vec::new(),
            proofs: Vec::new(),
            is_proof_latest: false,
            was_busy: false,
            memory: None,
            free_since: None,
        }
    }

    /// Begins the next attempt.
    pub(crate) fn try_again(&mut self, plan: &Plan) {
        self.contender = new_attempt(plan);
        self.attempt += 1;
        self.memory = None;
        (self.caller, self.was_granted, self.was_busy) = (Caller::Wants, false, false);
        (self.passed, self.was_wanted) = (None, false);
        self.removed.clear();
        self.proofs.clear();
    }

    /// Begins to take the read side within this node.
    pub(crate) fn begin_within(&mut self, plan: &Plan, writer: &str) {
        self.contender = Attempt::new(&plan.wants, Some(&name_of(writer)), plan.patience);
        self.caller = Caller::Wants;
    }

    /// A session was opened, or goes on.
    pub(crate) fn enter(&mut self, number: usize, line: &mut Line) {
        let serial = line.next_serial();
        if let Some(session) = &line.session {
            let mark = (u128::from(serial) << 8) + u128::try_from(number).unwrap_or(0) + 1;
            // The mark begins with the client, so that the order of names is not that of creation.
            self.contender.handle_session(
                session.id,
                session.lease.heartbeat(),
                Uuid::from_random(mark.reverse_bits()),
            );
        }
    }

    /// The request that its server executes next.
    pub(crate) fn next_operation(&self, line: &Line) -> Option<&Operation> {
        if !line.is_live() {
            return None;
        }
        self.late.first().or_else(|| {
            let flight = self.flight.as_ref()?;
            flight.operations.get(flight.replies.len())
        })
    }

    /// Whether a request may still create a node for it.
    pub(crate) fn will_create(&self, line: &Line) -> bool {
        let sent = self.flight.iter().flat_map(|flight| flight.operations.iter().skip(flight.replies.len()));
        line.is_live() && self.late.iter().chain(sent).any(is_creation)
    }

    /// The server has executed its next request.
    pub(crate) fn answer(&mut self, outcome: Outcome, zxid: i64) {
        if !self.late.is_empty() {
            self.late.remove(0);
        } else if let Some(flight) = &mut self.flight {
            flight.replies.push((outcome, zxid));
        }
    }

    /// The first `known` replies arrive, and nothing more will.
    pub(crate) fn receive(&mut self, plan: &Plan, line: &mut Line, known: usize, now: Moment) {
        let Some(flight) = self.flight.take() else { return };
        self.is_proof_latest = false;
        let mut outcomes = Vec::new();
        for (operation, (outcome, zxid)) in flight.operations.iter().zip(flight.replies).take(known) {
            line.seen = line.seen.max(zxid);
            self.note(plan, line, operation, &outcome, flight.sent, now);
            outcomes.push(outcome);
        }
        if outcomes.len() < flight.operations.len() {
            outcomes.resize(flight.operations.len(), Outcome::Unknown);
            self.watches.clear();
        }
        if flight.heartbeat {
            if outcomes[0] == Outcome::NoNode {
                self.end();
            }
        } else {
            self.hear_before(line.seen);
            self.contender.handle_replies(outcomes, flight.sent, line.now(now));
            self.remember();
        }
    }

    /// Notes what was acknowledged, and tells the lease.
    fn note(
        &mut self,
        plan: &Plan,
        line: &mut Line,
        operation: &Operation,
        outcome: &Outcome,
        sent: Moment,
        now: Moment,
    ) {
        let is_done = matches!(outcome, Outcome::Done | Outcome::Created(_));
        let proven = match operation {
            Operation::Check { paths } if is_done => paths.clone(),
            _ => created(operation, outcome),
        };
        if is_creation(operation) && !proven.is_empty() && !is_of_permits(plan, operation) {
            self.proofs.clear();
        }
        self.is_proof_latest |= !proven.is_empty();
        for path in proven {
            self.proofs.retain(|(other, _)| *other != path);
            self.proofs.push((path, sent));
        }
        let is_write = is_done && operation.is_quorum_write();
        if let (Some(session), true) = (&mut line.session, is_write) {
            session.lease.acknowledge(sent, now);
            session.last_sent = session.last_sent.max(sent);
        }
    }

    /// A watch fires. Its server has applied the change.
    pub(crate) fn hear(&mut self, line: &mut Line, event: WatchEvent, zxid: i64, now: Moment) {
        self.watches.clear();
        self.is_proof_latest = false;
        line.floor = line.floor.max(zxid);
        self.contender.handle_watch(event, line.now(now));
    }

    /// The client learns that its session is over.
    pub(crate) fn learn(&mut self, line: &Line, now: Moment) {
        let now = line.now(now);
        self.watches.clear();
        self.late.clear();
        match self.flight.take() {
            Some(flight) if !flight.replies.is_empty() && !flight.heartbeat => {
                let mut outcomes: Vec<_> = flight.replies.into_iter().map(|reply| reply.0).collect();
                outcomes.pop();
                outcomes.resize(flight.operations.len(), Outcome::SessionOver);
                self.contender.handle_replies(outcomes, flight.sent, now);
            }
            _ if self.caller == Caller::Asleep => {}
            _ => self.contender.handle_session_over(),
        }
        if matches!(self.caller, Caller::Holds(_) | Caller::Lingers(_)) {
            self.caller = Caller::Ended;
        }
        self.end_turns();
    }

    /// The nodes of its hold, even if they only linger.
    pub(crate) fn kept(&self) -> Option<&Vec<String>> {
        match &self.caller {
            Caller::Holds(nodes) | Caller::Lingers(nodes) => Some(nodes),
            _ => None,
        }
    }

    fn end_turns(&mut self) {
        if let Some(passed) = &mut self.passed {
            passed.turns.handle_end();
        }
    }

    /// The caller gives up, releases, or is told of a loss.
    pub(crate) fn end(&mut self) {
        self.caller = Caller::Ended;
        self.end_turns();
        if self.flight.as_ref().is_some_and(|flight| flight.heartbeat) {
            self.flight = None;
        }
        self.contender.handle_end();
    }

    /// Proves the nodes that it holds or keeps, as its driver does at every heartbeat.
    pub(crate) fn beat(&mut self, now: Moment) {
        if let Some(nodes) = self.kept() {
            let operations = vec![Operation::Check { paths: nodes.clone() }];
            self.flight = Some(Flight { operations, sent: now, replies: Vec::new(), heartbeat: true });
        }
    }

    pub(crate) fn can_beat(&self, line: &Line, now: Moment) -> bool {
        let live = line.session.as_ref().is_some_and(|session| session.last_sent < now);
        self.kept().is_some() && self.flight.is_none() && !line.is_down && live
    }

    /// Makes all heartbeats that fall due between two moments, each of them answered.
    pub(crate) fn beat_through(&self, line: &mut Line, moments: &[Moment]) {
        if let (Some(_), Some(session), false) = (self.kept(), &mut line.session, line.is_down) {
            if session.expired.is_none() {
                for moment in moments {
                    session.lease.acknowledge(*moment, *moment);
                    session.last_sent = session.last_sent.max(*moment);
                }
                session.touched = moments.last().copied().unwrap_or(session.touched);
            }
        }
    }

    /// Sends the contender's next requests, and returns its verdict, if it has one.
    pub(crate) fn poll(&mut self, line: &Line, now: Moment) -> Option<Verdict> {
        // Without a connection a request would wait without limit.
        let may_send = !line.is_down && self.flight.is_none() && self.caller != Caller::Asleep;
        if let Some(operations) = may_send.then(|| self.contender.poll_flight()).flatten() {
            self.watches.clear();
            self.flight = Some(Flight { operations, sent: now, replies: Vec::new(), heartbeat: false });
        }
        self.contender.poll_verdict()
    }

    /// Whether nothing will happen any more.
    pub(crate) fn is_through(&self, attempts: u8) -> bool {
        self.contender.is_gone() && self.caller == Caller::Ended && self.attempt >= attempts
    }
}

fn new_attempt(plan: &Plan) -> Attempt {
    let mut attempt = Attempt::new(&plan.wants, None, plan.patience);
    if plan.remembers {
        attempt.handle_tried_before();
    }
    attempt
}

pub(crate) fn is_creation(operation: &Operation) -> bool {
    use Operation as O;
    matches!(
        operation,
        O::Create(_)
            | O::CreateAll(_)
            | O::CreateWithin { .. }
            | O::CreateSingle { .. }
            | O::CreatePair { .. }
    )
}

/// The nodes that get a number of the server's.
pub(crate) fn new_nodes(operation: &Operation) -> &[NewNode] {
    match operation {
        Operation::Create(node) => std::slice::from_ref(node),
        Operation::CreateAll(nodes) => nodes,
        _ => &[],
    }
}

/// Whether the operation creates permits of a semaphore.
pub(crate) fn is_of_permits(plan: &Plan, operation: &Operation) -> bool {
    let Some(node) = new_nodes(operation).first() else { return false };
    let is_semaphore = |sort| matches!(sort, Sort::Semaphore { .. });
    plan.wants.iter().any(|want| is_semaphore(want.sort) && *want.hold().0 == *node.directory)
}

/// The paths of the nodes that were created.
fn created(operation: &Operation, outcome: &Outcome) -> Vec<String> {
    let Outcome::Created(nodes) = outcome else { return Vec::new() };
    let names = nodes.iter().map(|node| &node.name);
    match operation {
        Operation::Create(new) => names.map(|name| format!("{}/{name}", new.directory)).collect(),
        Operation::CreateAll(new) => {
            names.zip(new).map(|(name, new)| format!("{}/{name}", new.directory)).collect()
        }
        Operation::CreateWithin { path, .. } | Operation::CreateSingle { path, .. } => vec![path.clone()],
        Operation::CreatePair { path, companion, .. } => vec![path.clone(), companion.clone()],
        _ => Vec::new(),
    }
}

pub(crate) fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
