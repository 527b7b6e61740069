//! Checks of nodes, and their outcomes.

use crate::Moment;
use std::sync::Arc;

/// The identity of a hold in its session. It is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HoldId(pub(super) u64);

/// A node that represents a hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HeldNode {
    /// Its path.
    pub path: Arc<str>,
    /// The transaction that created it, if a node of that name may belong to somebody else.
    pub origin: Option<i64>,
}

/// A check of the nodes of some holds, to be sent as one request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Proof {
    /// The nodes that the quorum must confirm.
    pub nodes: Vec<HeldNode>,
    /// Their holds, each with the number of its nodes.
    pub(super) holds: Vec<(HoldId, usize)>,
    /// When it was made, which is before it is sent.
    pub(super) sent: Moment,
    pub(super) is_beat: bool,
    /// The term of the lease at that time, if it was running.
    pub(super) term: Option<u64>,
    /// How many watches had been set by then; it covers these.
    pub(super) watches: u64,
}

/// The outcome of a check.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Check {
    /// The quorum has answered for every node.
    Answered {
        /// The nodes that do not exist, by index.
        missing: Vec<usize>,
    },
    /// Unknown, or not allowed.
    Unknown,
    /// The session is over, and its nodes with it.
    SessionOver,
}

impl Proof {
    /// Returns the hold that the node with this index belongs to.
    pub(super) fn owner(&self, node: usize) -> Option<HoldId> {
        let mut end = 0;
        let is_within = |(_, nodes): &&(HoldId, usize)| {
            end += nodes;
            node < end
        };
        self.holds.iter().find(is_within).map(|(hold, _)| *hold)
    }
}
