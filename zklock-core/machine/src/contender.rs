//! One attempt to hold a lock, from the creation of its node to its deletion.
//!
//! The simple way, a function that creates, lists and waits, loses its node wherever it is
//! interrupted: a reply that never comes, a caller that gives up between two lines, a session that
//! ends while a request is under way. So the attempt is a state machine that knows at every moment
//! whether a node of its own is there, may be there, or is not there, and that is not
//! [gone](Contender::is_gone) before the node is.
//!
//! There is one machine for all kinds: an attempt has one claim or several, a mutex is a set of one.
//!
//! * `enter`: how an attempt gets its nodes, and finds them again
//! * `turn`: how it waits for its turn in each queue, takes permits, and is granted
//! * `nodes`: which nodes are there, may be there, or are to be
//! * `renew`: what to do where a directory has no numbers left

mod enter;
mod nodes;
mod renew;
#[cfg(test)]
mod tests;
mod turn;

use super::Moment;
use super::claim::Claim;
use super::exchange::{Now, Operation, Outcome, Patience, Refusal, Verdict, WatchEvent};
use super::name::Uuid;
use nodes::Nodes;
use std::time::Duration;

/// What the contender is about to send, or is waiting for the replies to. Numbers are those of claims.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Enter,
    CreateParents(Stage),
    /// The reply to a creation was lost.
    Recover(Stage),
    /// Who owns the nodes that were found again, and where they stand.
    Adopt(Stage),
    Look(usize),
    Watch {
        claim: usize,
        name: String,
        alone: bool,
    },
    LookAndWatch(usize),
    /// Delete a directory whose numbers are used up.
    Renew(usize),
    /// See who is still in a directory whose numbers are used up.
    Drain(usize),
    /// See whether there are permits, before a try waits for its turn to take them.
    Peek(usize),
    /// Create the permits and count.
    Take,
    Count(usize),
    /// Prove the own nodes and renew the lease, before a grant that could be stale.
    Check,
    /// Leave the queues of semaphores whose permits we hold.
    Unqueue,
    /// Leave, to enter again.
    Clear,
    Leave,
}

/// Which of the nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    Queue,
    Permits,
}

impl Stage {
    /// The step that creates them.
    fn creation(self) -> Step {
        match self {
            Self::Queue => Step::Enter,
            Self::Permits => Step::Take,
        }
    }
}

/// Where we stand in a queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Turn {
    Unknown,
    Waits { watch: String, alone: bool },
    Holds,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    /// There is no session to work with, and so no node.
    Idle,
    Ready(Step),
    InFlight(Step),
    /// After an outcome that is unknown again, so that a sick server is not asked in a loop.
    Paused(Step, Moment),
    /// Until the watch tells. If what it tells is that the watched node is gone, it is our turn in the
    /// queue of the claim `passes`.
    Waiting {
        passes: Option<usize>,
        look: Step,
    },
    Held,
    Gone,
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
/// use zklock_machine::contender::Contender;
/// use zklock_machine::exchange::*;
/// use zklock_machine::claim::Claim;
/// use zklock_machine::name::{Scheme, Uuid};
/// use zklock_machine::Moment;
///
/// let now = Now { moment: Moment::default(), lease_until: Moment::at(Duration::from_secs(5)) };
/// let mut contender = Contender::new(vec![Claim::new("/a", Scheme::Mutex)], Patience::Waits);
/// contender.handle_session(7, Duration::from_secs(1), Uuid::from_random(1));
/// let flight = contender.poll_flight().unwrap();
/// assert!(matches!(&flight[..], [Operation::Create(_), Operation::List { .. }]));
///
/// let name = "_c_00000000-0000-4000-8000-000000000001-lock-0000000000".to_owned();
/// let origin = Some(Origin { czxid: 42, session: 7 });
/// let created = Outcome::Created(vec![Node { name: name.clone(), origin }]);
/// contender.handle_replies(vec![created, Outcome::Children(vec![name])], now.moment, now);
/// assert!(matches!(contender.poll_verdict(), Some(Verdict::Granted { czxid: 42, .. })));
///
/// contender.handle_end();
/// assert!(matches!(&contender.poll_flight().unwrap()[..], [Operation::Delete { .. }]));
/// contender.handle_replies(vec![Outcome::Done], now.moment, now);
/// assert!(contender.is_gone());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Contender {
    claims: Vec<Claim>,
    patience: Patience,
    /// Whether the caller still wants the lock: wants to get it, or has it.
    wanted: bool,
    state: State,
    session: i64,
    heartbeat: Duration,
    uuid: Uuid,
    /// A place in the queue of each claim.
    queue: Nodes,
    permits: Nodes,
    /// Where we stand in the queue of each claim.
    turns: Vec<Turn>,
    /// The claims of which there are permits for us.
    counted: Vec<usize>,
    /// The claim whose directory has no numbers left for us.
    used_up: Option<usize>,
    verdict: Option<Verdict>,
    answered: bool,
    /// Unknown outcomes since the last that was known.
    failures: u32,
    /// Checks in a row that left less of the lease than a holder should begin with.
    scant: u32,
    /// How often since a node was there.
    parents_created: u32,
}

