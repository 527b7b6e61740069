//! Nodes that were deleted lately, so that a deletion can be lost after it was confirmed.
//!
//! How much is kept is bounded, in nodes and in bytes: a server that runs for days must not keep all it ever had.

use std::collections::VecDeque;

use crate::tree::Node;

const NODES: usize = 4096;
const BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Graveyard {
    /// The last one deleted is the last one here.
    nodes: VecDeque<(String, Node)>,
    bytes: usize,
    /// How many were ever deleted.
    count: u64,
}

impl Graveyard {
    pub(crate) fn bury(&mut self, path: String, node: Node) {
        self.count += 1;
        self.bytes += size(&path, &node);
        self.nodes.push_back((path, node));
        while self.nodes.len() > NODES || self.bytes > BYTES {
            let Some((path, node)) = self.nodes.pop_front() else { break };
            self.bytes -= size(&path, &node);
        }
    }

    /// How many were ever deleted: what is told from an earlier answer was deleted meanwhile.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The paths of those that were deleted since then, the last one first, so that parents come before children.
    pub(crate) fn since(&self, count: u64) -> Vec<String> {
        let many = usize::try_from(self.count - count).unwrap_or(usize::MAX);
        self.nodes.iter().rev().take(many).map(|(path, _)| path.clone()).collect()
    }

    /// The node that was deleted last at this path, as it was.
    pub(crate) fn find(&self, path: &str) -> Option<&Node> {
        self.nodes.iter().rev().find(|(buried, _)| buried == path).map(|(_, node)| node)
    }
}

fn size(path: &str, node: &Node) -> usize {
    path.len() + node.data.as_ref().map_or(0, Vec::len)
}
