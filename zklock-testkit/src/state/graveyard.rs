//! Nodes that were deleted recently, so that a confirmed deletion can be lost.
//!
//! The number of nodes and bytes that it keeps is limited, because a server may run for days.

use std::collections::VecDeque;

use crate::state::node::Node;

const NODES: usize = 4096;
const BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Graveyard {
    /// The most recently deleted node comes last.
    nodes: VecDeque<(String, Node)>,
    bytes: usize,
    /// How many nodes were ever deleted.
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

    /// How many nodes were ever deleted. Compared with an earlier answer, this shows what was deleted meanwhile.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The paths that were deleted since then, most recent first, so that parents come before their children.
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
