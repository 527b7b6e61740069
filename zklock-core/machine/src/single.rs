//! One attempt to hold a lock without a queue: a single node of a fixed name, which exists or not.
//!
//! Unlike the nodes of a [contender](crate::contender), this node has a name that is used again and again. So unless the
//! attempt has just created it, a node of that name may belong to somebody else. A server's answer does not settle whose it
//! is: a server that has lost a deletion still shows a node of ours that is gone. If we deleted that again, the leader
//! would delete the node that somebody else has there by now.
//!
//! So each attempt creates a *companion* in the same transaction: a second node, whose [name](crate::name::companion) no
//! other attempt has. Both are deleted in one transaction as well, which fails at the companion if ours are already gone. A
//! node without our companion is not ours, even if a server says so. And since one transaction creates both, they have the
//! same `czxid`. That tells our node from one that was created after an operator had deleted ours.
//!
//! ```text
//!  Idle --> Create -- created --> Check? --> Held --> Recover --> Delete both, or what is left --> Gone
//!             | ^ \-- exists --> Look --> Waiting
//!             | +----- gone ---------------/
//!             +-- reply lost --> Recover, Claim --> (as created, or Create)
//! ```
//!
//! Servers of version 3.4 do not accept such a transaction. There the node is alone, and is read before it is deleted or
//! granted.

#[cfg(test)]
mod tests;

mod doubt;

use crate::Moment;
use crate::drive::Machine;
use crate::flow::{Flow, State, frame, steps};
use crate::name::{SINGLE_NAME, Uuid, companion};
use crate::protocol::{Now, Operation, Origin, Outcome, Patience, Refusal, Verdict, WatchEvent};
use crate::readiness::Checked;
use crate::retry::Parented;
use doubt::{origin_of, stands_for};
use std::sync::Arc;
use std::time::Duration;

/// A flight that the attempt is about to send, or waits for replies to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Create,
    CreateParents,
    /// See which of our nodes exist: the reply to a creation or a deletion was lost, or an operator may have deleted
    /// something.
    Recover,
    /// Ask whether the nodes are ours, if we may not read them.
    Claim,
    /// See whether another's node still exists, and watch for its end.
    Look,
    /// Prove the node and renew the lease, before a grant that could be stale.
    Check,
    /// See whether somebody asks for the lock that we hold.
    Notice,
    Delete(Victim),
}

/// The nodes to delete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Victim {
    /// The node and its companion, or neither.
    Both,
    /// The companion. If anything of ours is left, it is this: nobody else has a node of its name.
    Companion,
    /// The node. It has no companion, or an operator has deleted the companion.
    Node,
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
    data: Arc<[u8]>,
    /// Its mark is in the name of the companion.
    flow: Flow<Step>,
    /// Whether a companion with this mark may exist, or have existed.
    is_marked: bool,
    has_companion: bool,
    /// Whether the next node gets no companion, because the servers are too old.
    is_old: bool,
    /// The origin of our node and its companion, once it is known.
    origin: Option<Origin>,
    /// When a write that proved the node was sent.
    proven: Option<Moment>,
    /// Whether it is not known which of our nodes exist.
    in_doubt: bool,
    /// Whether the holder wants to learn when somebody asks for the lock.
    is_listening: bool,
}

impl Single {
    steps!();

    /// Creates an attempt that waits for its first session. Its node gets this `data`.
    pub fn new(directory: &str, data: Arc<[u8]>, patience: Patience) -> Self {
        Self {
            directory: directory.into(),
            data,
            flow: Flow::new(patience),
            is_marked: false,
            has_companion: true,
            is_old: false,
            origin: None,
            proven: None,
            in_doubt: false,
            is_listening: false,
        }
    }

    fn path(&self) -> String {
        format!("{}/{SINGLE_NAME}", self.directory)
    }

    fn companion(&self) -> Option<String> {
        self.has_companion.then(|| format!("{}/{}", self.directory, companion(self.flow.mark)))
    }

    /// Returns the paths of all our nodes. The node itself comes first, because it is the one that users know.
    fn paths(&self) -> Vec<String> {
        std::iter::once(self.path()).chain(self.companion()).collect()
    }

    /// Takes a new mark for a creation.
    fn renew_mark(&mut self) {
        // Nodes with an earlier mark are gone, and must not be mistaken for the new ones.
        if self.is_marked {
            self.flow.mark = self.flow.mark.next();
        }
        (self.is_marked, self.in_doubt, self.has_companion) = (true, true, !self.is_old);
    }

