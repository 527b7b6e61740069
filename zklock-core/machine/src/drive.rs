//! What a driver runs: an algorithm that sends requests, and hears what becomes of them.

use crate::Moment;
use crate::name::Uuid;
use crate::protocol::{Now, Operation, Outcome, WatchEvent};
use std::time::Duration;

/// An algorithm as a state machine, for one loop that runs them all.
///
/// The driver gives it sessions, replies, watch events and the time through `handle_*`, in the order in which they
/// happen. After each call it asks [`poll_verdict`](Self::poll_verdict), [`poll_flight`](Self::poll_flight) and
/// [`poll_timeout`](Self::poll_timeout) what follows. The operations of a flight are sent back to back on one session,
/// and their outcomes come back together. There is never more than one flight under way.
pub trait Machine {
    /// What the caller is told.
    type Verdict;

    /// Whether nothing is left to do: no node of this machine is there, nor will be.
    fn is_gone(&self) -> bool;

    /// Whether it is waiting for a session.
    fn is_idle(&self) -> bool;

    /// Whether it waits for others.
    fn is_waiting(&self) -> bool;

    /// The mark of the nodes that are there, or may be. Nodes with an earlier one are gone.
    fn mark(&self) -> Uuid;

    /// What the caller is to be told; it comes once.
    fn poll_verdict(&mut self) -> Option<Self::Verdict>;

    /// What to send now. Unless the machine [keeps it](Self::keeps_watch), a watch that was left before is of no use
    /// any more.
    fn poll_flight(&mut self) -> Option<Vec<Operation>>;

    /// Whether the watch of an earlier flight still counts, beside those of the flight that has just been polled.
    fn keeps_watch(&self) -> bool {
        false
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&self) -> Option<Moment>;

    /// A session is there: begin in it.
    ///
    /// `heartbeat` is the interval at which holders prove their nodes; `uuid` must be new.
    fn handle_session(&mut self, session: i64, heartbeat: Duration, uuid: Uuid);

    /// The servers cannot create nodes in one transaction with others, now or from now on.
    fn handle_old_servers(&mut self) {}

    /// The session is over, and its nodes with it. A machine that still wants something begins again in the next.
    fn handle_session_over(&mut self);

    /// The nodes are not wanted any more: the caller gave up, its time is over, or what it had was released or lost.
    fn handle_end(&mut self);

    /// The holder is to be told when others wait for what it holds, or ask for it.
    fn handle_notice(&mut self) {}

    /// The caller has found busy before what it tries to get.
    fn handle_tried_before(&mut self) {}

    /// Of a machine that is gone: since when the watch that is left says, as long as it is silent, that what the caller tried
    /// to get is busy; if there is one. See [`memory`](crate::memory).
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
