//! The machine under check, behind a door.
//!
//! The door lets one model check the machine that ships and, in one program, the many that have a
//! bug planted in them. Were the model compiled anew for each of them, that would take minutes.

use super::machine::Moment;
use super::machine::protocol::{Now, Operation, Outcome, Patience, Verdict, WatchEvent};
use super::machine::status::LossReason;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// What a caller is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// Of a lock.
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

/// A contender, or a member of a double barrier. The methods are its own; see there.
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
    /// Of a member that is within.
    fn handle_leave(&mut self);
    fn handle_timeout(&mut self, now: Moment);
    fn handle_watch(&mut self, event: WatchEvent, now: Now);
    fn handle_replies(&mut self, outcomes: Vec<Outcome>, sent: Moment, now: Now);
    fn copy(&self) -> Box<dyn Attempt>;
    fn fingerprint(&self) -> u64;
}

/// A lease. The methods are its own; see there.
pub(crate) trait Term: Debug {
    fn heartbeat(&self) -> Duration;
    fn until(&self) -> Moment;
    fn acknowledge(&mut self, sent: Moment, now: Moment);
    fn ask(&mut self, sent: Moment);
    fn attach(&mut self, sent: Moment, timeout: Duration, now: Moment);
    /// Whether the memory of a lock that was busy is good.
    fn is_good(&self, since: Moment, is_told: bool, now: Moment) -> bool;
    fn copy(&self) -> Box<dyn Term>;
    fn fingerprint(&self) -> u64;
}

/// A keeper. The methods are its own; see there. Its holds are counted in the order of their grants, and one proof is on
/// its way at a time.
pub(crate) trait Keeping: Debug {
    fn lease_until(&self) -> Moment;
    fn valid_for(&self, hold: usize, now: Moment) -> Duration;
    fn handle_grant(&mut self, path: &str, proven: Moment);
    fn handle_write(&mut self, now: Moment);
    /// A server was asked for the session, and has granted it.
    fn handle_connection(&mut self, timeout: Duration, now: Moment);
    fn handle_over(&mut self);
    fn handle_proof(&mut self, reply: &Reply, now: Moment);
    fn poll_lost(&mut self, now: Moment) -> Option<(usize, LossReason)>;
    fn handle_seen(&mut self, seen: &[(usize, Look)], now: Moment);
    fn handle_event(&mut self, hold: usize, is_deleted: bool);
    /// The holds that are to be watched.
    fn poll_watch(&mut self, now: Moment, is_connected: bool) -> Vec<usize>;
    /// The holds that are to be checked.
    fn poll_beat(&mut self, now: Moment, is_connected: bool) -> Option<Vec<usize>>;
    fn copy(&self) -> Box<dyn Keeping>;
    fn fingerprint(&self) -> u64;
}

/// The turns on a node that is passed on. The methods are its own; see there.
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

/// How a node is passed on. Each machine has a word of its own for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Passes {
    /// Whether it stays when nobody has it.
    pub(crate) lingers: bool,
    /// How many have it in a row, while others wait.
    pub(crate) turns: u32,
}

/// What became of a check. Each machine has words of its own for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Reply {
    Answered { missing: Vec<usize> },
    Unknown,
    SessionOver,
}

/// What came of a request for watches. Each machine has words of its own for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Look {
    There,
    Gone,
    Unknown,
}

/// What a driver may take an answer for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Read,
    QuorumWrite,
}

/// What a caller is after in one queue. Each machine has claims of its own for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Want {
    /// The node whose children are the queue.
    pub(crate) queue: &'static str,
    pub(crate) sort: Sort,
    /// Whether every waiter watches all children.
    pub(crate) watches_children: bool,
}

/// The kinds of lock, as far as the machine tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Mutex,
    Read,
    Write,
    Latch,
    /// One node for all, and a companion that is the holder's.
    Single,
    /// The same without a companion, where servers are too old for it.
    Lone,
    /// A double barrier, opened by so many.
    Member {
        members: u32,
    },
    Semaphore {
        /// The node whose children are the permits that are taken.
        permits: &'static str,
        count: u32,
        limit: u32,
        /// The node that says how many there are.
        limit_at: Option<&'static str>,
    },
}

impl Want {
    pub(crate) const fn new(queue: &'static str, sort: Sort) -> Self {
        Self { queue, sort, watches_children: false }
    }

    /// Where the nodes are that stand for the hold, and how many.
    pub(crate) const fn hold(&self) -> (&'static str, u32) {
        match self.sort {
            Sort::Semaphore { permits, count, .. } => (permits, count),
            Sort::Single => (self.queue, 2),
            _ => (self.queue, 1),
        }
    }

    /// How many open the double barrier, if it is one.
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

/// Makes an attempt on these, within the node of this writer if there is one.
pub(crate) type NewAttempt = fn(&[Want], Option<String>, Patience) -> Box<dyn Attempt>;

/// A machine, and what its driver has to know.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) contender: NewAttempt,
    pub(crate) lease: fn(Duration, Moment) -> Box<dyn Term>,
    /// Of a session that was opened at this moment, and whose checks name no more than so many holds.
    pub(crate) keeper: fn(Duration, Moment, usize) -> Box<dyn Keeping>,
    /// Of a node that was granted just now, and whether several can have it at once.
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
