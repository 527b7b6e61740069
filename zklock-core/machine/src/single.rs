//! One attempt to hold a lock without a queue: one node of a fixed name, which is there or not.
//!
//! It differs from a [contender](crate::contender) in one thing that changes everything else: its node's name is
//! reused. So a node of that name may be another's, whenever it is met without having just been created. It is looked
//! at before it is deleted or granted, and a hold whose node an operator deleted is not cleaned up blindly.

#[cfg(test)]
mod tests;

use crate::Moment;
use crate::drive::Machine;
use crate::name::{SINGLE_NAME, Uuid};
use crate::protocol::{Node, Now, Operation, Outcome, Patience, Refusal, Verdict, WatchEvent};
use crate::readiness::{Checked, Readiness};
use crate::retry::{Failures, Parented, Parents};
use std::sync::Arc;
use std::time::Duration;

/// What the attempt is about to send, or is waiting for the replies to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Create,
    CreateParents,
    /// The reply to a creation or a deletion was lost, or an operator may have deleted the node.
    Recover,
    /// Whose the node is that was found.
    Adopt,
    /// Whether the node is ours that was found and may not be read.
    Claim,
    /// See when another's node goes.
    Look,
    /// Prove the node and renew the lease, before a grant that could be stale.
    Check,
    /// See whether somebody asks for what we hold.
    Notice,
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    /// There is no session to work with, and so no node.
    Idle,
    Ready(Step),
    InFlight(Step),
    /// After an outcome that is unknown again.
    Paused(Step, Moment),
    /// Until the watch on the directory fires.
    Waiting,
    Held,
    /// Held, and a watch tells when somebody asks for it.
    Noticing,
    Gone,
}

/// One attempt to hold a lock without a queue. A caller that waits is woken by every change, and may be overtaken.
///
/// ```
/// use std::time::Duration;
/// use zklock_machine::Moment;
/// use zklock_machine::drive::Machine;
/// use zklock_machine::protocol::*;
/// use zklock_machine::name::Uuid;
/// use zklock_machine::single::Single;
///
/// let now = Now { moment: Moment::default(), lease_until: Moment::at(Duration::from_secs(5)) };
/// let mut single = Single::new("/a", b"db7/4711"[..].into(), Patience::TriesOnce);
/// single.handle_session(7, Duration::from_secs(1), Uuid::from_random(1));
/// let create = Operation::CreateSingle { path: "/a/lock".to_owned(), data: b"db7/4711"[..].into() };
/// assert_eq!(single.poll_flight(), Some(vec![create]));
/// single.handle_replies(vec![Outcome::NodeExists], now.moment, now);
/// assert_eq!(single.poll_verdict(), Some(Verdict::Failed(Refusal::Busy)));
/// assert!(single.is_gone());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Single {
    directory: Arc<str>,
    /// What its node says.
    data: Arc<[u8]>,
    patience: Patience,
    /// Whether the caller still wants the lock: wants to get it, or has it.
    wanted: bool,
    state: State,
    session: i64,
    mark: Uuid,
    /// The node that is there. It may be another's as long as its origin is not known.
    node: Option<Node>,
    /// When a write was sent that proved the node.
    proven: Option<Moment>,
    /// Whether a node of ours may be there, or another's in its place.
    in_doubt: bool,
    readiness: Readiness,
    failures: Failures,
    parents: Parents,
    verdict: Option<Verdict>,
    answered: bool,
    /// Whether the holder is to be told when somebody asks for what it has.
    is_listening: bool,
}

impl Single {
    /// An attempt that waits for its first session. Its node is to say that.
    pub fn new(directory: &str, data: Arc<[u8]>, patience: Patience) -> Self {
        Self {
            directory: directory.into(),
            data,
            patience,
            wanted: true,
            state: State::Idle,
            session: 0,
            mark: Uuid::from_random(0),
            node: None,
            proven: None,
            in_doubt: false,
            readiness: Readiness::default(),
            failures: Failures::default(),
            parents: Parents::default(),
            verdict: None,
            answered: false,
            is_listening: false,
        }
    }

