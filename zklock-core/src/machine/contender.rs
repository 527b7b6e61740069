//! One attempt to hold a lock, from the creation of its node to its deletion.
//!
//! The simple way, a function that creates, lists and waits, loses its node wherever it is
//! interrupted: a reply that never comes, a caller that gives up between two lines, a session that
//! ends while a request is under way. So the attempt is a state machine that knows at every moment
//! whether a node of its own is there, may be there, or is not there, and that is not
//! [gone](Contender::is_gone) before the node is.

use super::Moment;
use super::exchange::{Node, Now, Operation, Outcome, Patience, Refusal, Verdict, WatchEvent};
use super::name::{Name, Uuid};
use super::queue::{Kind, Standing, standing};
use std::time::Duration;

/// What the contender is about to send, or is waiting for the replies to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// Create and list in one flight: the listing is of a time after the creation, so it holds
    /// every node that can ever be before ours, and one round trip decides a free lock.
    Enter,
    CreateParents,
    /// The reply to a creation was lost. Sync and list, or a server that lags behind would not show
    /// the node that is there.
    Recover,
    /// Who owns the node that was found again, and where it stands.
    Adopt,
    Look,
    Watch {
        name: String,
        alone: bool,
    },
    /// Prove the own node and renew the lease, before a grant that could be stale.
    Check,
    Leave,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    /// There is no session to work with, and so no node.
    Idle,
    Ready(Step),
    InFlight(Step),
    /// After an outcome that is unknown again, so that a sick server is not asked in a loop.
    Paused(Step, Moment),
    /// `alone`: the watched node is the only one in the way.
    Waiting {
        alone: bool,
    },
    Held,
    Gone,
}

/// What is known of nodes of our own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Trace {
    None,
    /// A creation may have been executed.
    Maybe,
    /// The node, and when a write was sent that proved it, if one was.
    Node {
        node: Node,
        proven: Option<Moment>,
    },
}

/// One attempt to hold a lock.
///
/// The driver gives it sessions, replies, watch events and the time through `handle_*`, in the order
/// in which they happen, and after each call asks [`poll_verdict`](Self::poll_verdict),
/// [`poll_flight`](Self::poll_flight) and [`poll_timeout`](Self::poll_timeout) what follows. The
/// operations of a flight are sent back to back on one session, and their outcomes come back
/// together; there is never more than one flight under way.
///
/// ```
/// use std::time::Duration;
/// use zklock_core::machine::contender::Contender;
/// use zklock_core::machine::exchange::*;
/// use zklock_core::machine::{name::Uuid, queue::Kind, Moment};
///
/// let now = Now { moment: Moment::default(), lease_until: Moment::at(Duration::from_secs(5)) };
/// let mut contender = Contender::new(Kind::Mutex, Patience::Waits);
/// contender.handle_session(7, Duration::from_secs(1), Uuid::from_random(1));
/// let flight = contender.poll_flight().unwrap();
/// assert!(matches!(&flight[..], [Operation::Create { .. }, Operation::List]));
///
/// let name = "_c_00000000-0000-4000-8000-000000000001-lock-0000000000".to_owned();
/// let origin = Some(Origin { czxid: 42, session: 7 });
/// let created = Outcome::Created(Node { name: name.clone(), origin });
/// contender.handle_replies(vec![created, Outcome::Children(vec![name.clone()])], now.moment, now);
/// let proven = now.moment;
/// assert_eq!(contender.poll_verdict(), Some(Verdict::Granted { name, czxid: 42, proven }));
///
/// contender.handle_end();
/// assert!(matches!(&contender.poll_flight().unwrap()[..], [Operation::Delete { .. }]));
/// contender.handle_replies(vec![Outcome::Done], now.moment, now);
/// assert!(contender.is_gone());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Contender {
    kind: Kind,
    patience: Patience,
    /// Whether the caller still wants the lock: wants to get it, or has it.
    wanted: bool,
    state: State,
    session: i64,
    heartbeat: Duration,
    uuid: Uuid,
    trace: Trace,
    /// Further nodes with our mark, to be deleted.
    surplus: Vec<String>,
    verdict: Option<Verdict>,
    answered: bool,
    /// Unknown outcomes since the last that was known.
    failures: u32,
    parents_created: u32,
}

