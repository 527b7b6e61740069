//! What a world is made of: how many clients, what may go wrong, and how often.

use super::machine::exchange::Patience;
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
    /// The lock's node deleted, with all in it.
    pub(crate) parent_deletions: u8,
    /// Children whose data an operator changes.
    pub(crate) changes: u8,
    /// Requests that the server refuses.
    pub(crate) refusals: u8,
    /// Steps of the clock.
    pub(crate) steps: u8,
    /// Heartbeats, where they are actions of their own.
    pub(crate) beats: u8,
}

/// One configuration.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) clients: usize,
    /// How many attempts each client makes.
    pub(crate) attempts: u8,
    pub(crate) patience: Patience,
    /// Whether the lock's node is there at the start, and its next sequence number.
    pub(crate) parent: Option<i32>,
    pub(crate) clock: Clock,
    /// How many of the clients may be slow: for the others no time passes while they have work to do.
    pub(crate) slow: usize,
    /// Whether the server tells the origin of a node with its creation.
    pub(crate) tells_origin: bool,
    pub(crate) faults: Faults,
}

impl Setup {
    pub(crate) fn new(name: &'static str, clients: usize, faults: Faults) -> Self {
        Self {
            name,
            clients,
            attempts: 1,
            patience: Patience::Waits,
            parent: Some(0),
            clock: Clock::Leaps,
            slow: clients,
            tells_origin: true,
            faults,
        }
    }

    /// The same with time that passes tick by tick.
    pub(crate) fn ticking(self, slow: usize) -> Self {
        Self { clock: Clock::Ticks, slow, ..self }
    }
}
