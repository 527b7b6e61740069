//! The machine under check, behind a door.
//!
//! The door lets one model check the machine that ships and, in one program, the many that have a
//! bug planted in them. Were the model compiled anew for each of them, that would take minutes.

use super::machine::Moment;
use super::machine::exchange::{Now, Operation, Outcome, Patience, Verdict, WatchEvent};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// A contender. The methods are its own; see there.
pub(crate) trait Attempt: Debug {
    fn is_gone(&self) -> bool;
    fn is_idle(&self) -> bool;
    fn poll_verdict(&mut self) -> Option<Verdict>;
    fn poll_flight(&mut self) -> Option<Vec<Operation>>;
    fn poll_timeout(&self) -> Option<Moment>;
    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: u128);
    fn handle_session_over(&mut self);
    fn handle_end(&mut self);
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
    fn copy(&self) -> Box<dyn Term>;
    fn fingerprint(&self) -> u64;
}

/// What a driver may take an answer for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Read,
    QuorumWrite,
}

/// A machine, and what its driver has to know.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) contender: fn(Patience) -> Box<dyn Attempt>,
    pub(crate) lease: fn(Duration, Moment) -> Box<dyn Term>,
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

/// It is the same in all states of a world.
impl Hash for Machine {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