    fn path(&self) -> String {
        format!("{}/{SINGLE_NAME}", self.directory)
    }

    fn created(&mut self, created: Outcome, sent: Moment, now: Now) {
        match created {
            Outcome::Created(nodes) if nodes.len() == 1 => {
                self.in_doubt = false;
                self.node = nodes.into_iter().next();
                self.proven = Some(sent);
                self.parents.clear();
                if self.is_ours() { self.grant(now) } else { self.go(Step::Adopt) }
            }
            Outcome::NoNode => {
                self.clear();
                self.go(Step::CreateParents);
            }
            Outcome::NodeExists => {
                self.clear();
                self.occupied();
            }
            Outcome::Refused(refusal) => {
                self.clear();
                self.fail(refusal);
            }
            _ => self.retry(Step::Recover, now),
        }
    }

    fn parents_created(&mut self, outcome: Outcome, now: Now) {
        match self.parents.answered(vec![outcome]) {
            Parented::Created => self.go(Step::Create),
            Parented::Failed(refusal) => self.fail(refusal),
            Parented::Unknown => self.retry(Step::CreateParents, now),
        }
    }

    /// A listing from behind a barrier says whether the node is there, but not whose it is.
    fn recovered(&mut self, barrier: &Outcome, listing: Outcome, now: Now) {
        if *barrier != Outcome::Done {
            return self.retry(Step::Recover, now);
        }
        match listing {
            Outcome::Children(children) if children.iter().any(|child| child == SINGLE_NAME) => {
                self.clear();
                self.node = Some(Node { name: SINGLE_NAME.to_owned(), origin: None });
                self.go(Step::Adopt);
            }
            Outcome::Children(_) | Outcome::NoNode => {
                self.clear();
                self.go(Step::Create);
            }
            // We may not list. The node itself tells as much to those who may read it, as the one who created it may.
            Outcome::Refused(_) => {
                self.clear();
                self.node = Some(Node { name: SINGLE_NAME.to_owned(), origin: None });
                self.go(Step::Adopt);
            }
            _ => self.retry(Step::Recover, now),
        }
    }

    fn adopted(&mut self, found: &Outcome, now: Now) {
        match found {
            Outcome::Found(Node { origin: Some(origin), .. }) => {
                if origin.session == self.session {
                    self.node = Some(Node { name: SINGLE_NAME.to_owned(), origin: Some(*origin) });
                    self.grant(now);
                } else {
                    self.clear();
                    self.occupied();
                }
            }
            Outcome::NoNode => {
                self.clear();
                self.go(Step::Create);
            }
            Outcome::Refused(_) => self.state = State::Ready(Step::Claim),
            _ => self.retry(Step::Adopt, now),
        }
    }

    /// Whose the node is that may not be read. If it is ours, its token is not known, so it is no grant.
    fn claimed(&mut self, owns: &Outcome, now: Now) {
        match owns {
            Outcome::Done => self.state = State::Ready(Step::Delete),
            Outcome::NoNode => {
                self.clear();
                if self.wanted { self.occupied() } else { self.clean_up() }
            }
            _ => self.retry(Step::Adopt, now),
        }
    }

    /// Another has the node.
    fn occupied(&mut self) {
        match self.patience {
            Patience::TriesOnce => self.fail(Refusal::Busy),
            Patience::Waits => self.go(Step::Look),
        }
    }

