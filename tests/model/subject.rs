//! The machine to check, behind a door.
//!
//! The door lets one model check the shipped machine and, in one program, the many machines with a
//! planted bug. Compiling the model for each of them would take minutes.

use super::machine::Moment;
use super::machine::protocol::{Now, Operation, Outcome, Patience, Verdict, WatchEvent};
use super::machine::status::{LossReason, Status};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// A contender. Its methods are those of the machine's types.
pub(crate) trait Attempt: Debug {
    fn is_gone(&self) -> bool;
    fn is_idle(&self) -> bool;
    fn is_waiting(&self) -> bool;
    fn poll_verdict(&mut self) -> Option<Verdict>;
    fn poll_flight(&mut self) -> Option<Vec<Operation>>;
    fn poll_timeout(&self) -> Option<Moment>;
    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: u128);
    fn handle_session_over(&mut self);
    fn handle_end(&mut self);
    fn handle_notice(&mut self);
    fn handle_tried_before(&mut self);
    fn busy_since(&self) -> Option<Moment>;
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

/// The callers of one lock in a process. Its methods are those of the machine's type. It has the lease of the session that is
/// open, in which tries are remembered.
pub(crate) trait Company: Debug {
    fn is_bound_to(&self, owner: u8) -> bool;
    fn again(&mut self, owner: u8) -> Option<u64>;
    fn take(&mut self, owner: u8, is_reentrant: bool, trust: &dyn Fn(u64) -> Trust) -> Option<(u64, u64)>;
    /// A call in this session.
    fn join(&mut self, call: Call, session: i64, trust: &dyn Fn(u64) -> Trust, now: Moment) -> u64;
    fn handle_gone(&mut self, caller: u64);
    fn release(
        &mut self,
        turn: u64,
        is_unsettled: bool,
        trust: &dyn Fn(u64) -> Trust,
        now: Moment,
    ) -> ReleaseOutcome;
    fn end_passing(&mut self, turn: u64) -> bool;
    fn give_up_idle(&mut self, place: u64);
    fn handle_entered(&mut self, place: u64, trust: &dyn Fn(u64) -> Trust, now: Moment);
    fn handle_busy(&mut self, place: u64);
    fn handle_failed(&mut self, place: u64);
    fn handle_wanted(&mut self, place: u64);
    fn handle_lost(&mut self, place: u64);
    fn handle_checked(&mut self, place: u64, trust: &dyn Fn(u64) -> Trust, now: Moment);
    fn handle_left(&mut self, place: u64, now: Moment);
    /// A try may have left a watch in this session, at this moment.
    fn handle_ended(&mut self, place: u64, remembered: Option<(i64, Moment)>, now: Moment);
    fn handle_deserted(&mut self);
    fn handle_closed(&mut self);
    fn handle_watch(&mut self);
    fn handle_timeout(&mut self, trust: &dyn Fn(u64) -> Trust, now: Moment);
    fn poll_timeout(&self) -> Option<Moment>;
    fn poll_action(&mut self) -> Option<Do>;
    fn kept(&self) -> Option<u64>;
    fn is_unused(&self) -> bool;
    /// There is another session.
    fn open(&mut self, now: Moment);
    fn copy(&self) -> Box<dyn Company>;
    fn fingerprint(&self) -> u64;
}

/// A call for a lock. Each machine has its own type for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) owner: u8,
    pub(crate) is_reentrant: bool,
    pub(crate) patience: Patience,
    pub(crate) is_within: bool,
}

/// What is known of a place. Each machine has its own type for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trust {
    Known,
    Unproven,
    Over,
}

/// What the callers of a lock have to have done. Each machine has its own type for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Do {
    Begin { place: u64, caller: u64, tried_before: bool },
    Serve { place: u64, caller: u64 },
    Grant { turn: u64, place: u64, owner: u8, is_bound: bool, is_kept: bool },
    Hold { caller: u64, turn: u64 },
    Refuse { caller: u64, is_busy: bool },
    GiveUp { place: u64 },
    Prove { place: u64 },
    Wanted { place: u64, is_wanted: bool },
    Over { turn: u64 },
    Nothing,
}

/// The result of a release. Each machine has its own type for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReleaseOutcome {
    Others,
    PassedOn,
    Released,
    Lost,
}

/// A turn that is held in a process, through any lock at the path, as its shell knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldTurn {
    pub(crate) sort: Sort,
    pub(crate) owner: u8,
    pub(crate) is_bound: bool,
    pub(crate) has_holds: bool,
    pub(crate) status: Status,
}

/// The rules for what is held at one path. Each takes the turns there, and the lock that is wanted.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Whether this owner would wait for itself for ever.
    pub(crate) is_deadlock: fn(&[HeldTurn], u8, Sort) -> bool,
    /// The turn of the owner's own write side.
    pub(crate) writer: fn(&[HeldTurn], u8, Sort) -> Option<usize>,
    /// The turns whose release a try waits for.
    pub(crate) releases: fn(&[HeldTurn], Sort) -> Vec<usize>,
    /// Which of these kept places make way for it.
    pub(crate) kept: fn(&[Sort], Sort) -> Vec<usize>,
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
}

/// Makes an attempt on these wants, within the node of this writer if there is one.
pub(crate) type NewAttempt = fn(&[Want], Option<String>, Patience) -> Box<dyn Attempt>;

/// A machine, and the rules for its driver.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) contender: NewAttempt,
    pub(crate) lease: fn(Duration, Moment) -> Box<dyn Term>,
    /// Makes the keeper of a session with this timeout, opened at this moment, whose checks name at most this number of holds, and
    /// whose holders must learn of a loss within this time.
    pub(crate) keeper: fn(Duration, Moment, usize, Duration) -> Box<dyn Keeping>,
    /// Makes the turns of a node that was granted just now. Several callers may be able to have it at once.
    pub(crate) turns: fn(Passes, bool) -> Box<dyn Sharing>,
    /// Makes the callers of a lock of this kind, in a session with this timeout that was opened at this moment.
    pub(crate) callers: fn(Want, Passes, Duration, Moment) -> Box<dyn Company>,
    pub(crate) rules: Rules,
    /// Whether an answer renews the lease.
    pub(crate) renews: fn(Answer) -> bool,
}

/// What is behind a door is copied and hashed like any other part of a world.
macro_rules! is_part_of_worlds {
    ($($door:ident)*) => {$(
        impl Clone for Box<dyn $door> {
            fn clone(&self) -> Self {
                (**self).copy()
            }
        }

        impl Hash for dyn $door {
            fn hash<H: Hasher>(&self, state: &mut H) {
                state.write_u64(self.fingerprint());
            }
        }
    )*};
}
is_part_of_worlds!(Attempt Term Keeping Sharing Company);

/// It is the same in all states of a world.
impl Hash for Machine {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
