//! An ensemble of servers without sockets and clocks, for simulations. Not part of the API.
//!
//! The commits of the quorum form a single log. Each server applies it to its own `World`, as late as its network and
//! its pauses make it, and answers reads from that. Requests that change anything go to the leader. Everything that
//! ZooKeeper leaves to chance is random here too: how long a message takes, which proposals of a failed leader survive,
//! how long an election lasts. A leader that is cut off keeps answering its clients until it finds out, and so does a
//! follower.
//!
//! It has no clock: time is a parameter. The same seed gives the same run.

mod ghosts;
mod leading;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::server::Server as Embedded;
use crate::state::settings::Settings;
use crate::state::world::Moment;
use crate::wire::access;
use leading::Leadership;
use server::{Role, Server};

/// A random number below the given one.
pub type Dice = Box<dyn FnMut(u64) -> u64>;

/// The settings of the servers.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// ZooKeeper's unit of time.
    pub tick: Duration,
    /// The number of ticks of silence after which servers give each other up.
    pub limit: u32,
    /// The shortest and the longest session timeout.
    pub sessions: (Duration, Duration),
    /// How often empty containers are deleted.
    pub reaping: Duration,
    /// How many milliseconds a session with a timeout of one second lives: fewer if the servers' clocks are fast.
    pub second: u32,
}

/// An entry of the log.
#[derive(Debug, Clone)]
enum Entry {
    Open { session: i64, timeout: Duration, origin: (usize, u64) },
    Request { session: i64, frame: Vec<u8>, origin: (usize, u64) },
    Expire { session: i64 },
    Remove { path: String },
    Epoch(i64),
}

/// Messages between servers, and what they do at certain times. `generation` is that of the named server: once it has
/// lost its leader, or ended, messages of its earlier generation are ignored.
#[derive(Debug, Clone)]
enum Event {
    /// From the server to its leader.
    Ask {
        server: usize,
        generation: u64,
        asked: Asked,
    },
    /// The leader processes the next request of its servers.
    Prepare {
        server: usize,
        generation: u64,
    },
    /// Other servers have written the leader's proposals up to this one.
    Acknowledged {
        server: usize,
        generation: u64,
    },
    Apply {
        server: usize,
        generation: u64,
        upto: usize,
    },
    /// The leader's answer to a request that changes nothing.
    Answer {
        server: usize,
        generation: u64,
        connection: u64,
        answer: Answer,
    },
    /// Twice in a tick.
    Beat {
        server: usize,
    },
    Lost {
        server: usize,
        generation: u64,
    },
    Join {
        server: usize,
        generation: u64,
    },
    Election,
    /// A message of a client.
    Receive {
        connection: u64,
        frame: Vec<u8>,
    },
}

#[derive(Debug, Clone)]
enum Asked {
    Open { connection: u64, timeout: Duration },
    Resume { connection: u64, session: i64, timeout: Duration },
    Write { connection: u64, session: i64, xid: i32, frame: Vec<u8> },
    Sync { connection: u64, xid: i32 },
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Resumed {
        session: i64,
        timeout: Duration,
        is_there: bool,
    },
    Synced {
        xid: i32,
    },
    /// A request that is refused without being tried.
    Refused {
        xid: i32,
        code: i32,
    },
    /// The client is now connected to another server.
    Moved,
}

/// An action on a connection: something to send, or its end.
pub type Effect = (u64, Option<Vec<u8>>);

/// The ensemble.
pub struct Replicas {
    timing: Timing,
    dice: Dice,
    now: Duration,
    servers: Vec<Server>,
    log: Vec<Entry>,
    /// Sessions in the log, with the timeouts that they were granted.
    sessions: BTreeMap<i64, Duration>,
    next_session: i64,
    epoch: i64,
    events: BTreeMap<(Duration, u64), Event>,
    /// Messages that wait for a pause or a cut to end.
    held: Vec<Event>,
    next_event: u64,
    /// The server of each connection.
    homes: BTreeMap<u64, usize>,
    cuts: BTreeSet<(usize, usize)>,
    is_electing: bool,
    /// The proposals of the last leader that has ended.
    orphans: Vec<Entry>,
    effects: Vec<Effect>,
}

