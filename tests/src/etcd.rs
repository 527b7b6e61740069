//! Three real etcd servers for a test, as [`Ensemble`](crate::Ensemble) has ZooKeeper's, so that etcd can be compared
//! under the same faults.
//!
//! They keep etcd's own timing (a heartbeat of 100 ms, elections after 1 s), on loopback, with data in memory. Between
//! each two of them is a [`Proxy`] in each direction.

mod crossing;
mod gateway;
mod member;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ensemble::new_folder;
use crate::port::Port;
use crate::proxy::{Direction, Proxy};
use crate::server::STARTED;
use crate::wait::until;

use crossing::Crossing;
use gateway::{ask, decoded, texts};
pub use member::Member;
use member::Status;

const COUNT: usize = 3;
/// How long an operator waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// All keys that begin with a slash, in base64: from `/` up to `0`, which is the next character.
const ALL_PATHS: &str = r#"{"key":"Lw==","range_end":"MA=="}"#;

/// A key with a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key, such as `/a/694d`.
    pub name: String,
    /// The key as the gateway expects it.
    encoded: String,
    /// The number of its lease.
    pub lease: String,
}

/// A running cluster of three. Dropping it ends all its servers and removes their data.
#[derive(Debug)]
pub struct Etcd {
    members: Arc<Vec<Member>>,
    /// The proxies, by (from, to), each the index of a server. Connections that `from` makes to `to` go through it.
    links: BTreeMap<(usize, usize), Proxy>,
}

