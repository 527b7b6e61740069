//! The locks that clients want, and the machines that get them.

use super::machine::callers::Owner;
use super::machine::callers::held::Holds;
use super::machine::claim::{Claim, Permits};
use super::machine::contender::Contender;
use super::machine::drive::Machine;
use super::machine::name::{Naming, Role, Scheme};
use super::machine::protocol::Patience;
use super::machine::single::Single;
use super::machine::status::Status;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The lock that a caller wants in one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Want {
    /// The node whose children are the queue.
    pub(crate) queue: &'static str,
    pub(crate) sort: Sort,
}

/// The kinds of lock that the machine distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Mutex,
    /// A mutex whose nodes' names have no room for a mark.
    Unmarked,
    Read,
    Write,
    Latch,
    /// One node for all, and a companion for each holder.
    Single,
    /// The same without a companion, for servers that are too old for it.
    Lone,
    Semaphore {
        /// The node whose children are the taken permits.
        permits: &'static str,
        count: u32,
        limit: u32,
        /// The node with the number of permits.
        limit_at: Option<&'static str>,
    },
}

impl Want {
    pub(crate) const fn new(queue: &'static str, sort: Sort) -> Self {
        Self { queue, sort }
    }

    /// The directory and the number of the nodes that stand for the hold.
    pub(crate) const fn hold(&self) -> (&'static str, u32) {
        match self.sort {
            Sort::Semaphore { permits, count, .. } => (permits, count),
            Sort::Single => (self.queue, 2),
            _ => (self.queue, 1),
        }
    }

    /// Whether the two cannot hold at the same time.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        let are_readers = self.sort == Sort::Read && other.sort == Sort::Read;
        self.queue == other.queue && !are_readers
    }

    pub(crate) fn claim(&self) -> Claim {
        let scheme = match self.sort {
            Sort::Mutex | Sort::Unmarked | Sort::Semaphore { .. } => Scheme::Mutex,
            Sort::Read => Scheme::Read,
            Sort::Write => Scheme::Write,
            Sort::Latch => Scheme::Latch,
            Sort::Single | Sort::Lone => Scheme::Single,
        };
        let mut claim = match self.sort {
            Sort::Unmarked => unmarked(self.queue),
            _ => Claim::new(self.queue, scheme),
        };
        if let Sort::Semaphore { permits, count, limit, limit_at } = self.sort {
            let (directory, limit_at) = (permits.into(), limit_at.map(Into::into));
            claim.permits = Some(Permits { directory, count, limit, limit_at, data: Arc::default() });
        }
        claim
    }
}

fn unmarked(queue: &str) -> Claim {
    let naming = Naming::pattern("lock-{sequence}").expect("a pattern");
    let scheme = Claim::scheme(Role::Exclusive, &naming).expect("a mutex");
    Claim::at(queue, scheme, &naming).expect("a path")
}

/// The machine of an attempt.
#[derive(Clone, Hash, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "states are many, and are cloned more often than they are moved"
)]
pub(crate) enum Attempt {
    Queues(Contender),
    Single(Single),
}

impl Attempt {
    /// An attempt to get all of these, within the node of this writer if there is one.
    pub(crate) fn new(wants: &[Want], within: Option<&str>, patience: Patience) -> Self {
        if let [Want { queue, sort: sort @ (Sort::Single | Sort::Lone), .. }] = wants {
            let mut single = Single::new(queue, Arc::default(), patience);
            if *sort == Sort::Lone {
                single.handle_old_servers();
            }
            return Self::Single(single);
        }
        let claims = wants.iter().map(|want| Claim { within: within.map(str::to_owned), ..want.claim() });
        Self::Queues(Contender::new(claims.collect(), patience))
    }
}

impl Deref for Attempt {
    type Target = dyn Machine;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Queues(contender) => contender,
            Self::Single(single) => single,
        }
    }
}

impl DerefMut for Attempt {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Queues(contender) => contender,
            Self::Single(single) => single,
        }
    }
}

/// An owner that comes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Task(pub(crate) u8);

impl Owner for Task {
    fn returns(self) -> bool {
        true
    }
}

/// A turn that is held in a process, through any lock at the path, as its shell knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldTurn {
    pub(crate) number: usize,
    pub(crate) owner: u8,
    pub(crate) is_bound: bool,
    pub(crate) has_holds: bool,
    pub(crate) status: Status,
}

impl Holds for HeldTurn {
    type Owner = u8;

    fn status(&self) -> Status {
        self.status
    }

    fn owner(&self) -> u8 {
        self.owner
    }

    fn is_bound(&self) -> bool {
        self.is_bound
    }

    fn has_holds(&self) -> bool {
        self.has_holds
    }
}