impl std::fmt::Debug for Replicas {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Replicas").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Replicas {
    /// Servers that have just been started.
    pub fn new(count: usize, timing: Timing, dice: Dice) -> Self {
        let settings = Embedded::builder().tick(timing.tick).into_settings();
        let (shortest, longest) = timing.sessions;
        let settings = Settings { session_timeouts: (shortest, longest), ..settings };
        let moment = moment(Duration::ZERO);
        let servers = (0..count).map(|_| Server::new(settings.clone(), moment)).collect();
        let mut all = Self {
            timing,
            dice,
            now: Duration::ZERO,
            servers,
            log: Vec::new(),
            sessions: BTreeMap::new(),
            next_session: 0x10_0000,
            epoch: 0,
            events: BTreeMap::new(),
            held: Vec::new(),
            next_event: 0,
            homes: BTreeMap::new(),
            cuts: BTreeSet::new(),
            is_electing: false,
            orphans: Vec::new(),
            effects: Vec::new(),
        };
        for server in 0..count {
            let half = all.millis(1, 100);
            all.schedule(half, Event::Beat { server });
        }
        all.consider_election();
        all
    }

    /// Creates a node on all servers before anything begins.
    pub fn place(&mut self, path: &str) {
        for server in &mut self.servers {
            let access = [access::Entry::anyone(access::right::ALL)].into();
            server
                .world
                .transaction(moment(Duration::ZERO), 0, |transaction| transaction.place(path, access));
        }
    }

    /// The latest time at which [`advance`](Self::advance) must be called next.
    pub fn next(&self) -> Duration {
        self.events.keys().next().map_or(Duration::MAX, |(time, _)| *time)
    }