impl Etcd {
    /// Starts the servers with this program, and waits until all of them serve.
    pub fn start(program: &str) -> Result<Self, String> {
        let ports: Vec<_> = (0..COUNT).map(|_| (Port::claim(), Port::claim())).collect();
        let pairs = (0..COUNT).flat_map(|from| (0..COUNT).map(move |to| (from, to)));
        let links: BTreeMap<_, _> = pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| ((from, to), Proxy::plain(ports[to].1.address())))
            .collect();
        let crossings: Vec<_> = (0..COUNT)
            .map(|_| Crossing::open())
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        let url = |address: SocketAddr| format!("http://{address}");
        let urls: Vec<_> = crossings.iter().map(|crossing| url(crossing.address())).collect();
        let all: Vec<_> = urls.iter().enumerate().map(|(at, url)| format!("server{at}={url}")).collect();
        let mut members = Vec::new();
        for (at, (port, peers)) in ports.into_iter().enumerate() {
            let home = new_folder().map_err(|error| format!("a folder for the server's data: {error}"))?;
            let (clients, data) = (url(port.address()), home.join("data/etcd").display().to_string());
            let own = url(peers.address());
            let words = [
                ["--name", &format!("server{at}")],
                ["--data-dir", &data],
                ["--listen-client-urls", &clients],
                ["--advertise-client-urls", &clients],
                ["--listen-peer-urls", &own],
                // Other servers dial this address. The server itself never does.
                ["--initial-advertise-peer-urls", &urls[at]],
                ["--initial-cluster", &all.join(",")],
                ["--initial-cluster-token", &urls[0]],
                ["--logger", "zap"],
                ["--log-level", "error"],
            ];
            let command: Vec<_> =
                [program].into_iter().chain(words.into_iter().flatten()).map(str::to_owned).collect();
            let member = Member::new(at, port, peers, &home, &command);
            members.push(member.map_err(|error| format!("starting a watchdog shell: {error}"))?);
        }
        let members = Arc::new(members);
        for (to, crossing) in crossings.into_iter().enumerate() {
            let ways = links.iter().filter(|((_, at), _)| *at == to);
            let ways = ways.map(|((from, _), link)| (*from, link.address())).collect();
            crossing.serve(Arc::downgrade(&members), ways);
        }
        let etcd = Self { members, links };
        etcd.members.iter().for_each(|member| member.start());
        etcd.await_whole(STARTED)?;
        Ok(etcd)
    }

    /// The server with this index, counting from 0.
    pub fn member(&self, index: usize) -> &Member {
        &self.members[index]
    }

    /// All servers.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The leader. Waits for an election to end.
    ///
    /// # Panics
    ///
    /// If there is no leader in time.
    #[track_caller]
    pub fn leader(&self) -> usize {
        let mut leader = None;
        until(STARTED, || {
            leader = self.leader_now();
            leader.is_some()
        });
        leader.expect("the cluster has a leader")
    }

    /// The current leader, if there is one. If two servers believe that they lead, the one of the later election.
    pub fn leader_now(&self) -> Option<usize> {
        let all = self.statuses();
        let leading = all.iter().filter(|(_, status)| status.leader == status.id);
        leading.max_by_key(|(_, status)| status.term).map(|(at, _)| *at)
    }

    /// The current followers.
    pub fn followers(&self) -> Vec<usize> {
        let all = self.statuses();
        let follows = |status: &Status| status.leader != 0 && status.leader != status.id;
        all.into_iter().filter(|(_, status)| follows(status)).map(|(at, _)| at).collect()
    }

    /// Holds everything that these two servers send each other.
    pub fn part(&self, one: usize, other: usize) {
        self.between(one, other).for_each(|link| link.freeze(Direction::Both));
    }

    /// Lets it pass again.
    pub fn join(&self, one: usize, other: usize) {
        self.between(one, other).for_each(Proxy::thaw);
    }

    fn between(&self, one: usize, other: usize) -> impl Iterator<Item = &Proxy> {
        [(one, other), (other, one)].into_iter().filter_map(|pair| self.links.get(&pair))
    }

    /// Waits until every server serves and has the same leader. Otherwise the error says what is missing.
    pub fn await_whole(&self, bound: Duration) -> Result<(), String> {
        let end = Instant::now() + bound;
        for member in self.members.iter() {
            let left = end.saturating_duration_since(Instant::now());
            if !until(left, || member.is_serving()) {
                return Err(format!(
                    "server {} does not serve. Its log:\n{}",
                    member.index(),
                    member.log_tail()
                ));
            }
        }
        let agree = || {
            let all = self.statuses();
            let leaders: BTreeSet<_> = all.iter().map(|(_, status)| status.leader).collect();
            all.len() == COUNT && leaders.len() == 1 && !leaders.contains(&0)
        };
        if until(end.saturating_duration_since(Instant::now()), agree) {
            Ok(())
        } else {
            Err("the servers have no leader in common".to_owned())
        }
    }

    /// The status of each server that answers.
    fn statuses(&self) -> Vec<(usize, Status)> {
        self.members.iter().filter_map(|member| Some((member.index(), member.status()?))).collect()
    }

    /// The release.
    pub fn version(&self) -> String {
        self.statuses().pop().map(|(_, status)| status.version).unwrap_or_default()
    }

    /// The lease that the leader grants to a client that asks for so many seconds.
    pub fn lease_granted(&self, seconds: u64) -> Result<u64, String> {
        let answer = self.operate("lease/grant", &format!(r#"{{"TTL":{seconds}}}"#))?;
        let ttl = texts(&answer, "TTL").next().and_then(|text| text.parse().ok());
        ttl.ok_or_else(|| format!("no TTL in {answer}"))
    }

    /// All keys that begin with a slash.
    pub fn keys(&self) -> Result<Vec<Key>, String> {
        let answer = self.operate("kv/range", ALL_PATHS)?;
        // One JSON object for each key. A value could hide another key, but these keys have no values.
        let keys = answer.split('{').filter_map(|object| {
            let encoded = texts(object, "key").next()?.to_owned();
            let lease = texts(object, "lease").next().unwrap_or("0").to_owned();
            Some(Key { name: decoded(&encoded)?, encoded, lease })
        });
        Ok(keys.collect())
    }

    /// Ends a lease, and with it all its keys.
    pub fn revoke(&self, lease: &str) -> Result<(), String> {
        self.operate("lease/revoke", &format!(r#"{{"ID":"{lease}"}}"#)).map(drop)
    }

    /// Deletes a key.
    pub fn delete(&self, key: &Key) -> Result<(), String> {
        self.operate("kv/deleterange", &format!(r#"{{"key":"{}"}}"#, key.encoded)).map(drop)
    }

    fn operate(&self, what: &str, request: &str) -> Result<String, String> {
        let leader = self.leader_now().ok_or("no server leads")?;
        let answer = ask(self.member(leader).address(), &format!("/v3/{what}"), Some(request), PATIENCE);
        answer.map_err(|error| format!("{what}: {error}"))
    }
}
