//! The servers that are struck. A fault names a server by its index, and needs no more of it than stands here, so that servers of
//! another kind can take the same faults.

use std::time::Duration;

use ground::wire::Admin;
use ground::{Direction, Ensemble, Proxy, Server};

use crate::workers::PLACES;

pub(crate) enum Servers {
    ZooKeeper(Ensemble),
}

impl Servers {
    /// Those of ZooKeeper, for what only ZooKeeper has.
    pub(crate) fn zookeeper(&self) -> &Ensemble {
        let Self::ZooKeeper(ensemble) = self;
        ensemble
    }

    pub(crate) fn count(&self) -> usize {
        self.zookeeper().servers().len()
    }

    /// A way for clients to each of them.
    pub(crate) fn ways(&self) -> Vec<Proxy> {
        self.zookeeper().proxied()
    }

    /// The one that leads. It waits for an election to end.
    pub(crate) fn leader(&self) -> usize {
        index(self.zookeeper().leader())
    }

    /// Those that follow at this moment.
    pub(crate) fn followers(&self) -> Vec<usize> {
        self.zookeeper().followers().into_iter().map(index).collect()
    }

    pub(crate) fn pause(&self, at: usize) {
        self.zookeeper().server(at).pause();
    }

    pub(crate) fn resume(&self, at: usize) {
        self.zookeeper().server(at).resume();
    }

    pub(crate) fn kill(&self, at: usize) {
        self.zookeeper().server(at).kill();
    }

    pub(crate) fn stop(&self, at: usize) {
        self.zookeeper().server(at).stop();
    }

    pub(crate) fn start(&self, at: usize) {
        self.zookeeper().server(at).start();
    }

    /// Holds all that goes between a follower and its leader.
    pub(crate) fn part(&self, follower: usize, leader: usize) {
        let servers = self.zookeeper().servers();
        self.zookeeper().quorum_link(&servers[follower], &servers[leader]).freeze(Direction::Both);
    }

    /// Lets it go on.
    pub(crate) fn join(&self, follower: usize, leader: usize) {
        let servers = self.zookeeper().servers();
        self.zookeeper().quorum_link(&servers[follower], &servers[leader]).thaw();
    }

    /// Waits until all serve and are in step; else it says what is missing.
    pub(crate) fn await_whole(&self, bound: Duration) -> Result<(), String> {
        self.zookeeper().await_whole(bound)
    }

    /// An operator at a server of ZooKeeper that no fault comes between. It is there as long as that server is.
    pub(crate) fn admin(&self) -> Admin {
        Admin::connect(self.zookeeper().leader().address())
    }

    /// Looks for the nodes of those who hold a lock or wait for it.
    pub(crate) fn contenders(&self) -> Box<dyn Fn() -> Vec<String>> {
        let admin = self.admin();
        let is_contender = |path: &String| path.rsplit('-').next().is_some_and(|end| end.len() == 10);
        Box::new(move || {
            let tree = PLACES.into_iter().flat_map(|place| admin.tree(&format!("/{place}")));
            tree.filter(|path| is_contender(path) || path.ends_with("/lock")).collect()
        })
    }
}

fn index(server: &Server) -> usize {
    server.number() - 1
}