    /// Handles the reply to the creation. If it does not report the origin of the node, `inspected` does.
    fn created(&mut self, created: Outcome, inspected: &Outcome, sent: Moment, now: Now) {
        match created {
            Outcome::Created(nodes) if nodes.len() == self.paths().len() => {
                self.proven = Some(sent);
                self.flow.parents.clear();
                let told = nodes.last().and_then(|node| node.origin).or_else(|| origin_of(inspected));
                match told.filter(|origin| origin.session == self.flow.session) {
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

    /// Waits or fails, because somebody else has the node.
    fn occupied(&mut self) {
        match self.flow.patience {
            Patience::TriesOnce => self.fail(Refusal::Busy),
            Patience::Waits => self.go(Step::Look),
        }
    }

    fn on_listing(&mut self, listing: Outcome, now: Now) {
        match listing {
            Outcome::Children(children) if children.iter().any(|child| child == SINGLE_NAME) => {
                self.flow.failures.clear();
                self.wait(None, Step::Create);
            }
            Outcome::Children(_) | Outcome::NoNode => self.go(Step::Create),
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Look, now),
        }
    }

    /// Goes on with our nodes, which exist and have this origin.
    fn own(&mut self, origin: Origin, now: Now) {
        (self.origin, self.in_doubt) = (Some(origin), false);
        if self.flow.readiness.is_there(self.proven, now) { self.granted() } else { self.go(Step::Check) }
    }

    /// Handles the outcome of a check.
    fn checked(&mut self, checked: Outcome, inspected: Outcome, sent: Moment, now: Now) {
        // Any node of this path passes it, so the node was also inspected.
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
                self.flow.failures.clear();
                match self.flow.readiness.after_check(now) {
                    Checked::Ready => self.granted(),
                    Checked::Again(at) => self.go_at(Step::Check, at),
                }
            }
            // One of the two is gone, or not ours. Whatever is left of ours must not stay.
            Outcome::NoNode => {
                (self.in_doubt, self.proven) = (true, None);
                self.retry(Step::Recover, now);
            }
            Outcome::Refused(refusal) => self.fail(refusal),
            _ => self.retry(Step::Check, now),
        }
    }

    fn granted(&mut self) {
        debug_assert!(!self.in_doubt, "they are known to be ours");
        let (true, Some(origin), Some(proven)) = (self.flow.wanted, self.origin, self.proven) else {
            return self.clean_up();
        };
        let nodes = self.paths();
        self.flow.grant(Verdict::Granted { nodes, czxid: origin.czxid, proven, ignored: Vec::new() });
        // From now on, an operator may delete the node, and somebody else may create one of this path.
        self.in_doubt = true;
        self.flow.state = if self.is_listening { State::Ready(Step::Notice) } else { State::Held };
    }

    /// Nobody queues here, but somebody may [ask](crate::protocol::REVOKE) for the lock by writing into the node.
    fn noticed(&mut self, outcome: &Outcome, now: Now) {
        if !self.flow.wanted {
            return self.clean_up();
        }
        match outcome {
            Outcome::Revoked => {
                self.flow.verdict = Some(Verdict::Wanted);
                self.flow.state = State::Held;
            }
            Outcome::NoNode => self.deleted(),
            Outcome::Unknown => self.retry(Step::Notice, now),
            // Nobody has asked. Or we may not read the node, and then we cannot be asked.
            _ => {
                self.flow.failures.clear();
                self.flow.state = State::Noticing;
            }
        }
    }

    /// Forgets our nodes, because none exists or will exist.
    fn clear(&mut self) {
        (self.origin, self.proven, self.in_doubt) = (None, None, false);
    }

    /// Chooses what is left to do after the caller has gone.
    fn clean_up(&mut self) {
        self.flow.state = match (self.in_doubt, self.origin) {
            (true, _) => State::Ready(Step::Recover),
            (false, None) => State::Gone,
            (false, Some(_)) => State::Ready(self.delete_ours()),
        };
    }

    /// Deletes our nodes, which are known to exist.
    fn delete_ours(&self) -> Step {
        Step::Delete(if self.has_companion { Victim::Both } else { Victim::Node })
    }
}

impl Machine for Single {
    frame!(Step::Recover);

    fn poll_flight(&mut self) -> Option<Vec<Operation>> {
        let State::Ready(step) = self.flow.state else { return None };
        if step == Step::Create {
            self.renew_mark();
        }
        let (directory, path, companion) = (self.directory.clone(), self.path(), self.companion());
        let inspect = |path| Operation::Inspect { path };
        self.flow.state = State::InFlight(step);
        Some(match (step, companion) {
            (Step::Create, Some(companion)) => {
                let inspect = inspect(companion.clone());
                vec![Operation::CreatePair { path, companion, data: self.data.clone() }, inspect]
            }
            (Step::Create, None) => {
                vec![Operation::CreateSingle { path: path.clone(), data: self.data.clone() }, inspect(path)]
            }
            (Step::CreateParents, _) => vec![Operation::CreateParents { directory }],
            // The companion first: if it is gone, and our node still exists after that, the companion was deleted alone.
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

    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: Uuid) {
        if self.flow.state == State::Idle {
            (self.flow.session, self.flow.mark, self.is_marked) = (session, uuid, false);
            self.flow.readiness.set_heartbeat(heartbeat);
            self.flow.state = State::Ready(Step::Create);
        }
    }

    fn handle_old_servers(&mut self) {
        self.is_old = true;
    }

    fn handle_session_over(&mut self) {
        self.clear();
        self.leave_session();
    }

    fn handle_notice(&mut self) {
        if !self.is_listening && self.flow.state == State::Held {
            self.flow.state = State::Ready(Step::Notice);
        }
        self.is_listening = true;
    }

    fn handle_watch(&mut self, event: WatchEvent, _: Now) {
        match self.flow.state {
            State::Waiting { look, .. } => self.flow.state = State::Ready(look),
            State::Noticing if event == WatchEvent::Deleted => self.deleted(),
            State::Noticing => self.flow.state = State::Ready(Step::Notice),
            _ => {}
        }
    }

    fn handle_replies(&mut self, outcomes: Vec<Outcome>, sent: Moment, now: Now) {
        let State::InFlight(step) = self.flow.state else { return };
        if outcomes.contains(&Outcome::SessionOver) {
            // Then it does not matter what else was done: it is gone with the session.
            return self.handle_session_over();
        }
        let mut outcomes = outcomes.into_iter();
        let mut next = || outcomes.next().unwrap_or(Outcome::Unknown);
        match step {
            Step::Create => self.created(next(), &next(), sent, now),
            Step::CreateParents => self.parents_answered(vec![next()], Step::Create, step, now),
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
