//! The machine to check, behind a door.
//!
//! The door lets one model check the shipped machine and, in one program, the many machines with a
//! planted bug. Compiling the model for each of them would take minutes.

use super::machine::Moment;
use super::machine::protocol::{Now, Operation, Outcome, Patience, Verdict, WatchEvent};
use super::machine::status::LossReason;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// The message to a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// The verdict about a lock.
    Lock(Verdict),
    /// The member of a double barrier is within.
    Entered,
    /// The barrier is not open.
    NotOpen,
    /// The member has left, and so have all others.
    Left,
    /// Others are still within.
    OthersWithin,
    /// The member's node was gone before it left.
    Lost,
    /// The member was refused something.
    Failed,
}

/// A contender, or a member of a double barrier. Its methods are those of the machine's types.
pub(crate) trait Attempt: Debug {
    fn is_gone(&self) -> bool;
    fn is_idle(&self) -> bool;
    fn is_waiting(&self) -> bool;
    fn poll_verdict(&mut self) -> Option<Told>;
    fn poll_flight(&mut self) -> Option<Vec<Operation>>;
    fn keeps_watch(&self) -> bool;
    fn poll_timeout(&self) -> Option<Moment>;
    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: u128);
    fn handle_session_over(&mut self);
    fn handle_end(&mut self);
    fn handle_notice(&mut self);
    fn handle_tried_before(&mut self);
    fn busy_since(&self) -> Option<Moment>;
    /// A member that is within leaves.
    fn handle_leave(&mut self);
    fn handle_timeout(&mut self, now: Moment);
    fn handle_watch(&mut self, event: WatchEvent, now: Now);
    fn handle_replies(&mut self, outcomes: Vec<Outcome>, sent: Moment, now: Now);
    fn copy(&self) -> Box<dyn Attempt>;
    fn fingerprint(&self) -> u64;
}

/// A lease. Its methods are those of the machine's type.
pub(crate) trait Term: Debug {
    fn heartbeat(&self) -> Duration;
    fn until(&self) -> Moment;
    fn acknowledge(&mut self, sent: Moment, now: Moment);
    fn ask(&mut self);
    fn attach(&mut self, sent: Moment, timeout: Duration, now: Moment);
    /// Whether the memory of a lock that was busy is good.
    fn is_good(&self, since: Moment, is_told: bool, now: Moment) -> bool;
    fn copy(&self) -> Box<dyn Term>;
    fn fingerprint(&self) -> u64;
}

/// A keeper. Its methods are those of the machine's type. Holds are numbered in the order of their grants, and one proof is
/// on its way at a time.
pub(crate) trait Keeping: Debug {
    fn lease_until(&self) -> Moment;
    fn valid_for(&self, hold: usize, now: Moment) -> Duration;
    fn handle_grant(&mut self, path: &str, proven: Moment);
    fn handle_write(&mut self, now: Moment);
    /// A server has granted the session on a new connection.
    fn handle_connection(&mut self, timeout: Duration, now: Moment);
    fn handle_over(&mut self);
    fn handle_proof(&mut self, reply: &Reply, now: Moment);
    fn poll_lost(&mut self, now: Moment) -> Option<(usize, LossReason)>;
    fn handle_seen(&mut self, seen: &[(usize, Look)], now: Moment);
    fn handle_event(&mut self, hold: usize, is_deleted: bool);
    /// The holds to watch now.
    fn poll_watch(&mut self, now: Moment, is_connected: bool) -> Vec<usize>;
    /// The holds to check now.
    fn poll_beat(&mut self, now: Moment, is_connected: bool) -> Option<Vec<usize>>;
    fn copy(&self) -> Box<dyn Keeping>;
    fn fingerprint(&self) -> u64;
}

/// The turns on a node that is passed on. Its methods are those of the machine's type.
pub(crate) trait Sharing: Debug {
    fn may_take(&self) -> bool;
    fn take(&mut self) -> bool;
    fn give_back(&mut self, awaits: bool, now: Moment) -> bool;
    fn handle_wanted(&mut self) -> bool;
    fn handle_untaken(&mut self) -> bool;
    fn handle_timeout(&mut self, now: Moment) -> bool;
    fn handle_end(&mut self);
    fn copy(&self) -> Box<dyn Sharing>;
    fn fingerprint(&self) -> u64;
}

/// How a node is passed on. Each machine has its own type for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Passes {
    /// Whether it stays when nobody has it.
    pub(crate) lingers: bool,
    /// How many callers have it in a row while others wait.
    pub(crate) turns: u32,
}

/// The result of a check. Each machine has its own type for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Reply {
    Answered { missing: Vec<usize> },
    Unknown,
    SessionOver,
}

/// The result of a request for watches. Each machine has its own type for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Look {
    There,
    Gone,
    Unknown,
}

/// The kinds of answer that a driver distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Read,
    QuorumWrite,
}

/// The lock that a caller wants in one queue. Each machine has its own claims for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Want {
    /// The node whose children are the queue.
    pub(crate) queue: &'static str,
    pub(crate) sort: Sort,
    /// Whether every waiter watches all children.
    pub(crate) watches_children: bool,
}

/// The kinds of lock that the machine distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Mutex,
    Read,
    Write,
    Latch,
    /// One node for all, and a companion for each holder.
    Single,
    /// The same without a companion, for servers that are too old for it.
    Lone,
    /// A double barrier that opens for this number of members.
    Member {
        members: u32,
    },
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
        Self { queue, sort, watches_children: false }
    }

    /// The directory and the number of the nodes that stand for the hold.
    pub(crate) const fn hold(&self) -> (&'static str, u32) {
        match self.sort {
            Sort::Semaphore { permits, count, .. } => (permits, count),
            Sort::Single => (self.queue, 2),
            _ => (self.queue, 1),
        }
    }

    /// The number of members that open the double barrier, if it is one.
    pub(crate) const fn members(&self) -> Option<u32> {
        match self.sort {
            Sort::Member { members } => Some(members),
            _ => None,
        }
    }

    /// Whether the two cannot hold at the same time.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        let are_readers = self.sort == Sort::Read && other.sort == Sort::Read;
        self.queue == other.queue && !are_readers
    }
}

/// Makes an attempt on these wants, within the node of this writer if there is one.
pub(crate) type NewAttempt = fn(&[Want], Option<String>, Patience) -> Box<dyn Attempt>;

/// A machine, and the rules for its driver.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) contender: NewAttempt,
    pub(crate) lease: fn(Duration, Moment) -> Box<dyn Term>,
    /// Makes the keeper of a session with this timeout, opened at this moment, whose checks name at most this number of holds.
    pub(crate) keeper: fn(Duration, Moment, usize) -> Box<dyn Keeping>,
    /// Makes the turns of a node that was granted just now. Several callers may be able to have it at once.
    pub(crate) turns: fn(Passes, bool) -> Box<dyn Sharing>,
    /// Whether an answer renews the lease.
    pub(crate) renews: fn(Answer) -> bool,
}

impl Clone for Box<dyn Attempt> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

impl Hash for dyn Attempt {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint());
    }
}

impl Clone for Box<dyn Term> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

impl Hash for dyn Term {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint());
    }
}

impl Clone for Box<dyn Keeping> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

impl Hash for dyn Keeping {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint());
    }
}

impl Clone for Box<dyn Sharing> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

impl Hash for dyn Sharing {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint());
    }
}

/// It is the same in all states of a world.
impl Hash for Machine {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
