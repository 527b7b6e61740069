//! One attempt to hold a lock without a queue: one node of a fixed name, which is there or not.
//!
//! It differs from a [contender](crate::contender) in one thing that changes everything else: its node's name is
//! reused. So a node of that name may be another's, whenever it is met without having just been created. What a server
//! shows does not settle whose it is: a server that has lost a deletion goes on to show a node of ours that is gone, and
//! if we deleted that again, the leader would delete what another has there by now.
//!
//! So each attempt creates a *companion* together with the node, in one transaction: a second node, whose
//! [name](crate::name::companion) no other attempt has. The two are deleted in one transaction as well, which fails at the
//! companion if ours are gone already. A node without our companion is not ours, even if its server says that it is. And
//! since the two come from one transaction, they have one `czxid`, by which a node is told from one that was created
//! after an operator had deleted it.
//!
//! Servers of 3.4 do not take such a transaction from us. There the node is alone, and is looked at before it is deleted
//! or granted.

#[cfg(test)]
mod tests;

mod doubt;

use crate::Moment;
use crate::drive::Machine;
use crate::name::{SINGLE_NAME, Uuid, companion};
use crate::protocol::{Now, Operation, Origin, Outcome, Patience, Refusal, Verdict, WatchEvent};
use crate::readiness::{Checked, Readiness};
use crate::retry::{Failures, Parented, Parents};
use doubt::{origin_of, stands_for};
use std::sync::Arc;
use std::time::Duration;

/// What the attempt is about to send, or is waiting for the replies to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Create,
    CreateParents,
    /// See what of ours is there: the reply to a creation or a deletion was lost, or an operator may have deleted something.
    Recover,
    /// Whether what is there is ours, where it may not be read.
    Claim,
    /// See when another's node goes.
    Look,
    /// Prove the node and renew the lease, before a grant that could be stale.
    Check,
    /// See whether somebody asks for what we hold.
    Notice,
    Delete(Victim),
}

