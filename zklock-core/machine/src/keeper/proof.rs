//! Checks of nodes, and what became of them.

use crate::Moment;
use std::sync::Arc;

/// A hold among those of its session. It is not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HoldId(pub(super) u64);

/// A node that stands for a hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HeldNode {
    /// Its path.
    pub path: Arc<str>,
    /// The transaction that created it, if a node of that name may be another's.
    pub origin: Option<i64>,
}

/// A check of the nodes of some holds: to be sent as one request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Proof {
    /// What the quorum is to confirm.
    pub nodes: Vec<HeldNode>,
    /// Whose they are: each hold, with the number of its nodes.
    pub(super) holds: Vec<(HoldId, usize)>,
    /// When it was made, which is before it is sent.
    pub(super) sent: Moment,
    pub(super) is_beat: bool,
    /// The term of the lease that was running then, if one was.
    pub(super) term: Option<u64>,
    /// How many watches had been left by then that it covers.
    pub(super) watches: u64,
}

/// What became of a check.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Check {
    /// The quorum has answered for every node.
    Answered {
        /// Those that are not there, counted from 0.
        missing: Vec<usize>,
    },
    /// Not known, or not allowed.
    Unknown,
    /// There is no session, and so no node, any more.
    SessionOver,
}

impl Proof {
    /// Whose the node with this index is.
    pub(super) fn owner(&self, node: usize) -> Option<HoldId> {
        let mut end = 0;
        let is_within = |(_, nodes): &&(HoldId, usize)| {
            end += nodes;
            node < end
        };
        self.holds.iter().find(is_within).map(|(hold, _)| *hold)
    }
}
