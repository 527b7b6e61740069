//! The configuration of a world: its clients, and which faults are possible, and how often.

use super::machine::protocol::Patience;
use super::machine::turns::Passing;
use super::subject::{Sort, Want};
use super::trouble::budget;
use std::time::Duration;

/// The timeout of every session. A tick is a second, so a heartbeat is one tick.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// How time passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clock {
    /// In leaps, in which every due heartbeat is made. A session can expire whenever the model decides
    /// that its lease is over. This has few states, so that much else can go wrong.
    Leaps,
    /// Tick by tick, and heartbeats may be late. A session can expire when its timeout, minus the
    /// leader's delay in hearing of touches, has passed since its last write.
    Ticks,
}

budget! {
    /// How often each thing may still go wrong.
    Faults {
        /// Connections lost with some or all of the replies, or requests given up that are still sent.
        losses,
        /// Creations that are executed twice and not acknowledged.
        twins,
        /// Callers that give up: cancel, or deadline.
        cancels,
        expiries,
        /// Children deleted by an operator.
        deletions,
        /// A directory deleted, with all in it.
        parent_deletions,
        /// Children whose data an operator changes.
        changes,
        /// Children in whose data the holder is asked to release.
        revokes,
        /// Requests that the server refuses.
        refusals,
        /// Steps of the clock.
        steps,
        /// Heartbeats, if they are separate actions.
        beats,
        /// Other callers of a process, which want the lock that it holds or keeps.
        takes,
        /// Servers that have lost a deletion which the others have.
        ghosts,
    }
}

impl Faults {
    /// Much can go wrong.
    pub(crate) const MANY: Self = Self {
        losses: 3,
        twins: 1,
        cancels: 1,
        expiries: 1,
        deletions: 1,
        parent_deletions: 1,
        changes: 1,
        refusals: 1,
        steps: 4,
        ..Self::NONE
    };
}

/// Nothing can go wrong, or one thing once.
pub(crate) const NONE: Faults = Faults::NONE;
pub(crate) const LOSS: Faults = Faults { losses: 1, ..NONE };
pub(crate) const CANCEL: Faults = Faults { cancels: 1, ..NONE };
pub(crate) const EXPIRY: Faults = Faults { expiries: 1, ..NONE };
pub(crate) const DELETION: Faults = Faults { deletions: 1, ..NONE };
pub(crate) const PARENT_DELETION: Faults = Faults { parent_deletions: 1, ..NONE };

/// The plan of one client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) wants: Vec<Want>,
    pub(crate) patience: Patience,
    /// The client within whose write hold, and in whose session, this client takes the read side.
    pub(crate) within: Option<usize>,
    /// How its node is passed on, if it is.
    pub(crate) passes: Option<Passing>,
    /// Whether its tries may be answered from memory.
    pub(crate) remembers: bool,
}

/// One configuration.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    /// One for each client.
    pub(crate) plans: Vec<Plan>,
    /// How many attempts each client makes.
    pub(crate) attempts: u8,
    /// Whether the directories are there at the start, and their next sequence number.
    pub(crate) parent: Option<i32>,
    /// The values of the node with the number of permits: now and after the change.
    pub(crate) limit: Option<(u32, u32)>,
    pub(crate) clock: Clock,
    /// How many of the clients may be slow: for the others no time passes while they have work to do.
    pub(crate) slow: usize,
    /// Whether the server reports a node's transaction with its creation.
    pub(crate) tells_origin: bool,
    /// Whether an operator has taken the right to read nodes.
    pub(crate) hides_nodes: bool,
    pub(crate) faults: Faults,
}

/// The directory of clients that want a mutex.
const QUEUE: &str = "/a";

impl Setup {
    /// Clients that want a mutex.
    pub(crate) fn new(name: &'static str, clients: usize, faults: Faults) -> Self {
        let mutex = Want::new(QUEUE, Sort::Mutex);
        Self::of(name, &vec![vec![mutex]; clients], faults)
    }

    /// Clients with these wants, each of which it needs at the same time.
    pub(crate) fn of(name: &'static str, wants: &[Vec<Want>], faults: Faults) -> Self {
        let plan = |wants: &Vec<Want>| Plan {
            wants: wants.clone(),
            patience: Patience::Waits,
            within: None,
            passes: None,
            remembers: false,
        };
        Self {
            name,
            plans: wants.iter().map(plan).collect(),
            attempts: 1,
            parent: Some(0),
            limit: None,
            clock: Clock::Leaps,
            slow: wants.len(),
            tells_origin: true,
            hides_nodes: false,
            faults,
        }
    }

    /// The same with time that passes tick by tick.
    pub(crate) fn ticking(self, slow: usize) -> Self {
        Self { clock: Clock::Ticks, slow, ..self }
    }

    /// The same with clients that do not wait.
    pub(crate) fn trying_once(mut self) -> Self {
        self.plans.iter_mut().for_each(|plan| plan.patience = Patience::TriesOnce);
        self
    }

    /// The same with clients, all but this many, that do not wait and remember what they were told.
    pub(crate) fn trying_again(mut self, but: usize) -> Self {
        for plan in self.plans.iter_mut().skip(but) {
            (plan.patience, plan.remembers) = (Patience::TriesOnce, true);
        }
        self
    }

    /// The same with this many clients, the first ones, that pass their node on.
    pub(crate) fn passing(mut self, clients: usize, passes: Passing) -> Self {
        self.plans.iter_mut().take(clients).for_each(|plan| plan.passes = Some(passes));
        self
    }

    /// The same with one client more, which takes the read side within the write side of the first.
    pub(crate) fn downgrading(mut self) -> Self {
        let wants = self.plans[0].wants.iter().map(|want| Want { sort: Sort::Read, ..*want }).collect();
        self.plans.push(Plan {
            wants,
            patience: Patience::TriesOnce,
            within: Some(0),
            passes: None,
            remembers: false,
        });
        self
    }

    /// Whether all clients are interchangeable.
    pub(crate) fn are_alike(&self) -> bool {
        self.plans.iter().all(|plan| *plan == self.plans[0])
    }

    /// All directories.
    pub(crate) fn paths(&self) -> Vec<&'static str> {
        let mut paths = Vec::new();
        for want in self.plans.iter().flat_map(|plan| &plan.wants) {
            for path in [want.queue, want.hold().0] {
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths
    }
}
