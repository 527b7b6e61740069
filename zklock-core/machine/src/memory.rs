//! Remembers that a try found a lock busy, for callers that try again.
//!
//! Programs that try many locks again and again would otherwise write and delete a node for each "busy". So a try may
//! leave a watch on the contender in its way, and while that is silent, the next try is answered without a request. "Free"
//! is never remembered.
//!
//! A watch is only as current as its server, and a server that is cut off is silent too. But when the quorum answers a
//! write on the same connection, that proves that the server had seen by then everything committed before the write was
//! sent, and had reported it before the answer. So the memory counts for a heartbeat from the latest such write, which
//! any caller of the session may have sent. After that, the first caller that asks forgets it.

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
/// let mut lease = Lease::new(Duration::from_secs(10), at(0));
/// lease.acknowledge(at(5_000), at(5_001));
/// let mut memory = Memory::new(at(5_000));
/// assert!(memory.is_good(&lease, at(5_999)));
/// assert!(!memory.is_good(&lease, at(6_000)), "the server may lag behind");
/// lease.acknowledge(at(6_000), at(6_001));
/// assert!(memory.is_good(&lease, at(6_001)));
/// memory.handle_watch();
/// assert!(!memory.is_good(&lease, at(6_002)));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    /// When the request that set the watch was sent.
    since: Moment,
    is_told: bool,
}

impl Memory {
    /// Makes the memory of a lock that was busy when the servers answered a request, which was sent at `since` and set a
    /// watch.
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
        let is_current = lease.latest_write().is_some_and(|sent| now < sent + lease.heartbeat());
        // Silence is never trusted for ever: a server may withhold a report from a client that may not read the node.
        is_watched && is_current && now < self.since + lease.timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn at(millis: u64) -> Moment {
        Moment::at(Duration::from_millis(millis))
    }

    #[test]
    fn what_was_seen_on_one_connection_is_not_remembered_on_the_next() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        lease.acknowledge(at(5_000), at(5_001));
        let memory = Memory::new(at(5_000));
        assert!(memory.is_good(&lease, at(5_100)));
        lease.ask();
        assert!(!memory.is_good(&lease, at(5_100)));
        lease.attach(at(5_100), TIMEOUT, at(5_110));
        lease.acknowledge(at(5_120), at(5_121));
        assert!(!memory.is_good(&lease, at(5_130)));
        assert!(Memory::new(at(5_120)).is_good(&lease, at(5_130)));
    }

    #[test]
    fn silence_is_not_believed_for_longer_than_the_session_timeout() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        let memory = Memory::new(at(5_000));
        for sent in (5_000..14_200).step_by(800) {
            lease.acknowledge(at(sent), at(sent + 1));
            assert!(memory.is_good(&lease, at(sent + 799)));
        }
        lease.acknowledge(at(14_900), at(14_901));
        assert!(!memory.is_good(&lease, at(15_000)));
    }

    #[test]
    fn what_is_remembered_is_forgotten_when_a_heartbeat_or_a_timeout_is_over() {
        let mut lease = Lease::new(TIMEOUT, at(0));
        let memory = Memory::new(at(5_000));
        // No write has been acknowledged.
        assert!(!memory.is_good(&lease, at(5_000)));
        lease.acknowledge(at(5_000), at(5_001));
        assert!(memory.is_good(&lease, at(5_999)));
        assert!(!memory.is_good(&lease, at(6_000)));
        lease.acknowledge(at(14_500), at(14_501));
        assert!(memory.is_good(&lease, at(14_999)));
        assert!(!memory.is_good(&lease, at(15_000)));
    }
}
