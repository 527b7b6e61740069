//! Servers that have lost transactions: they still show nodes that are gone everywhere else.
//!
//! Such a server answers reads from what it has, while the leader decides on writes. So the nodes that it shows in error
//! are put aside while it applies the log.

use ground::wire::codec::opcode;

use super::Replicas;
use super::server::Server;
use crate::replica::Replica;

/// The losses of one server.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    /// How many deletions it has yet to lose.
    to_lose: usize,
    /// Nodes that should no longer exist.
    paths: Vec<String>,
}

impl Ghosts {
    pub(super) fn has(&self, path: &str) -> bool {
        self.paths.iter().any(|ghost| ghost == path)
    }

    /// Whether it loses this request, which came from a client of another server.
    ///
    /// A transaction that begins with a deletion is lost as a whole.
    pub(super) fn takes_request(&mut self, frame: &[u8]) -> bool {
        let is = |at: usize, operation: i32| frame.get(at..at + 4) == Some(&operation.to_be_bytes()[..]);
        let deletes = is(4, opcode::DELETE) || is(4, opcode::MULTI) && is(8, opcode::DELETE);
        deletes && self.takes_one()
    }

    pub(super) fn takes_one(&mut self) -> bool {
        let takes = self.to_lose > 0;
        self.to_lose -= usize::from(takes);
        takes
    }
}

impl Server {
    /// Applies a request as all servers do, from the same state. If it `is_lost`, no client is told, and deleted nodes
    /// are still shown.
    pub(super) fn as_the_others(&mut self, is_lost: bool, work: impl FnOnce(&mut Replica)) {
        self.hide_ghosts();
        let deleted = self.replica.deleted();
        work(&mut self.replica);
        if is_lost {
            drop(self.replica.effects());
            self.ghosts.paths.extend(self.replica.deleted_since(deleted));
        }
        self.ghosts.paths.retain(|path| self.replica.bring_back(path));
    }

    fn hide_ghosts(&mut self) {
        for path in &self.ghosts.paths {
            self.replica.hide(path);
        }
    }

    /// Restores the state of the others.
    pub(super) fn forget_ghosts(&mut self) {
        self.hide_ghosts();
        self.ghosts = Ghosts::default();
    }
}

impl Replicas {
    /// Makes a server lose the next deletions: it still shows those nodes, and tells no client, until it is restarted or
    /// becomes the leader.
    ///
    /// No ensemble may do that, but some have: with ZooKeeper 3.8.0, a server that was killed in the middle of a write
    /// could come back without what the quorum had committed (ZOOKEEPER-4643, ZOOKEEPER-4785).
    ///
    /// Only one server at a time: `false` if another has lost some. (If a majority loses what it has confirmed, nothing
    /// can be relied on.)
    pub(crate) fn lose_deletions(&mut self, server: usize, count: usize) -> bool {
        let is_whole = |other: &Server| other.ghosts.paths.is_empty() && other.ghosts.to_lose == 0;
        let may = (0..self.servers.len()).all(|other| other == server || is_whole(&self.servers[other]));
        if may {
            self.servers[server].ghosts.to_lose = count;
        }
        may
    }
}