/// What is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Victim {
    /// The node and its companion, or none of them.
    Both,
    /// The companion is all that is left of ours, if anything is. Nobody else has one of its name.
    Companion,
    /// The node has no companion, or an operator has deleted that.
    Node,
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
/// let flight = single.poll_flight().unwrap();
/// assert!(matches!(&flight[..], [Operation::CreatePair { path, .. }, Operation::Inspect { .. }] if path == "/a/lock"));
/// single.handle_replies(vec![Outcome::NodeExists, Outcome::NoNode], now.moment, now);
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
    /// That of the companion.
    mark: Uuid,
    /// Whether a companion with this mark may be there, or have been there.
    is_marked: bool,
    has_companion: bool,
    /// Whether the next node has none.
    is_old: bool,
    /// Where our node comes from, and its companion, as soon as that is known.
    origin: Option<Origin>,
    /// When a write was sent that proved the node.
    proven: Option<Moment>,
    /// Whether it is not known what of ours is there.
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
            is_marked: false,
            has_companion: true,
            is_old: false,
            origin: None,
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

    fn companion(&self) -> Option<String> {
        self.has_companion.then(|| format!("{}/{}", self.directory, companion(self.mark)))
    }

    /// The paths of all that is ours. The node is the first: it is the one that users know.
    fn paths(&self) -> Vec<String> {
        std::iter::once(self.path()).chain(self.companion()).collect()
    }

    /// Before a creation. What has the mark of an earlier one is gone, and must not be taken for that of this one.
    fn renew_mark(&mut self) {
        if self.is_marked {
            self.mark = self.mark.next();
        }
        (self.is_marked, self.in_doubt, self.has_companion) = (true, true, !self.is_old);
    }

    /// The look beside it tells what the servers that we have do not tell of a creation.
    fn created(&mut self, created: Outcome, inspected: &Outcome, sent: Moment, now: Now) {
        match created {
            Outcome::Created(nodes) if nodes.len() == self.paths().len() => {
                self.proven = Some(sent);
                self.parents.clear();
                let told = nodes.last().and_then(|node| node.origin).or_else(|| origin_of(inspected));
                match told.filter(|origin| origin.session == self.session) {
                    Some(origin) => self.own(origin, now),
                    None => self.retry(Step::Recover, now),
                }
            }
            Outcome::NoNode => {
                self.nothing_created();
                self.go(Step::CreateParents);
            }
            Outcome::NodeExists => {
                self.nothing_created();
                self.occupied();
            }
            Outcome::Refused(refusal) => {
                self.nothing_created();
                self.fail(refusal);
            }
            _ => self.retry(Step::Recover, now),
        }
    }

    fn nothing_created(&mut self) {
        self.clear();
        self.is_marked = false;
    }

    fn parents_created(&mut self, outcome: Outcome, now: Now) {
        match self.parents.answered(vec![outcome]) {
            Parented::Created => self.go(Step::Create),
            Parented::Failed(refusal) => self.fail(refusal),
            Parented::Unknown => self.retry(Step::CreateParents, now),
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

    /// The node is ours, and so is its companion.
    fn own(&mut self, origin: Origin, now: Now) {
        (self.origin, self.in_doubt) = (Some(origin), false);
        if self.readiness.is_there(self.proven, now) { self.granted() } else { self.go(Step::Check) }
    }

    /// A check alone is passed by whatever has the path of the node, so the node is looked at beside.
    fn checked(&mut self, checked: Outcome, inspected: Outcome, sent: Moment, now: Now) {
        let outcome = match (checked, inspected) {
            (Outcome::Done, found @ Outcome::Found(_)) => {
                let is_ours = self.origin.is_some_and(|origin| stands_for(origin, &found));
                if is_ours { Outcome::Done } else { Outcome::NoNode }
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
            // One of the two is gone, or another's. What is left of ours must not stay.
            Outcome::NoNode => {
                (self.in_doubt, self.proven) = (true, None);
                self.retry(Step::Recover, now);
            }
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Check, now),
        }
    }

    fn granted(&mut self) {
        let (true, Some(origin), Some(proven)) = (self.wanted, self.origin, self.proven) else {
            return self.clean_up();
        };
        self.verdict = Some(Verdict::Granted { nodes: self.paths(), czxid: origin.czxid, proven });
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

    fn fail(&mut self, refusal: Refusal) {
        if self.wanted && !self.answered {
            self.verdict = Some(Verdict::Failed(refusal));
            self.answered = true;
        }
        self.wanted = false;
        self.clean_up();
    }

    /// Nothing of ours is there, nor will be.
    fn clear(&mut self) {
        (self.origin, self.proven, self.in_doubt) = (None, None, false);
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
        self.state = match (self.in_doubt, self.origin) {
            (true, _) => State::Ready(Step::Recover),
            (false, None) => State::Gone,
            (false, Some(_)) => self.delete_ours(),
        };
    }

    /// After the answer that all of ours is there.
    fn delete_ours(&self) -> State {
        State::Ready(Step::Delete(if self.has_companion { Victim::Both } else { Victim::Node }))
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
        if step == Step::Create {
            self.renew_mark();
        }
        let (directory, path, companion) = (self.directory.clone(), self.path(), self.companion());
        let inspect = |path| Operation::Inspect { path };
        self.state = State::InFlight(step);
        Some(match (step, companion) {
            (Step::Create, Some(companion)) => {
                let inspect = inspect(companion.clone());
                vec![Operation::CreatePair { path, companion, data: self.data.clone() }, inspect]
            }
            (Step::Create, None) => {
                vec![Operation::CreateSingle { path: path.clone(), data: self.data.clone() }, inspect(path)]
            }
            (Step::CreateParents, _) => vec![Operation::CreateParents { directory }],
            // The companion first: if it is gone, and our node is still there after that, it has gone alone.
            (Step::Recover, companion) => {
                let looks = companion.into_iter().chain([path]).map(inspect);
                std::iter::once(Operation::Barrier { directory }).chain(looks).collect()
            }
            (Step::Claim, companion) => {
                companion.into_iter().chain([path]).map(|path| Operation::Owns { path }).collect()
            }
            (Step::Look, _) => vec![Operation::ListAndWatch { directory }],
            (Step::Check, _) => vec![Operation::Check { paths: self.paths() }, inspect(path)],
            (Step::Notice, _) => vec![Operation::WatchOwn { path }],
            (Step::Delete(Victim::Both), Some(companion)) => vec![Operation::DeletePair { path, companion }],
            (Step::Delete(Victim::Companion), Some(path)) => vec![Operation::Delete { path }],
            (Step::Delete(_), _) => vec![Operation::Delete { path }],
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
            (self.session, self.mark, self.is_marked) = (session, uuid, false);
            self.readiness.set_heartbeat(heartbeat);
            self.state = State::Ready(Step::Create);
        }
    }

    fn handle_old_servers(&mut self) {
        self.is_old = true;
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
            Step::Create => self.created(next(), &next(), sent, now),
            Step::CreateParents => self.parents_created(next(), now),
            Step::Recover => {
                let barrier = next();
                let companion = self.has_companion.then(&mut next);
                self.recovered(&barrier, companion.as_ref(), &next(), now);
            }
            Step::Claim => {
                let companion = self.has_companion.then(&mut next);
                self.claimed(companion.as_ref(), &next(), now);
            }
            Step::Look => self.on_listing(next(), now),
            Step::Check => self.checked(next(), next(), sent, now),
            Step::Notice => self.noticed(&next(), now),
            Step::Delete(victim) => self.on_deleted(victim, next(), now),
        }
    }
}
