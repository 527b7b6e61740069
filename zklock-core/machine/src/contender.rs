//! One attempt to hold a lock, from the creation of its node to its deletion.
//!
//! The simple way, a function that creates, lists and waits, loses its node wherever it is interrupted: by a reply
//! that never comes, a caller that gives up between two lines, or a session that ends while a request is under way.
//! So the attempt is a state machine. It knows at every moment whether a node of its own exists, may exist, or does
//! not exist, and it is not [gone](Machine::is_gone) before the node is.
//!
//! One machine serves all kinds that have a queue. An attempt has one or more claims, and a mutex is a set of one.
//!
//! The usual way, as the functions come one after the other:
//!
//! ```text
//!  free      entry ---- created, listed ----> entered, on_listings, proceed, grant, granted
//!  held      the same up to proceed ---- Watch ----> watched ---- deleted ----> our_turn, proceed, grant, granted
//!            with others ahead of the holder: Watch the second, deleted ---- LookAhead ----> looked_ahead, watched
//!  released  handle_end, clean_up, departure ---- deleted ----> departed, on_deleted
//! ```
//!
//! Its usual steps: each is a flight of requests. After a lost reply, it pauses and asks what was done. At the end of the session, it
//! becomes `Idle` if a grant is still wanted, and `Gone` if not.
//!
//! ```text
//!  Idle -- session --> Enter -- nobody ahead ------------------------> (permits: Take, Count) --> Check? --> Held
//!                      | ^ |                                                    ^                   ^         | end
//!     reply lost       | | +-- others ahead --> Watch --> Waiting -- our turn --+   lease too short +         v
//!       Recover <------+ |                        ^        | |                                              Leave --> Gone
//!       Adopt -----------+                        |        | +-- caller gone ---------------------------------^
//!                                                 +--------+ LookAhead or Look: others are still ahead
//! ```
//!
//! * `enter`: how an attempt gets its nodes, and finds them again
//! * `turn`: how it waits for its turn in each queue, takes permits, and is granted
//! * `examine`: how it finds out whether an unknown child is a contender
//! * `nodes`: which nodes exist, may exist, or should exist
//! * `notice`: how a holder learns that others wait or ask
//! * `busy`: what a try that found the lock busy leaves behind
//! * `renew`: what to do if a directory has no numbers left

mod busy;
mod enter;
mod examine;
mod nodes;
mod notice;
mod renew;
#[cfg(test)]
mod tests;
mod turn;

use super::Moment;
use super::claim::Claim;
use super::drive::Machine;
use super::flow::{Flow, State, frame, steps};
use super::lasting::{Lasting, looks};
use super::name::Uuid;
use super::protocol::{Now, Operation, Outcome, Patience, Refusal, Verdict, WatchEvent};
use super::retry::Parented;
use busy::Busy;
use nodes::Nodes;
use notice::Notice;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A flight that the contender is about to send, or waits for replies to. Numbers are indexes of claims.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Enter,
    CreateParents(Phase),
    /// The reply to a creation was lost.
    Recover(Phase),
    /// Ask who owns the nodes that were found again, and where they stand.
    Adopt(Phase),
    Look(usize),
    /// Look whether children of this directory may be contenders of an unknown kind.
    Examine {
        claim: usize,
        directory: Arc<str>,
        unclear: Vec<String>,
    },
    /// The second before us is gone: see whether the nearest is the last one, and watch it in the same flight.
    LookAhead {
        claim: usize,
        nearest: String,
    },
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
    /// See whether there are enough permits, before a try waits for its turn to take them.
    Peek(usize),
    /// Create the permits and count.
    Take,
    Count(usize),
    /// Prove our nodes and renew the lease, before a grant that could be stale.
    Check,
    /// Leave the queues of semaphores whose permits we hold.
    Unqueue,
    /// See who waits for what we hold.
    Notice,
    /// Delete our nodes, to enter again.
    Clear,
    Leave,
}

/// Which of its nodes the contender works on: first those in the queues, then its permits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Queue,
    Permits,
}

impl Phase {
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
    Waits { nearest: String, second: Option<String>, alone: bool },
    Holds,
}