    fn on_listing(&mut self, listing: Outcome, now: Now) {
        match listing {
            Outcome::Children(children) if children.iter().any(|child| child == SINGLE_NAME) => {
                self.failures.clear();
                if self.wanted { self.state = State::Waiting } else { self.clean_up() }
            }
            Outcome::Children(_) | Outcome::NoNode => self.go(Step::Create),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Look, now),
        }
    }

    /// The node is ours.
    fn grant(&mut self, now: Now) {
        self.failures.clear();
        if self.readiness.is_there(self.proven, now) { self.granted() } else { self.go(Step::Check) }
    }

    /// A check alone is passed by whatever has the path, so the node is looked at beside.
    fn checked(&mut self, checked: Outcome, inspected: Outcome, sent: Moment, now: Now) {
        let outcome = match (checked, inspected) {
            (Outcome::Done, Outcome::Found(found)) => {
                let is_same = self.node.as_ref().is_some_and(|own| own.origin == found.origin);
                if is_same { Outcome::Done } else { Outcome::NoNode }
            }
            (Outcome::Done, inspected) => inspected,
            (checked, _) => checked,
        };
        match outcome {
            Outcome::Done => {
                self.proven = Some(sent);
                self.failures.clear();
                match self.readiness.after_check(now) {
                    Checked::Ready => self.granted(),
                    Checked::Again(at) => self.go_at(Step::Check, at),
                }
            }
            Outcome::NoNode => {
                self.clear();
                self.go(Step::Create);
            }
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Check, now),
        }
    }

    fn granted(&mut self) {
        let origin = self.node.as_ref().and_then(|node| node.origin);
        let (true, Some(origin), Some(proven)) = (self.wanted, origin, self.proven) else {
            return self.clean_up();
        };
        self.verdict = Some(Verdict::Granted { nodes: vec![self.path()], czxid: origin.czxid, proven });
        self.answered = true;
        self.failures.clear();
        self.readiness.clear();
        // Once an operator has deleted it, another may have a node of this path.
        self.in_doubt = true;
        self.state = if self.is_listening { State::Ready(Step::Notice) } else { State::Held };
    }

    /// Nobody queues here. But somebody may [ask](crate::protocol::REVOKE) in the node.
    fn noticed(&mut self, outcome: &Outcome, now: Now) {
        if !self.wanted {
            return self.clean_up();
        }
        match outcome {
            Outcome::Revoked => {
                self.verdict = Some(Verdict::Wanted);
                self.state = State::Held;
            }
            Outcome::Unknown => self.retry(Step::Notice, now),
            // Nobody asks; or the node is gone, or we may not read it, and then nobody can.
            _ => {
                self.failures.clear();
                self.state = State::Noticing;
            }
        }
    }

    fn on_deleted(&mut self, outcome: Outcome, now: Now) {
        if matches!(outcome, Outcome::Done | Outcome::NoNode) {
            self.clear();
            return self.go(Step::Create);
        }
        // If the deletion was executed, what has this path may be another's by now.
        self.in_doubt = true;
        if let Outcome::Refused(refusal) = outcome {
            self.fail(refusal);
        }
        self.retry(Step::Recover, now);
    }

    fn fail(&mut self, refusal: Refusal) {
        if self.wanted && !self.answered {
            self.verdict = Some(Verdict::Failed(refusal));
            self.answered = true;
        }
        self.wanted = false;
        self.clean_up();
    }

    /// No node of ours is there, nor will be.
    fn clear(&mut self) {
        (self.node, self.proven, self.in_doubt) = (None, None, false);
    }

    /// Whether the server has said that the node is of our session.
    fn is_ours(&self) -> bool {
        let origin = self.node.as_ref().and_then(|node| node.origin);
        origin.is_some_and(|origin| origin.session == self.session)
    }

    fn go(&mut self, step: Step) {
        if self.wanted {
            self.state = State::Ready(step);
        } else {
            self.clean_up();
        }
    }

    /// Goes on with that step, or with the cleaning, but not before that time.
    fn go_at(&mut self, step: Step, at: Option<Moment>) {
        self.go(step);
        if let (State::Ready(step), Some(at)) = (self.state, at) {
            self.state = State::Paused(step, at);
        }
    }

    fn retry(&mut self, step: Step, now: Now) {
        let at = self.failures.next_try(now.moment);
        self.go_at(step, at);
    }

    /// What is left to do for a caller that is gone.
    fn clean_up(&mut self) {
        self.state = if self.in_doubt {
            State::Ready(Step::Recover)
        } else if self.node.is_none() {
            State::Gone
        } else if self.is_ours() {
            State::Ready(Step::Delete)
        } else {
            State::Ready(Step::Adopt)
        };
    }
}