    /// Time has passed.
    pub fn advance(&mut self, to: Duration) {
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= to) {
            self.now = self.now.max(entry.key().0);
            let event = entry.remove();
            if self.is_held(&event) {
                self.held.push(event);
            } else {
                self.handle(event);
            }
        }
        self.now = self.now.max(to);
    }

    /// The actions that are due, in order.
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// A client connects to a server; `false` if that does not listen.
    pub fn connect(&mut self, server: usize, connection: u64) -> bool {
        let one = &mut self.servers[server];
        if one.is_up {
            one.world.connect(moment(self.now), connection, ([127, 0, 0, 1], 0).into());
            one.queues.insert(connection, server::Queue::default());
            self.homes.insert(connection, server);
        }
        one.is_up
    }

    /// The connection has ended.
    pub fn disconnect(&mut self, connection: u64) {
        if let Some(server) = self.homes.remove(&connection) {
            self.servers[server].queues.remove(&connection);
            self.servers[server].world.disconnect(connection);
        }
    }

    /// A message has come, without its length.
    pub fn receive(&mut self, connection: u64, frame: Vec<u8>) {
        self.schedule(Duration::ZERO, Event::Receive { connection, frame });
    }

    /// Stops the process of a server.
    pub fn pause(&mut self, server: usize) {
        self.servers[server].is_paused = true;
    }

    /// Lets it go on, with everything that has arrived meanwhile.
    pub fn resume(&mut self, server: usize) {
        self.servers[server].is_paused = false;
        self.release_held();
    }

    /// Ends the process of a server.
    pub fn kill(&mut self, server: usize) {
        self.servers[server].is_up = false;
        self.servers[server].is_paused = false;
        self.step_down(server);
        self.release_held();
    }

    /// Starts it again.
    pub fn start(&mut self, server: usize) {
        self.servers[server].is_up = true;
        self.servers[server].forget_ghosts();
        self.consider_election();
    }

    /// Nothing passes between these two servers from now on.
    pub fn cut(&mut self, one: usize, other: usize) {
        self.cuts.insert((one.min(other), one.max(other)));
    }

    /// All servers can reach each other again.
    pub fn heal(&mut self) {
        self.cuts.clear();
        self.release_held();
        self.consider_election();
    }

    /// Sets the range of session timeouts that this server grants from now on.
    pub fn limit(&mut self, server: usize, shortest: Duration, longest: Duration) {
        self.servers[server].world.settings.session_timeouts = (shortest, longest);
    }

    /// The leader, according to all servers that can reach each other.
    pub fn leader(&self) -> Option<usize> {
        let leads =
            |server: &Server| matches!(&server.role, Role::Leading(leading) if leading.epoch == self.epoch);
        self.servers.iter().position(|server| server.is_up && leads(server))
    }

    /// An operator ends a session; `false` if there is no leader.
    pub fn expire(&mut self, session: i64) -> bool {
        let Some(leader) = self.leader() else { return false };
        self.expire_at(leader, session);
        true
    }

    /// An operator deletes a node; `false` if there is no leader.
    pub fn delete(&mut self, path: &str) -> bool {
        let Some(leader) = self.leader() else { return false };
        self.propose(leader, Entry::Remove { path: path.to_owned() });
        true
    }

    /// The paths of all nodes that the quorum has committed, except the servers' own.
    pub fn nodes(&self) -> Vec<String> {
        let Some(most) = self.servers.iter().max_by_key(|server| server.applied) else { return Vec::new() };
        let paths = crate::state::tree::listing(&most.world.tree, "/").into_keys();
        paths.filter(|path| !most.ghosts.has(path)).collect()
    }

    /// The transaction that created a node, if the quorum has committed it and the node exists.
    pub fn created(&self, path: &str) -> Option<i64> {
        let most = self.servers.iter().max_by_key(|server| server.applied)?;
        let node = most.world.tree.node(path).filter(|_| !most.ghosts.has(path))?;
        Some(node.czxid)
    }

    /// The sessions that the quorum knows.
    pub fn sessions(&self) -> Vec<i64> {
        self.sessions.keys().copied().collect()
    }

    /// The number of watches on all servers.
    pub fn watches(&self) -> usize {
        self.servers.iter().map(|server| server.world.watches.count()).sum()
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + (self.dice)(most - least + 1))
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.schedule_at(self.now.saturating_add(after), event);
    }

    fn schedule_at(&mut self, time: Duration, event: Event) {
        self.next_event += 1;
        self.events.insert((time, self.next_event), event);
    }

    /// Makes everything that waited for the end of a pause or a cut due at once. It may have to wait again.
    fn release_held(&mut self) {
        for event in std::mem::take(&mut self.held) {
            self.schedule(Duration::ZERO, event);
        }
    }

    fn hear_each_other(&self, one: usize, other: usize) -> bool {
        one == other || !self.cuts.contains(&(one.min(other), one.max(other)))
    }

    fn is_running(&self, server: usize) -> bool {
        self.servers[server].is_up && !self.servers[server].is_paused
    }

    /// Whether a stopped process, or a cut, holds an event up.
    fn is_held(&self, event: &Event) -> bool {
        let is_paused = |server: usize| self.servers[server].is_paused;
        let leader = |server: usize| self.servers[server].leader(server);
        let is_away = |server| leader(server).is_some_and(|leader| !self.hear_each_other(server, leader));
        match event {
            Event::Ask { server, .. } => leader(*server).is_some_and(is_paused) || is_away(*server),
            Event::Apply { server, .. } | Event::Answer { server, .. } => {
                is_paused(*server) || is_away(*server)
            }
            Event::Acknowledged { server, .. } | Event::Prepare { server, .. } => is_paused(*server),
            Event::Receive { connection, .. } => {
                self.homes.get(connection).is_some_and(|home| is_paused(*home))
            }
            Event::Beat { .. } | Event::Lost { .. } | Event::Join { .. } | Event::Election => false,
        }
    }

    fn handle(&mut self, event: Event) {
        let is_of = |all: &Self, server: usize, generation: u64| all.servers[server].generation == generation;
        match event {
            Event::Ask { server, generation, asked } if is_of(self, server, generation) => {
                self.ask(server, asked);
            }
            Event::Prepare { server, generation } if is_of(self, server, generation) => self.prepare(server),
            Event::Acknowledged { server, generation } if is_of(self, server, generation) => {
                self.commit(server);
            }
            Event::Apply { server, generation, upto } if is_of(self, server, generation) => {
                self.apply(server, upto);
            }
            Event::Answer { server, generation, connection, answer } if is_of(self, server, generation) => {
                self.take_answer(server, connection, answer);
            }
            Event::Lost { server, generation } if is_of(self, server, generation) => self.step_down(server),
            Event::Join { server, generation } if is_of(self, server, generation) => self.join(server),
            Event::Beat { server } => {
                if self.is_running(server) {
                    self.beat(server);
                }
                let half = self.timing.tick / 2;
                self.schedule(half, Event::Beat { server });
            }
            Event::Election => self.elect(),
            Event::Receive { connection, frame } => self.hear(connection, frame),
            _ => {}
        }
    }
}

fn moment(elapsed: Duration) -> Moment {
    let millis = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
    Moment { elapsed, wall: 1_700_000_000_000 + millis }
}

#[cfg(test)]
mod tests;
