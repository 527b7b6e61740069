//! Remembers that a try found a lock busy, for callers that try again.
//!
//! Programs that try many locks again and again would otherwise write and delete a node for each "busy". So a try may
//! leave a watch on the contender in its way, and while that is silent, the next try is answered without a request. "Free"
//! is never remembered.
//!
//! A watch is only as current as its server, and a server that is cut off is silent too; others lose reports, or withhold
//! them. So silence is believed for a heartbeat and no longer. It is counted from the request that set the watch, which
//! followed a write on the same connection: by the answer to that write, the server had seen everything that was committed
//! before. After that, the first caller that asks forgets it.

use crate::Moment;
use crate::lease::Lease;

/// The memory of one lock.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock_machine::{lease::Lease, memory::Memory, Moment};
///
/// let at = |millis| Moment::at(Duration::from_millis(millis));
/// let lease = Lease::new(Duration::from_secs(10), at(0));
/// let mut memory = Memory::new(at(5_000));
/// assert!(memory.is_good(&lease, at(5_999)));
/// assert!(!memory.is_good(&lease, at(6_000)), "the server may lag behind, or fail to tell");
/// memory.handle_watch();
/// assert!(!memory.is_good(&lease, at(5_001)));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    /// When the request that set the watch was sent.
    since: Moment,
    is_told: bool,
}

impl Memory {
    /// Makes the memory of a lock that was busy when the servers answered a request, which was sent at `since`, right after a
    /// write that the quorum has committed, and set a watch.
    pub fn new(since: Moment) -> Self {
        Self { since, is_told: false }
    }

    /// The watch has reported something.
    pub fn handle_watch(&mut self) {
        self.is_told = true;
    }

    /// Whether the lock may be taken for busy. `lease` belongs to the session that is open now.
    pub fn is_good(&self, lease: &Lease, now: Moment) -> bool {
        // A watch does not outlive its connection.
        let is_watched = !self.is_told && lease.is_connected_since(self.since);
        is_watched && now < self.since + lease.heartbeat()
    }
}
