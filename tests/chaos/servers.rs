//! The servers that faults strike: ZooKeeper's or etcd's. A fault names a server by its index and only uses the methods
//! here, so that it works with both.

use std::time::Duration;

use ground::wire::Admin;
use ground::{Direction, Ensemble, Etcd, Proxy, Server};

use crate::field::{DATE, DISK};
use crate::judge::{SESSION, TICK};
use crate::workers::PLACES;

/// The kind of the servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    ZooKeeper,
    Etcd,
}

pub(crate) enum Servers {
    ZooKeeper(Ensemble),
    Etcd(Etcd),
}

/// Methods that both kinds of servers have, of the server with that index.
macro_rules! for_one {
    ($($act:ident)*) => {$(
        pub(crate) fn $act(&self, at: usize) {
            match self {
                Self::ZooKeeper(ensemble) => ensemble.server(at).$act(),
                Self::Etcd(etcd) => etcd.member(at).$act(),
            }
        }
    )*};
}

impl Servers {
    /// Starts ZooKeeper servers of this release, with clocks that are this much too fast.
    pub(crate) fn of_zookeeper(version: Option<&str>, clock: Option<&str>) -> Result<Self, String> {
        let [disk, date] = [variable("CHAOS_DISK_LIBRARY")?, variable("CHAOS_DATE_LIBRARY")?];
        let mut preloaded = format!("LD_PRELOAD={disk}:{date}");
        let [disk, date] = [format!("CHAOS_DISK={{home}}/{DISK}"), format!("CHAOS_DATE={{home}}/{DATE}")];
        let mut rate = "FAKETIME=".to_owned();
        if let Some(clock) = clock {
            preloaded = format!("{preloaded}:{}", variable("CHAOS_CLOCK_LIBRARY")?);
            rate = format!("FAKETIME=+0 x{clock}");
        }
        let under = ["env", &preloaded, &disk, &date, &rate];
        let mut builder = Ensemble::builder().servers(3).tick(TICK).quorum_proxies(true).under(&under);
        if let Some(version) = version {
            builder = builder.version(version);
        }
        builder.try_start().map(Self::ZooKeeper)
    }

    /// Starts etcd servers of the release that `tests/chaos/run` has found.
    pub(crate) fn of_etcd() -> Result<Self, String> {
        let etcd = Etcd::start(&variable("CHAOS_ETCD_SERVER")?)?;
        let (version, wanted) = (etcd.version(), SESSION.as_secs());
        println!("etcd {version}, which grants {} s of {wanted} s", etcd.lease_granted(wanted)?);
        Ok(Self::Etcd(etcd))
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::ZooKeeper(_) => Kind::ZooKeeper,
            Self::Etcd(_) => Kind::Etcd,
        }
    }

    /// The ZooKeeper servers, for faults that only ZooKeeper has.
    ///
    /// # Panics
    ///
    /// If they are of another kind.
    pub(crate) fn zookeeper(&self) -> &Ensemble {
        match self {
            Self::ZooKeeper(ensemble) => ensemble,
            Self::Etcd(_) => panic!("ZooKeeper's faults are for its servers"),
        }
    }

    /// The etcd servers, for faults that only etcd has.
    ///
    /// # Panics
    ///
    /// If they are of another kind.
    pub(crate) fn etcd(&self) -> &Etcd {
        match self {
            Self::ZooKeeper(_) => panic!("etcd's faults are for its servers"),
            Self::Etcd(etcd) => etcd,
        }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Self::ZooKeeper(ensemble) => ensemble.servers().len(),
            Self::Etcd(etcd) => etcd.members().len(),
        }
    }

    /// A proxy for clients in front of each server.
    pub(crate) fn ways(&self) -> Vec<Proxy> {
        match self {
            Self::ZooKeeper(ensemble) => ensemble.proxied(),
            Self::Etcd(etcd) => etcd.members().iter().map(|member| Proxy::plain(member.address())).collect(),
        }
    }

    /// The leader. Waits for an election to end.
    pub(crate) fn leader(&self) -> usize {
        match self {
            Self::ZooKeeper(ensemble) => index(ensemble.leader()),
            Self::Etcd(etcd) => etcd.leader(),
        }
    }

    /// The current followers.
    pub(crate) fn followers(&self) -> Vec<usize> {
        match self {
            Self::ZooKeeper(ensemble) => ensemble.followers().into_iter().map(index).collect(),
            Self::Etcd(etcd) => etcd.followers(),
        }
    }

    for_one!(pause resume kill stop start);

    /// Holds everything that a follower and its leader send each other.
    pub(crate) fn part(&self, follower: usize, leader: usize) {
        match self {
            Self::ZooKeeper(ensemble) => link(ensemble, follower, leader).freeze(Direction::Both),
            Self::Etcd(etcd) => etcd.part(follower, leader),
        }
    }

    /// Lets it pass again.
    pub(crate) fn join(&self, follower: usize, leader: usize) {
        match self {
            Self::ZooKeeper(ensemble) => link(ensemble, follower, leader).thaw(),
            Self::Etcd(etcd) => etcd.join(follower, leader),
        }
    }

    /// Waits until all serve and are in step. Otherwise the error says what is missing.
    pub(crate) fn await_whole(&self, bound: Duration) -> Result<(), String> {
        match self {
            Self::ZooKeeper(ensemble) => ensemble.await_whole(bound),
            Self::Etcd(etcd) => etcd.await_whole(bound),
        }
    }

    /// An operator on a ZooKeeper server, whose connection no fault breaks. It works as long as that server runs.
    pub(crate) fn admin(&self) -> Admin {
        Admin::connect(self.zookeeper().leader().address())
    }

    /// The same, if the machine is not too busy for that.
    pub(crate) fn try_admin(&self) -> Option<Admin> {
        Admin::try_connect(self.zookeeper().leader_now()?.address()).ok()
    }

    /// The nodes, or keys, of holders and waiters; why not, if the machine is too busy for that.
    pub(crate) fn contenders(&self) -> Result<Vec<String>, String> {
        let Self::ZooKeeper(_) = self else {
            return Ok(self.etcd().keys()?.into_iter().map(|key| key.name).collect());
        };
        let admin = self.try_admin().ok_or("no leader answers")?;
        let is_of_lock =
            |path: &String| has_number(path) || path.ends_with("/lock") || path.ends_with("-of-lock");
        let mut all = Vec::new();
        for (place, _) in PLACES {
            let tree = admin.try_tree(&format!("/{place}")).map_err(|failure| format!("{failure:?}"))?;
            all.extend(tree.into_iter().filter(is_of_lock));
        }
        Ok(all)
    }
}

/// Whether it ends with a sequence number, of ten digits: `…-lock-0000000001`, `…-__READ__0000000001`.
fn has_number(path: &str) -> bool {
    let digits = path.bytes().rev().take_while(u8::is_ascii_digit).count();
    digits >= 10
}

/// What `tests/chaos/run` has set.
pub(crate) fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set: call tests/chaos/run"))
}

fn index(server: &Server) -> usize {
    server.number() - 1
}

fn link(ensemble: &Ensemble, follower: usize, leader: usize) -> &Proxy {
    ensemble.quorum_link(ensemble.server(follower), ensemble.server(leader))
}