impl Machine for Single {
    type Verdict = Verdict;

    fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    fn mark(&self) -> Uuid {
        self.mark
    }

    fn poll_verdict(&mut self) -> Option<Verdict> {
        self.verdict.take()
    }

    fn poll_flight(&mut self) -> Option<Vec<Operation>> {
        let State::Ready(step) = self.state else { return None };
        let (directory, path) = (self.directory.clone(), self.path());
        self.state = State::InFlight(step);
        self.in_doubt |= step == Step::Create;
        Some(match step {
            Step::Create => vec![Operation::CreateSingle { path, data: self.data.clone() }],
            Step::CreateParents => vec![Operation::CreateParents { directory }],
            Step::Recover => {
                vec![Operation::Barrier { directory: directory.clone() }, Operation::List { directory }]
            }
            Step::Adopt => vec![Operation::Inspect { path }],
            Step::Claim => vec![Operation::Owns { path }],
            Step::Look => vec![Operation::ListAndWatch { directory }],
            Step::Check => {
                vec![Operation::Check { paths: vec![path.clone()] }, Operation::Inspect { path }]
            }
            Step::Notice => vec![Operation::WatchOwn { path }],
            Step::Delete => vec![Operation::Delete { path }],
        })
    }

    fn poll_timeout(&self) -> Option<Moment> {
        match self.state {
            State::Paused(_, until) => Some(until),
            _ => None,
        }
    }

    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: Uuid) {
        if self.state == State::Idle {
            (self.session, self.mark) = (session, uuid);
            self.readiness.set_heartbeat(heartbeat);
            self.state = State::Ready(Step::Create);
        }
    }

    fn handle_session_over(&mut self) {
        self.clear();
        self.failures.clear();
        self.state = if self.wanted && !self.answered { State::Idle } else { State::Gone };
    }

    fn handle_end(&mut self) {
        self.wanted = false;
        match self.state {
            // What is under way decides what is left to do.
            State::InFlight(_) | State::Gone | State::Paused(Step::Recover, _) => {}
            _ => self.clean_up(),
        }
    }

    fn handle_notice(&mut self) {
        if !self.is_listening && self.state == State::Held {
            self.state = State::Ready(Step::Notice);
        }
        self.is_listening = true;
    }

    fn handle_timeout(&mut self, now: Moment) {
        if let State::Paused(step, until) = self.state {
            if now >= until {
                self.state = State::Ready(step);
            }
        }
    }

    fn handle_watch(&mut self, _: WatchEvent, _: Now) {
        match self.state {
            State::Waiting => self.state = State::Ready(Step::Create),
            State::Noticing => self.state = State::Ready(Step::Notice),
            _ => {}
        }
    }

    fn handle_replies(&mut self, outcomes: Vec<Outcome>, sent: Moment, now: Now) {
        let State::InFlight(step) = self.state else { return };
        if outcomes.contains(&Outcome::SessionOver) {
            return self.handle_session_over();
        }
        let mut outcomes = outcomes.into_iter();
        let mut next = || outcomes.next().unwrap_or(Outcome::Unknown);
        match step {
            Step::Create => self.created(next(), sent, now),
            Step::CreateParents => self.parents_created(next(), now),
            Step::Recover => self.recovered(&next(), next(), now),
            Step::Adopt => self.adopted(&next(), now),
            Step::Claim => self.claimed(&next(), now),
            Step::Look => self.on_listing(next(), now),
            Step::Check => self.checked(next(), next(), sent, now),
            Step::Notice => self.noticed(&next(), now),
            Step::Delete => self.on_deleted(next(), now),
        }
    }
}
