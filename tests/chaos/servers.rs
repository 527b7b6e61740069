//! The servers that faults strike. A fault names a server by its index.

use std::time::Duration;

use ground::wire::Admin;
use ground::{Direction, Ensemble, Proxy, Server};

use crate::field::{DATE, DISK};
use crate::judge::TICK;
use crate::workers::PLACES;

pub(crate) struct Servers(Ensemble);

/// Methods of the server with that index.
macro_rules! for_one {
    ($($act:ident)*) => {$(
        pub(crate) fn $act(&self, at: usize) {
            self.0.server(at).$act();
        }
    )*};
}

impl Servers {
    /// Starts servers of this release, with clocks that are this much too fast.
    pub(crate) fn start_all(version: Option<&str>, clock: Option<&str>) -> Result<Self, String> {
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
        builder.try_start().map(Self)
    }

    pub(crate) fn ensemble(&self) -> &Ensemble {
        &self.0
    }

    pub(crate) fn count(&self) -> usize {
        self.0.servers().len()
    }

    /// A proxy for clients in front of each server.
    pub(crate) fn ways(&self) -> Vec<Proxy> {
        self.0.proxied()
    }

    /// The leader. Waits for an election to end.
    pub(crate) fn leader(&self) -> usize {
        index(self.0.leader())
    }

    /// The current followers.
    pub(crate) fn followers(&self) -> Vec<usize> {
        self.0.followers().into_iter().map(index).collect()
    }

    for_one!(pause resume kill stop start);

    /// Holds everything that a follower and its leader send each other.
    pub(crate) fn part(&self, follower: usize, leader: usize) {
        link(&self.0, follower, leader).freeze(Direction::Both);
    }

    /// Lets it pass again.
    pub(crate) fn join(&self, follower: usize, leader: usize) {
        link(&self.0, follower, leader).thaw();
    }

    /// Waits until all serve and are in step. Otherwise the error says what is missing.
    pub(crate) fn await_whole(&self, bound: Duration) -> Result<(), String> {
        self.0.await_whole(bound)
    }

    /// An operator on a server, whose connection no fault breaks. It works as long as that server runs.
    pub(crate) fn admin(&self) -> Admin {
        Admin::connect(self.0.leader().address())
    }

    /// The same, if the machine is not too busy for that.
    pub(crate) fn try_admin(&self) -> Option<Admin> {
        Admin::try_connect(self.0.leader_now()?.address()).ok()
    }

    /// The nodes of holders and waiters; why not, if the machine is too busy for that.
    pub(crate) fn contenders(&self) -> Result<Vec<String>, String> {
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