/// One attempt to hold a lock.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock_machine::contender::Contender;
/// use zklock_machine::protocol::*;
/// use zklock_machine::claim::Claim;
/// use zklock_machine::drive::Machine;
/// use zklock_machine::name::{Scheme, Uuid};
/// use zklock_machine::Moment;
///
/// let now = Now { moment: Moment::default(), lease_until: Moment::at(Duration::from_secs(5)) };
/// let mut contender = Contender::new(vec![Claim::new("/a", Scheme::Mutex)], Patience::Waits);
/// contender.handle_session(7, Duration::from_secs(1), Uuid::from_random(1));
/// let flight = contender.poll_flight().unwrap();
/// assert!(matches!(&flight[..], [Operation::Create(_), Operation::List { .. }]));
///
/// let name = "_c_00000000-0000-8000-8000-000000000001-lock-0000000000".to_owned();
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
    flow: Flow<Step>,
    /// A place in the queue of each claim.
    queue: Nodes,
    permits: Nodes,
    /// Where we stand in the queue of each claim.
    turns: Vec<Turn>,
    /// The claims that there are enough permits for.
    counted: Vec<usize>,
    /// The claim whose directory has no numbers left for us.
    used_up: Option<usize>,
    /// A child of each directory that it was told to ignore.
    ignored: BTreeMap<Arc<str>, String>,
    busy: Busy,
    lasting: Arc<Lasting>,
    notice: Notice,
}

impl Contender {
    steps!();

    /// Creates an attempt that waits for its first session. There must be at least one claim; a claim within a
    /// writer must be the only one.
    pub fn new(claims: Vec<Claim>, patience: Patience) -> Self {
        let (queue, permits) = (Nodes::default(), Nodes::default());
        Self {
            claims,
            flow: Flow::new(patience),
            queue,
            permits,
            turns: Vec::new(),
            counted: Vec::new(),
            used_up: None,
            ignored: BTreeMap::new(),
            busy: Busy::default(),
            lasting: Arc::default(),
            notice: Notice::default(),
        }
    }

    /// Called after clearing and after leaving. The next step enters again, unless the caller is gone.
    fn on_deleted(&mut self, step: Step, outcomes: &[Outcome], now: Now) {
        if outcomes.iter().all(is_deleted) {
            // This is forgotten with the nodes.
            let used_up = self.used_up;
            self.forget();
            self.go(used_up.map_or(Step::Enter, Step::Renew));
        } else {
            self.delete_again(step, outcomes, now);
        }
    }

    /// Deletes again what has not been deleted.
    fn delete_again(&mut self, step: Step, outcomes: &[Outcome], now: Now) {
        // If a deletion was refused, the driver closes the session. An attempt that has not been granted yet then fails: the
        // same might happen to it in the next session.
        let refused = outcomes.iter().find_map(Outcome::refusal);
        if let Some(refusal) = refused.filter(|_| !self.flow.answered) {
            self.fail(refusal.clone());
        }
        self.retry(step, now);
    }

    /// Queues again, because a node of ours is gone for good.
    fn enter_again(&mut self) {
        if self.queue.is_gone() && self.permits.is_gone() {
            self.forget();
            self.go(Step::Enter);
        } else {
            // Behind others in one queue and ahead of them in another, we would make everybody wait for ever.
            self.go(Step::Clear);
        }
    }

    /// Forgets our nodes, because none exists or will exist.
    fn forget(&mut self) {
        // New nodes get other names: numbers begin again if the directory was deleted, and a contender that watched a deleted
        // node must not find a node of that name behind its own.
        self.mark_with(self.flow.mark.next());
    }

    fn mark_with(&mut self, uuid: Uuid) {
        self.flow.mark = uuid;
        self.queue = Nodes::of_queues(&self.claims, uuid, self.flow.session);
        self.permits = Nodes::of_permits(&self.claims, uuid, self.flow.session);
        // What was known was about nodes with another mark.
        self.turns.clear();
        self.counted.clear();
        self.ignored.clear();
        self.used_up = None;
    }

    /// Chooses what is left to do after the caller has gone.
    fn clean_up(&mut self) {
        // What may exist is looked for first: nobody can delete it without its name.
        self.flow.state = if self.queue.is_create_in_doubt() {
            State::Ready(Step::Recover(Phase::Queue))
        } else if self.permits.is_create_in_doubt() {
            State::Ready(Step::Recover(Phase::Permits))
        } else if self.queue.is_gone() && self.permits.is_gone() {
            State::Gone
        } else {
            State::Ready(Step::Leave)
        };
    }

    fn directory(&self, claim: usize) -> Arc<str> {
        self.claims[claim].directory.clone()
    }
}

impl Machine for Contender {
    frame!(Step::Leave | Step::Recover(_));

