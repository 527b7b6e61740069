//! The interface of the two machines that run an attempt: [`Contender`](crate::contender::Contender) where there is a queue, and
//! [`Single`](crate::single::Single) where there is none.

use crate::Moment;
use crate::lasting::Lasting;
use crate::name::Uuid;
use crate::protocol::{Now, Operation, Outcome, Verdict, WatchEvent};
use std::sync::Arc;
use std::time::Duration;

/// An algorithm as a state machine, which sends requests and gets their outcomes.
///
/// The driver passes it sessions, replies, watch events and the time through `handle_*`, in the order in which they happen.
/// After each call it asks [`poll_verdict`](Self::poll_verdict), [`poll_flight`](Self::poll_flight) and
/// [`poll_timeout`](Self::poll_timeout) what to do next. The operations of a flight are sent back to back on one session, and
/// their outcomes come back together. There is never more than one flight under way.
pub trait Machine {
    /// Whether nothing is left to do: no node of this machine exists or will exist.
    fn is_gone(&self) -> bool;

    /// Whether it is waiting for a session.
    fn is_idle(&self) -> bool;

    /// Whether it waits for others.
    fn is_waiting(&self) -> bool;

    /// Returns the mark of the nodes that exist, or may exist. Nodes with an earlier mark are gone.
    fn mark(&self) -> Uuid;

    /// Returns the answer for the caller, once.
    fn poll_verdict(&mut self) -> Option<Verdict>;

    /// Returns the requests to send now. An earlier watch can be dropped now.
    fn poll_flight(&mut self) -> Option<Vec<Operation>>;

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&self) -> Option<Moment>;

    /// There is a session to begin in.
    ///
    /// `heartbeat` is the interval at which holders prove their nodes; `uuid` must be new.
    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: Uuid);

    /// These children are known not to be contenders. This comes before a session, and is about its servers.
    fn handle_lasting(&mut self, _: &Arc<Lasting>) {}

    /// The servers cannot create nodes in one transaction with others. This may become known at any time.
    fn handle_old_servers(&mut self) {}

    /// The session is over, and its nodes are gone. A machine that still wants something begins again in the next session.
    fn handle_session_over(&mut self);

    /// The nodes are no longer wanted: the caller gave up, its time is up, or what it had was released or lost.
    fn handle_end(&mut self);

    /// The holder wants to be told when others wait for what it holds, or ask for it, and when a node of it is deleted.
    fn handle_notice(&mut self);

    /// The caller has tried to get the same before, and found it busy.
    fn handle_tried_before(&mut self) {}

    /// For a machine that is gone: returns since when the watch that it left has been set. While that watch is silent, what
    /// the caller tried to get is busy. `None` without such a watch. See [`memory`](crate::memory).
    fn busy_since(&self) -> Option<Moment> {
        None
    }

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come.
    fn handle_timeout(&mut self, now: Moment);

    /// A watch that was asked for has fired.
    fn handle_watch(&mut self, event: WatchEvent, now: Now);

    /// The outcomes of the flight that was sent at `sent`, one for each operation.
    fn handle_replies(&mut self, outcomes: Vec<Outcome>, sent: Moment, now: Now);
}
