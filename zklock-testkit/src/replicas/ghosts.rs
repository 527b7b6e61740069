//! Servers that have lost transactions: what is gone everywhere else they go on to show.
//!
//! Such a server answers reads from what it has, while the leader decides on writes. So what it shows in error is out of the way
//! while it applies the log.

use super::Replicas;
use super::server::Server;
use crate::code::opcode;
use crate::world::World;

/// What a server has lost.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    /// How many deletions it is yet to lose.
    to_lose: usize,
    /// Where nodes are that should not be there.
    paths: Vec<String>,
}

impl Ghosts {
    pub(super) fn has(&self, path: &str) -> bool {
        self.paths.iter().any(|ghost| ghost == path)
    }

    /// Whether it loses this request, of a client of another server.
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
    /// Does what all servers do, each from the same. If it `is_lost`, nobody hears of it, and what was deleted is shown on.
    pub(super) fn as_the_others(&mut self, is_lost: bool, work: impl FnOnce(&mut World)) {
        self.hide_ghosts();
        let deleted = self.world.tree.deleted();
        work(&mut self.world);
        if is_lost {
            drop(self.world.effects());
            self.ghosts.paths.extend(self.world.tree.deleted_since(deleted));
        }
        let tree = &mut self.world.tree;
        self.ghosts.paths.retain(|path| tree.bring_back(path, |_| true));
    }

    fn hide_ghosts(&mut self) {
        for path in &self.ghosts.paths {
            self.world.tree.hide(path);
        }
    }

    /// It has again what the others have.
    pub(super) fn forget_ghosts(&mut self) {
        self.hide_ghosts();
        self.ghosts = Ghosts::default();
    }
}

impl Replicas {
    /// A server loses the next deletions: it goes on to show those nodes, and tells nobody, until it is started again or comes
    /// to lead.
    ///
    /// No ensemble may do that, and some have: with ZooKeeper 3.8.0 a server that was killed in the middle of a write could come
    /// back without what the quorum had committed (ZOOKEEPER-4643, ZOOKEEPER-4785).
    ///
    /// One at a time: `false` if another has lost some. (Of a majority that has lost what it confirmed nothing is left to rely on.)
    pub fn lose_deletions(&mut self, server: usize, count: usize) -> bool {
        let is_whole = |other: &Server| other.ghosts.paths.is_empty() && other.ghosts.to_lose == 0;
        let may = (0..self.servers.len()).all(|other| other == server || is_whole(&self.servers[other]));
        if may {
            self.servers[server].ghosts.to_lose = count;
        }
        may
    }
}