/// How often the parents are created again before the attempt fails: the server may reap an empty
/// container between two of our requests, but not for ever.
const PARENTS_AT_MOST: u32 = 16;
/// How many checks are made for a longer lease: more than it takes to renew one that has lapsed.
const SCANT_AT_MOST: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(640);

impl Contender {
    /// An attempt that waits for its first session. There is at least one claim; one on a lock without a queue,
    /// or within a writer, is the only one.
    pub fn new(claims: Vec<Claim>, patience: Patience) -> Self {
        let (queue, permits) = (Nodes::default(), Nodes::default());
        Self {
            claims,
            patience,
            wanted: true,
            state: State::Idle,
            session: 0,
            heartbeat: Duration::ZERO,
            uuid: Uuid::from_random(0),
            queue,
            permits,
            turns: Vec::new(),
            counted: Vec::new(),
            used_up: None,
            verdict: None,
            answered: false,
            failures: 0,
            scant: 0,
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

    /// The mark of the nodes that are there, or may be. Nodes with an earlier one are gone.
    pub fn mark(&self) -> Uuid {
        self.uuid
    }

    /// What the caller is to be told; it comes once.
    pub fn poll_verdict(&mut self) -> Option<Verdict> {
        self.verdict.take()
    }

    /// What to send now. A watch that was left before is of no use any more.
    pub fn poll_flight(&mut self) -> Option<Vec<Operation>> {
        let State::Ready(step) = &self.state else { return None };
        let step = step.clone();
        let flight = match &step {
            Step::Enter => self.entry(),
            Step::CreateParents(stage) => self.parents(*stage),
            Step::Recover(stage) => self.recovery(*stage),
            Step::Adopt(stage) => self.adoption(*stage),
            Step::Look(claim) => vec![Operation::List { directory: self.directory(*claim) }],
            Step::Watch { claim, name, .. } => {
                vec![Operation::Watch { path: format!("{}/{name}", self.directory(*claim)) }]
            }
            Step::LookAndWatch(claim) | Step::Drain(claim) => {
                vec![Operation::ListAndWatch { directory: self.directory(*claim) }]
            }
            Step::Renew(claim) => vec![Operation::DeleteDirectory { directory: self.directory(*claim) }],
            Step::Peek(claim) => self.peek(*claim),
            Step::Take => self.taking(),
            Step::Count(claim) => self.count(*claim),
            Step::Check => self.proof(),
            Step::Unqueue => self.making_way(),
            Step::Clear | Step::Leave => {
                // The place in the queue last: the next head of the queue counts the permits.
                let paths = self.permits.paths().chain(self.queue.paths());
                paths.map(|path| Operation::Delete { path }).collect()
            }
        };
        match step {
            Step::Enter => self.queue.is_open = true,
            Step::Take => self.permits.is_open = true,
            _ => {}
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
            self.mark_with(uuid);
            self.state = State::Ready(Step::Enter);
        }
    }

    /// The session is over, and with it its nodes: an attempt that waits begins again in the next.
    pub fn handle_session_over(&mut self) {
        self.forget();
        self.failures = 0;
        if self.claims[0].within.is_some() {
            // The writer's node was in this session.
            self.fail(Refusal::WriterGone);
        }
        self.state = if self.wanted && !self.answered { State::Idle } else { State::Gone };
    }

    /// The nodes are not wanted any more: the caller gave up, its time is over, or the hold was
    /// released or lost.
    pub fn handle_end(&mut self) {
        self.wanted = false;
        match self.state {
            // What is under way decides what is left to do.
            State::InFlight(_) | State::Gone => {}
            State::Paused(Step::Leave | Step::Recover(_), _) => {}
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

    /// A watch that was asked for has fired.
    pub fn handle_watch(&mut self, event: WatchEvent, now: Now) {
        if let State::Waiting { passes, look } = &self.state {
            match (event, passes) {
                // Names never come back, so what is deleted stays away; and nobody else was ahead.
                (WatchEvent::Deleted, Some(claim)) => self.pass(*claim, now),
                _ => self.state = State::Ready(look.clone()),
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
        let mut rest = outcomes.into_iter();
        let mut first = || rest.next().unwrap_or(Outcome::Unknown);
        match step {
            Step::Enter => self.entered(first(), rest.collect(), sent, now),
            Step::CreateParents(stage) => self.parents_answered(stage, rest.collect(), now),
            Step::Recover(stage) => self.recovered(stage, &first(), rest.collect(), now),
            Step::Adopt(stage) => self.adopted(stage, rest.collect(), now),
            Step::Look(claim) => self.looked(claim, first(), now),
            Step::Watch { claim, alone, .. } => self.watched(claim, alone, first(), now),
            Step::LookAndWatch(claim) => self.looked_and_watched(claim, first(), now),
            Step::Renew(claim) => self.renewed(claim, &first(), now),
            Step::Drain(claim) => self.drained(claim, first(), now),
            Step::Peek(claim) => self.peeked(claim, rest.collect(), now),
            Step::Take => self.taken(first(), rest.collect(), sent, now),
            Step::Count(claim) => self.counted(claim, rest.collect(), now),
            Step::Check => self.checked(first(), rest.next(), sent, now),
            Step::Unqueue => self.made_way(rest.as_slice(), now),
            Step::Clear | Step::Leave => self.left(step, rest.as_slice(), now),
        }
    }

    fn left(&mut self, step: Step, outcomes: &[Outcome], now: Now) {
        if outcomes.iter().all(is_deleted) {
            let used_up = self.used_up;
            self.forget();
            self.go(used_up.map_or(Step::Enter, Step::Renew));
        } else {
            // What has this path may be another's by now, if the deletion was executed.
            self.queue.is_open |= !self.claims[0].has_queue();
            self.retry(step, now);
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

    /// A node of ours is gone for good: queue again. What is left of us would be in the way: to queue
    /// behind it in one queue and before it in another is what makes others wait for ever.
    fn enter_again(&mut self) {
        if self.queue.is_gone() && self.permits.is_gone() {
            self.forget();
            self.go(Step::Enter);
        } else {
            self.go(Step::Clear);
        }
    }

    /// No node of ours is there, nor will be. What comes next has other names: numbers begin again where a
    /// directory was deleted, and who watched a node that is gone must not find it again behind his own.
    fn forget(&mut self) {
        self.mark_with(self.uuid.next());
    }

    fn mark_with(&mut self, uuid: Uuid) {
        self.uuid = uuid;
        self.queue = Nodes::of_queues(&self.claims, uuid, self.session);
        self.permits = Nodes::of_permits(&self.claims, uuid, self.session);
        self.turns.clear();
        self.counted.clear();
        self.used_up = None;
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
        self.state = if self.queue.is_open {
            State::Ready(Step::Recover(Stage::Queue))
        } else if self.permits.is_open {
            State::Ready(Step::Recover(Stage::Permits))
        } else if self.queue.is_gone() && self.permits.is_gone() {
            State::Gone
        } else if !self.claims[0].has_queue() && !self.are_known(&self.queue.nodes()) {
            // It may be another's.
            State::Ready(Step::Adopt(Stage::Queue))
        } else {
            State::Ready(Step::Leave)
        };
    }

    fn directory(&self, claim: usize) -> std::sync::Arc<str> {
        self.claims[claim].directory.clone()
    }
}

fn is_deleted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done | Outcome::NoNode)
}