/// How often the parents are created again before the attempt fails: the server may reap an empty
/// container between two of our requests, but not for ever.
const PARENTS_AT_MOST: u32 = 16;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(640);

impl Contender {
    /// An attempt that waits for its first session.
    pub fn new(kind: Kind, patience: Patience) -> Self {
        Self {
            kind,
            patience,
            wanted: true,
            state: State::Idle,
            session: 0,
            heartbeat: Duration::ZERO,
            uuid: Uuid::from_random(0),
            trace: Trace::None,
            surplus: Vec::new(),
            verdict: None,
            answered: false,
            failures: 0,
            parents_created: 0,
        }
    }

    /// Whether nothing is left to do: no node of this attempt is there, nor will be.
    pub fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Whether it is waiting for a session.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether it has a place in the queue, behind others.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// What the caller is to be told; it comes once.
    pub fn poll_verdict(&mut self) -> Option<Verdict> {
        self.verdict.take()
    }

    /// What to send now.
    pub fn poll_flight(&mut self) -> Option<Vec<Operation>> {
        let State::Ready(step) = &self.state else { return None };
        let step = step.clone();
        let flight = match &step {
            Step::Enter => vec![Operation::Create { prefix: Name::prefix(self.uuid) }, Operation::List],
            Step::CreateParents => vec![Operation::CreateParents],
            Step::Recover => vec![Operation::Sync, Operation::List],
            Step::Adopt => self.adoption(),
            Step::Look => vec![Operation::List],
            Step::Watch { name, .. } => vec![Operation::Watch { name: name.clone() }],
            Step::Check => vec![Operation::Check { name: self.own_name() }],
            Step::Leave => self.own_names().map(|name| Operation::Delete { name }).collect(),
        };
        if step == Step::Enter {
            self.trace = Trace::Maybe;
        }
        self.state = State::InFlight(step);
        Some(flight)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Moment> {
        match self.state {
            State::Paused(_, until) => Some(until),
            _ => None,
        }
    }

    /// A session is there: enter the queue in it.
    ///
    /// `heartbeat` is the interval at which holders prove their nodes; `uuid` must be new.
    pub fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: Uuid) {
        if self.state == State::Idle {
            self.session = session;
            self.heartbeat = heartbeat;
            self.uuid = uuid;
            self.state = State::Ready(Step::Enter);
        }
    }

    /// The session is over, and with it its nodes: an attempt that waits begins again in the next.
    pub fn handle_session_over(&mut self) {
        self.trace = Trace::None;
        self.surplus.clear();
        self.failures = 0;
        self.state = if self.wanted && !self.answered { State::Idle } else { State::Gone };
    }

    /// The node is not wanted any more: the caller gave up, its time is over, or the hold was
    /// released or lost.
    pub fn handle_end(&mut self) {
        self.wanted = false;
        match self.state {
            // What is under way decides what is left to do.
            State::InFlight(_) | State::Gone => {}
            State::Paused(Step::Leave | Step::Recover, _) => {}
            _ => self.clean_up(),
        }
    }

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come.
    pub fn handle_timeout(&mut self, now: Moment) {
        if let State::Paused(step, until) = &self.state {
            if now >= *until {
                self.state = State::Ready(step.clone());
            }
        }
    }

    /// The watch that was asked for has fired.
    pub fn handle_watch(&mut self, event: WatchEvent, now: Now) {
        if let State::Waiting { alone } = self.state {
            match event {
                // Names never come back, so what is deleted stays away; and nobody else was ahead.
                WatchEvent::Deleted if alone => self.grant(now),
                WatchEvent::Deleted | WatchEvent::Changed => self.state = State::Ready(Step::Look),
            }
        }
    }

    /// The outcomes of the flight that was sent at `sent`, one for each operation.
    pub fn handle_replies(&mut self, outcomes: Vec<Outcome>, sent: Moment, now: Now) {
        let State::InFlight(step) = &self.state else { return };
        let step = step.clone();
        if outcomes.contains(&Outcome::SessionOver) {
            return self.handle_session_over();
        }
        if step == Step::Leave {
            return self.left(&outcomes, now);
        }
        let mut outcomes = outcomes;
        // The listing, where there is one, comes last.
        let listed = if outcomes.len() > 1 { outcomes.pop() } else { None }.unwrap_or(Outcome::Unknown);
        let first = if outcomes.is_empty() { Outcome::Unknown } else { outcomes.remove(0) };
        match step {
            Step::Enter => self.entered(first, listed, sent, now),
            Step::CreateParents => self.parents_answered(first, now),
            Step::Recover => self.recovered(&first, listed, now),
            Step::Adopt => self.adopted(first, &outcomes, listed, now),
            Step::Look => self.looked(first, now),
            Step::Watch { alone, .. } => self.watched(first, alone, now),
            Step::Check => self.checked(first, sent, now),
            Step::Leave => {}
        }
    }