    fn poll_flight(&mut self) -> Option<Vec<Operation>> {
        let State::Ready(step) = &self.flow.state else { return None };
        let step = step.clone();
        let flight = match &step {
            Step::Enter => self.entry(),
            Step::CreateParents(phase) => self.parents(*phase),
            Step::Recover(phase) => self.recovery(*phase),
            Step::Adopt(phase) => self.adoption(*phase),
            Step::Look(claim) => vec![Operation::List { directory: self.directory(*claim) }],
            Step::LookAhead { claim, nearest } => {
                vec![Operation::List { directory: self.directory(*claim) }, self.watch(*claim, nearest)]
            }
            Step::Watch { claim, name, .. } => vec![self.watch(*claim, name)],
            Step::LookAndWatch(claim) | Step::Drain(claim) => {
                vec![Operation::ListAndWatch { directory: self.directory(*claim) }]
            }
            Step::Examine { directory, unclear, .. } => looks(directory, unclear),
            Step::Renew(claim) => vec![Operation::DeleteDirectory { directory: self.directory(*claim) }],
            Step::Peek(claim) => self.peek(*claim),
            Step::Take => self.taking(),
            Step::Count(claim) => self.count(*claim),
            Step::Check => vec![self.proof()],
            Step::Unqueue => self.making_way(),
            Step::Notice => self.noticing(),
            Step::Clear | Step::Leave => self.departure(&step),
        };
        // From here on they may exist, even if no reply ever comes.
        match step {
            Step::Enter => self.queue.begin_creation(),
            Step::Take => self.permits.begin_creation(),
            _ => {}
        }
        self.flow.state = State::InFlight(step);
        Some(flight)
    }

    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: Uuid) {
        if self.flow.state == State::Idle {
            // The session first: it may be a part of the names.
            self.flow.session = session;
            self.flow.readiness.set_heartbeat(heartbeat);
            self.mark_with(uuid);
            self.flow.state = State::Ready(Step::Enter);
        }
    }

    fn handle_lasting(&mut self, lasting: &Arc<Lasting>) {
        self.lasting = lasting.clone();
    }

    fn handle_session_over(&mut self) {
        self.forget();
        if self.claims[0].within.is_some() {
            // The writer's node was in this session.
            self.fail(Refusal::WriterGone);
        }
        self.leave_session();
    }

    fn handle_notice(&mut self) {
        self.ask_for_notice();
    }

    fn handle_tried_before(&mut self) {
        self.busy.is_wanted = true;
    }

    fn busy_since(&self) -> Option<Moment> {
        self.busy.since
    }

    fn handle_watch(&mut self, event: WatchEvent, now: Now) {
        match &self.flow.state {
            State::Waiting { our_turn_in, look } => match (event, our_turn_in) {
                // Names never come back, so a deleted node stays away, and no other contender was ahead.
                (WatchEvent::Deleted, Some(claim)) => self.our_turn(*claim, now),
                _ => self.flow.state = State::Ready(look.clone()),
            },
            State::Noticing | State::Paused(Step::Notice, _) => self.on_notice(event),
            _ => {}
        }
    }

    fn handle_replies(&mut self, outcomes: Vec<Outcome>, sent: Moment, now: Now) {
        let State::InFlight(step) = &self.flow.state else { return };
        let step = step.clone();
        if outcomes.contains(&Outcome::SessionOver) {
            // Then it does not matter what else was done: it is gone with the session.
            return self.handle_session_over();
        }
        let mut rest = outcomes.into_iter();
        let mut first = || rest.next().unwrap_or(Outcome::Unknown);
        match step {
            Step::Enter => self.entered(first(), rest.collect(), sent, now),
            Step::CreateParents(phase) => self.parents_answered(rest.collect(), phase.creation(), step, now),
            Step::Recover(phase) => self.recovered(phase, &first(), rest.collect(), now),
            Step::Adopt(phase) => self.adopted(phase, rest.collect(), now),
            Step::Look(claim) => self.on_listing(claim, first(), now),
            Step::LookAhead { claim, nearest } => {
                self.looked_ahead(claim, &nearest, first(), rest.next().unwrap_or(Outcome::Unknown), now);
            }
            Step::Watch { claim, alone, .. } => self.watched(claim, alone, first(), now),
            Step::LookAndWatch(claim) => self.on_watched_listing(claim, first(), now),
            Step::Examine { claim, directory, unclear } => {
                self.examined(claim, directory, unclear, rest.as_slice(), now);
            }
            Step::Renew(claim) => self.renewed(claim, &first(), now),
            Step::Drain(claim) => self.drained(claim, first(), now),
            Step::Peek(claim) => self.peeked(claim, rest.collect(), now),
            Step::Take => self.taken(first(), rest.collect(), sent, now),
            Step::Count(claim) => self.counted(claim, rest.collect(), now),
            Step::Check => self.checked(first(), sent, now),
            Step::Unqueue => self.made_way(rest.as_slice(), now),
            Step::Notice => self.noticed(rest.as_slice(), now),
            Step::Clear | Step::Leave => self.departed(step, rest.as_slice(), sent, now),
        }
    }
}

fn is_deleted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done | Outcome::NoNode)
}
