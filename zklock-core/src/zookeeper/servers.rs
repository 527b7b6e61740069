//! The state that all connections of a session share: the level of its servers, and which of them were asked for it.

use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::connect::level::ServerLevel;
use crate::connect::path::{Hosts, written};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The information that is needed to attach another connection to a session.
#[derive(Clone)]
pub(crate) struct SessionInfo {
    pub(super) library: zookeeper_client::SessionInfo,
    pub(super) servers: Servers,
}

/// The level of the servers, and which of them were asked for the session.
#[derive(Clone)]
pub(super) struct Servers {
    /// Whether the options state the level.
    is_stated: bool,
    are_old: Arc<AtomicBool>,
    /// The servers that were asked for the session, the last one last.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Servers {
    pub(super) fn new(stated: Option<ServerLevel>, asked: ServerLevel) -> Self {
        let are_old = stated.unwrap_or(asked) == ServerLevel::V3_4;
        Self { is_stated: stated.is_some(), are_old: Arc::new(are_old.into()), asked: Arc::default() }
    }

    pub(super) fn level(&self) -> ServerLevel {
        if self.are_old.load(Ordering::Relaxed) { ServerLevel::V3_4 } else { ServerLevel::V3_5 }
    }

    /// Notes that one of them is older than 3.5; `false` if the options state that they are not.
    pub(super) fn note_old(&self) -> bool {
        if !self.is_stated {
            tracing::info!("a server is older than 3.5");
            self.are_old.store(true, Ordering::Relaxed);
        }
        !self.is_stated
    }

    /// Notes that this server is asked for the session, and no other.
    pub(super) fn ask(&self, host: String) {
        let mut asked = lock_ignoring_poison(&self.asked);
        asked.retain(|former| *former != host);
        asked.push(host);
    }

    /// Returns which servers to ask for the session now: those not asked before, or, if all have been, all but the last
    /// one.
    ///
    /// A server that is cut off from its leader keeps what it was sent, and sends it on when it can. The leader refuses
    /// that if the session has moved to another server by then. But every server that is asked for the session moves it
    /// there, as soon as the leader learns of it, and before the leader looks at what the same server has sent earlier. So
    /// if a server was left in the middle of a write, and is then asked again in vain, that write may be done at any later
    /// time.
    pub(super) fn asking(&self, all: &Hosts) -> Asking {
        let mut asked = lock_ignoring_poison(&self.asked);
        let is_new = |(host, port): &&(String, u16), asked: &[String]| {
            !asked.contains(&(written(host, *port) + &all.chroot))
        };
        if !all.servers.iter().any(|server| is_new(&server, &asked)) {
            let last = asked.pop();
            *asked = last.into_iter().filter(|_| all.servers.len() > 1).collect();
        }
        let servers = all.servers.iter().filter(|server| is_new(server, &asked)).cloned().collect();
        drop(asked);
        Asking { hosts: Hosts { servers, ..all.clone() }, servers: self.clone() }
    }
}

/// Hosts that are about to be asked for a session. They count as asked when this is dropped, unless one of them was chosen.
pub(super) struct Asking {
    pub(super) hosts: Hosts,
    servers: Servers,
}

impl Asking {
    /// Chooses this one.
    pub(super) fn choose(mut self, host: &str) {
        mem::take(&mut self.hosts.servers);
        self.servers.ask(host.to_owned());
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        for (host, port) in &self.hosts.servers {
            self.servers.ask(written(host, *port) + &self.hosts.chroot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers() -> Servers {
        Servers::new(None, ServerLevel::V3_5)
    }

    fn names(asking: &Asking) -> Vec<&str> {
        asking.hosts.servers.iter().map(|(host, _)| &**host).collect()
    }

    #[test]
    fn a_server_that_was_asked_for_the_session_is_asked_again_after_all_others() {
        let (servers, all) = (servers(), Hosts::parse("a:1,b:2,c:3/root").unwrap());
        servers.ask("b:2/root".to_owned());
        let asking = servers.asking(&all);
        assert_eq!(names(&asking), ["a", "c"]);
        asking.choose("c:3/root");
        assert_eq!(names(&servers.asking(&all)), ["a"]);
        // That was dropped without a choice, so all have been asked, the last of them a.
        assert_eq!(names(&servers.asking(&all)), ["b", "c"]);
    }

    #[test]
    fn a_server_that_is_alone_is_asked_each_time() {
        let (servers, all) = (servers(), Hosts::parse("a:1").unwrap());
        servers.ask("a:1".to_owned());
        for _ in 0..3 {
            let asking = servers.asking(&all);
            assert_eq!(names(&asking), ["a"]);
            asking.choose("a:1");
        }
    }
}