    fn entered(&mut self, created: Outcome, listed: Outcome, sent: Moment, now: Now) {
        match created {
            Outcome::Created(node) => {
                let known = node.origin.is_some_and(|origin| origin.session == self.session);
                self.trace = Trace::Node { node, proven: Some(sent) };
                if known { self.looked(listed, now) } else { self.go(Step::Adopt) }
            }
            Outcome::NoNode => {
                self.trace = Trace::None;
                self.go(Step::CreateParents);
            }
            Outcome::Refused(refusal) => {
                self.trace = Trace::None;
                self.fail(refusal);
            }
            _ => self.retry(Step::Recover, now),
        }
    }

    fn parents_answered(&mut self, outcome: Outcome, now: Now) {
        self.parents_created += u32::from(outcome == Outcome::Done);
        match outcome {
            Outcome::Done if self.parents_created > PARENTS_AT_MOST => self.fail(Refusal::NoParent),
            Outcome::Done => self.go(Step::Enter),
            Outcome::NoNode => self.fail(Refusal::NoRoot),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::CreateParents, now),
        }
    }

    fn recovered(&mut self, synced: &Outcome, listed: Outcome, now: Now) {
        if *synced != Outcome::Done {
            return self.retry(Step::Recover, now);
        }
        let children = match listed {
            Outcome::Children(children) => children,
            Outcome::NoNode => Vec::new(),
            Outcome::Refused(refusal) => {
                self.fail(refusal);
                return self.retry(Step::Recover, now);
            }
            _ => return self.retry(Step::Recover, now),
        };
        let prefix = Name::prefix(self.uuid);
        let is_ours = |name: &Name<'_>| name.text.starts_with(&prefix);
        let mut ours: Vec<Name<'_>> =
            children.iter().filter_map(|child| Name::parse(child)).filter(is_ours).collect();
        // The lowest has the best place.
        ours.sort_by(|left, right| {
            right.sequence.is_before(left.sequence).cmp(&left.sequence.is_before(right.sequence))
        });
        let mut names = ours.iter().map(|name| name.text.to_owned());
        match names.next() {
            None => {
                self.trace = Trace::None;
                self.go(Step::Enter);
            }
            Some(name) => {
                self.trace = Trace::Node { node: Node { name, origin: None }, proven: None };
                self.surplus = names.collect();
                self.go(Step::Adopt);
            }
        }
    }

    /// Read whose the node is, delete what else bears our mark, and see where we stand.
    fn adoption(&self) -> Vec<Operation> {
        let mut flight = vec![Operation::Inspect { name: self.own_name() }];
        flight.extend(self.surplus.iter().map(|name| Operation::Delete { name: name.clone() }));
        flight.push(Operation::List);
        flight
    }

    fn adopted(&mut self, found: Outcome, pruned: &[Outcome], listed: Outcome, now: Now) {
        if !pruned.iter().all(is_deleted) {
            return self.retry(Step::Adopt, now);
        }
        self.surplus.clear();
        match found {
            Outcome::Found(Node { name, origin: Some(origin) }) => {
                if origin.session != self.session {
                    self.trace = Trace::None;
                    return self.fail(Refusal::NotOurs(name));
                }
                if let Trace::Node { node, .. } = &mut self.trace {
                    node.origin = Some(origin);
                }
                self.looked(listed, now);
            }
            Outcome::NoNode => self.enter_again(),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Adopt, now),
        }
    }

    fn looked(&mut self, listed: Outcome, now: Now) {
        let children = match listed {
            Outcome::Children(children) => children,
            Outcome::NoNode => return self.enter_again(),
            Outcome::Refused(refusal) => return self.fail(refusal),
            _ => return self.retry(Step::Look, now),
        };
        self.failures = 0;
        match standing(&children, &self.own_name(), self.kind) {
            // An operator deleted it, or the whole directory.
            Standing::Absent => self.enter_again(),
            Standing::Holds => self.grant(now),
            Standing::Foreign { name } => self.fail(Refusal::ForeignContender(name.to_owned())),
            Standing::Waits { .. } if self.patience == Patience::TriesOnce => self.fail(Refusal::Busy),
            Standing::Waits { watch, alone } => self.go(Step::Watch { name: watch.to_owned(), alone }),
        }
    }

    fn watched(&mut self, outcome: Outcome, alone: bool, now: Now) {
        match outcome {
            Outcome::Done if self.wanted => self.state = State::Waiting { alone },
            // It went between the listing and the watch: as if the watch had told.
            Outcome::NoNode if alone => self.grant(now),
            Outcome::Done | Outcome::NoNode => self.go(Step::Look),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Look, now),
        }
    }

    fn checked(&mut self, outcome: Outcome, sent: Moment, now: Now) {
        match outcome {
            Outcome::Done => {
                if let Trace::Node { proven, .. } = &mut self.trace {
                    *proven = Some(sent);
                }
                // Even an old check will do where the network is that slow, if the lease still runs.
                if now.moment < now.lease_until { self.granted() } else { self.retry(Step::Check, now) }
            }
            Outcome::NoNode => self.enter_again(),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Check, now),
        }
    }

    fn left(&mut self, outcomes: &[Outcome], now: Now) {
        if outcomes.iter().all(is_deleted) {
            self.trace = Trace::None;
            self.surplus.clear();
            self.state = State::Gone;
        } else {
            self.retry(Step::Leave, now);
        }
    }

    /// It is our turn. A grant needs more: a node proven within the last heartbeat, so that the
    /// holder is told of a deletion by an operator in time, and a live lease.
    fn grant(&mut self, now: Now) {
        let fresh = match &self.trace {
            Trace::Node { proven: Some(sent), .. } => now.moment.since(*sent) <= self.heartbeat,
            _ => false,
        };
        if fresh && now.moment < now.lease_until { self.granted() } else { self.go(Step::Check) }
    }

    fn granted(&mut self) {
        match &self.trace {
            Trace::Node { node: Node { name, origin: Some(origin) }, proven: Some(proven) }
                if self.wanted =>
            {
                let (name, czxid, proven) = (name.clone(), origin.czxid, *proven);
                self.verdict = Some(Verdict::Granted { name, czxid, proven });
                self.answered = true;
                self.state = State::Held;
            }
            _ => self.clean_up(),
        }
    }

    fn fail(&mut self, refusal: Refusal) {
        if self.wanted && !self.answered {
            self.verdict = Some(Verdict::Failed(refusal));
            self.answered = true;
        }
        self.wanted = false;
        self.clean_up();
    }

    /// Our node is gone for good: queue again, with a new one.
    fn enter_again(&mut self) {
        self.trace = Trace::None;
        self.go(Step::Enter);
    }

    fn go(&mut self, step: Step) {
        if self.wanted {
            self.state = State::Ready(step);
        } else {
            self.clean_up();
        }
    }

    /// After an outcome that is unknown. The first time at once: the driver waits for the connection.
    fn retry(&mut self, step: Step, now: Now) {
        self.failures += 1;
        self.go(step);
        if let (State::Ready(step), true) = (&self.state, self.failures > 1) {
            let pause = FIRST_PAUSE.saturating_mul(1 << (self.failures - 2).min(16)).min(LONGEST_PAUSE);
            self.state = State::Paused(step.clone(), now.moment + pause);
        }
    }

    /// What is left to do for a caller that is gone.
    fn clean_up(&mut self) {
        self.state = match self.trace {
            Trace::None => State::Gone,
            Trace::Maybe => State::Ready(Step::Recover),
            Trace::Node { .. } => State::Ready(Step::Leave),
        };
    }

    fn own_name(&self) -> String {
        match &self.trace {
            Trace::Node { node, .. } => node.name.clone(),
            Trace::None | Trace::Maybe => String::new(),
        }
    }

    fn own_names(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.own_name()).chain(self.surplus.iter().cloned())
    }
}

fn is_deleted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done | Outcome::NoNode)
}
