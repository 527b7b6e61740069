//! What a world is made of: how many clients, what may go wrong, and how often.

use super::machine::protocol::Patience;
use super::subject::{Passes, Sort, Want};
use std::time::Duration;

/// The timeout of every session. A tick is a second, so a heartbeat is one tick.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// How time passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clock {
    /// In leaps, in which every heartbeat that falls due is made. A session can expire whenever the
    /// model decides that its lease is over. Small, so that much else can go wrong.
    Leaps,
    /// Tick by tick, and heartbeats may be late. A session can expire when its timeout, less the time
    /// by which the leader hears later of touches, has passed since the last write of it.
    Ticks,
}

/// How often each thing may still go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Faults {
    /// Connections lost with some or all of the replies, or requests given up that are still sent.
    pub(crate) losses: u8,
    /// Creations that are executed twice and not acknowledged.
    pub(crate) twins: u8,
    /// Callers that give up: cancel, or deadline.
    pub(crate) cancels: u8,
    pub(crate) expiries: u8,
    /// Children deleted by an operator.
    pub(crate) deletions: u8,
    /// A directory deleted, with all in it.
    pub(crate) parent_deletions: u8,
    /// Children whose data an operator changes.
    pub(crate) changes: u8,
    /// Children whose holders are asked in them to let go.
    pub(crate) revokes: u8,
    /// Requests that the server refuses.
    pub(crate) refusals: u8,
    /// Steps of the clock.
    pub(crate) steps: u8,
    /// Heartbeats, where they are actions of their own.
    pub(crate) beats: u8,
    /// Others of a process who want what it has or keeps.
    pub(crate) takes: u8,
    /// Servers that have lost a deletion which the others have.
    pub(crate) ghosts: u8,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        losses: 0,
        twins: 0,
        cancels: 0,
        expiries: 0,
        deletions: 0,
        parent_deletions: 0,
        changes: 0,
        revokes: 0,
        refusals: 0,
        steps: 0,
        beats: 0,
        takes: 0,
        ghosts: 0,
    };
}

/// What one client does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) wants: Vec<Want>,
    pub(crate) patience: Patience,
    /// The client in whose session it does it, once that client holds the write side: it takes the read
    /// side within.
    pub(crate) within: Option<usize>,
    /// How its node is passed on, if it is.
    pub(crate) passes: Option<Passes>,
    /// Whether it may be told from memory that what it tries to get is busy.
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
    /// What the node says that has the number of permits, and what it will say.
    pub(crate) limit: Option<(u32, u32)>,
    pub(crate) clock: Clock,
    /// How many of the clients may be slow: for the others no time passes while they have work to do.
    pub(crate) slow: usize,
    /// Whether the server tells the origin of a node with its creation.
    pub(crate) tells_origin: bool,
    /// Whether an operator has taken the right to read nodes.
    pub(crate) hides_nodes: bool,
    pub(crate) faults: Faults,
}

/// The directory of those who want nothing else.
const QUEUE: &str = "/a";

impl Setup {
    /// Clients that want a mutex.
    pub(crate) fn new(name: &'static str, clients: usize, faults: Faults) -> Self {
        let mutex = Want::new(QUEUE, Sort::Mutex);
        Self::of(name, &vec![vec![mutex]; clients], faults)
    }

    /// Clients that want each of these all.
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
    pub(crate) fn passing(mut self, clients: usize, passes: Passes) -> Self {
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

    /// Whether all clients are the same. Members of a double barrier are not: it matters whose name comes first.
    pub(crate) fn are_alike(&self) -> bool {
        !self.is_barrier() && self.plans.iter().all(|plan| *plan == self.plans[0])
    }

    /// Whether the clients are members of double barriers.
    pub(crate) fn is_barrier(&self) -> bool {
        self.plans[0].wants[0].members().is_some()
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
