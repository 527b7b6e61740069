//! An ensemble of servers without sockets and clocks.
//!
//! The commits of the quorum form a single log. Each server applies it to its own `Replica`, as late as its network and
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

use crate::replica::{Effect, Replica};
use crate::state::settings::Settings;
use leading::Leadership;
use server::{Role, Server};

/// A random number below the given one.
pub(crate) type Dice = Box<dyn FnMut(u64) -> u64>;

/// The settings of the servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// ZooKeeper's unit of time.
    pub(crate) tick: Duration,
    /// The number of ticks of silence after which servers give each other up.
    pub(crate) limit: u32,
    /// The shortest and the longest session timeout.
    pub(crate) sessions: (Duration, Duration),
    /// How often empty containers are deleted.
    pub(crate) reaping: Duration,
    /// How many milliseconds a session with a timeout of one second lives: fewer if the servers' clocks are fast.
    pub(crate) second: u32,
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

#[derive(Debug, Clone)]
enum Event {
    /// A message between servers, or what one does at a certain time. Once that server has lost its leader, or ended, it is of another
    /// generation, and this is ignored.
    Work {
        server: usize,
        generation: u64,
        work: Work,
    },
    /// Twice in a tick.
    Beat {
        server: usize,
    },
    Election,
    /// A message of a client.
    Receive {
        connection: u64,
        frame: Vec<u8>,
    },
}

#[derive(Debug, Clone)]
enum Work {
    /// From the server to its leader.
    Ask(Asked),
    /// The leader processes the next request of its servers.
    Prepare,
    /// Other servers have written the leader's proposals up to this one.
    Commit,
    /// The log up to this point.
    Apply(usize),
    /// The leader's answer to a request that changes nothing.
    Answer(u64, Answer),
    Lose,
    Join,
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

/// The ensemble.
pub(crate) struct Replicas {
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
    /// The children of the double barrier after each commit, with the transactions that created them.
    pub(crate) rounds: Vec<BTreeMap<String, i64>>,
}

impl Replicas {
    /// Servers that have just been started.
    pub(crate) fn new(count: usize, timing: Timing, dice: Dice) -> Self {
        let settings =
            Settings { tick: timing.tick, session_timeouts: timing.sessions, ..Settings::default() };
        let servers = (0..count).map(|_| Server::new(Replica::new(settings.clone()))).collect();
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
            rounds: Vec::new(),
        };
        for server in 0..count {
            let half = all.millis(1, 100);
            all.schedule(half, Event::Beat { server });
        }
        all.consider_election();
        all
    }

    /// Creates a node on all servers before anything begins.
    pub(crate) fn place(&mut self, path: &str) {
        self.servers.iter_mut().for_each(|server| server.replica.place(path));
    }

    /// The latest time at which [`advance`](Self::advance) must be called next.
    pub(crate) fn next(&self) -> Duration {
        self.events.keys().next().map_or(Duration::MAX, |(time, _)| *time)
    }

    /// Time has passed.
    pub(crate) fn advance(&mut self, to: Duration) {
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
    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// A client connects to a server; `false` if that does not listen.
    pub(crate) fn connect(&mut self, server: usize, connection: u64) -> bool {
        let one = &mut self.servers[server];
        if one.is_up {
            one.replica.connect(self.now, connection);
            one.queues.insert(connection, server::Queue::default());
            self.homes.insert(connection, server);
        }
        one.is_up
    }

    /// The connection has ended.
    pub(crate) fn disconnect(&mut self, connection: u64) {
        if let Some(server) = self.homes.remove(&connection) {
            self.servers[server].queues.remove(&connection);
            self.servers[server].replica.disconnect(connection);
        }
    }

    /// A message has come, without its length.
    pub(crate) fn receive(&mut self, connection: u64, frame: Vec<u8>) {
        self.schedule(Duration::ZERO, Event::Receive { connection, frame });
    }

    /// Stops the process of a server.
    pub(crate) fn pause(&mut self, server: usize) {
        self.servers[server].is_paused = true;
    }

    /// Lets it go on, with everything that has arrived meanwhile.
    pub(crate) fn resume(&mut self, server: usize) {
        self.servers[server].is_paused = false;
        self.release_held();
    }

    /// Ends the process of a server.
    pub(crate) fn kill(&mut self, server: usize) {
        self.servers[server].is_up = false;
        self.servers[server].is_paused = false;
        self.step_down(server);
        self.release_held();
    }

    /// Starts it again.
    pub(crate) fn start(&mut self, server: usize) {
        self.servers[server].is_up = true;
        self.servers[server].forget_ghosts();
        self.consider_election();
    }

    /// Nothing passes between these two servers from now on.
    pub(crate) fn cut(&mut self, one: usize, other: usize) {
        self.cuts.insert((one.min(other), one.max(other)));
    }

    /// All servers can reach each other again.
    pub(crate) fn heal(&mut self) {
        self.cuts.clear();
        self.release_held();
        self.consider_election();
    }

    /// Sets the range of session timeouts that this server grants from now on.
    pub(crate) fn limit(&mut self, server: usize, shortest: Duration, longest: Duration) {
        self.servers[server].replica.limit(shortest, longest);
    }

    /// The leader, according to all servers that can reach each other.
    pub(crate) fn leader(&self) -> Option<usize> {
        let leads =
            |server: &Server| matches!(&server.role, Role::Leading(leading) if leading.epoch == self.epoch);
        self.servers.iter().position(|server| server.is_up && leads(server))
    }

    /// An operator ends a session; `false` if there is no leader.
    pub(crate) fn expire(&mut self, session: i64) -> bool {
        let Some(leader) = self.leader() else { return false };
        self.expire_at(leader, session);
        true
    }

    /// An operator deletes a node; `false` if there is no leader.
    pub(crate) fn delete(&mut self, path: &str) -> bool {
        let Some(leader) = self.leader() else { return false };
        self.propose(leader, Entry::Remove { path: path.to_owned() });
        true
    }

    /// The paths of all nodes that the quorum has committed, except the servers' own.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let Some(most) = self.servers.iter().max_by_key(|server| server.applied) else { return Vec::new() };
        most.replica.paths().filter(|path| !most.ghosts.has(path)).collect()
    }

    /// The transaction that created a node, if the quorum has committed it and the node exists.
    pub(crate) fn created(&self, path: &str) -> Option<i64> {
        let most = self.servers.iter().max_by_key(|server| server.applied)?;
        most.replica.created(path).filter(|_| !most.ghosts.has(path))
    }

    /// The sessions that the quorum knows.
    pub(crate) fn sessions(&self) -> Vec<i64> {
        self.sessions.keys().copied().collect()
    }

    /// The number of watches on all servers.
    pub(crate) fn watches(&self) -> usize {
        self.servers.iter().map(|server| server.replica.watches()).sum()
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + (self.dice)(most - least + 1))
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.schedule_at(self.now.saturating_add(after), event);
    }

    /// Lets a server do something later, in this generation.
    fn schedule_work(&mut self, after: Duration, server: usize, work: Work) {
        let generation = self.servers[server].generation;
        self.schedule(after, Event::Work { server, generation, work });
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
            Event::Work { server, work, .. } => match work {
                Work::Ask(_) => leader(*server).is_some_and(is_paused) || is_away(*server),
                Work::Apply(_) | Work::Answer(..) => is_paused(*server) || is_away(*server),
                Work::Commit | Work::Prepare => is_paused(*server),
                Work::Lose | Work::Join => false,
            },
            Event::Receive { connection, .. } => {
                self.homes.get(connection).is_some_and(|home| is_paused(*home))
            }
            Event::Beat { .. } | Event::Election => false,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Work { server, generation, .. } if self.servers[server].generation != generation => {}
            Event::Work { server, work, .. } => match work {
                Work::Ask(asked) => self.ask(server, asked),
                Work::Prepare => self.prepare(server),
                Work::Commit => self.commit(server),
                Work::Apply(upto) => self.apply(server, upto),
                Work::Answer(connection, answer) => self.take_answer(server, connection, answer),
                Work::Lose => self.step_down(server),
                Work::Join => self.join(server),
            },
            Event::Beat { server } => {
                if self.is_running(server) {
                    self.beat(server);
                }
                let half = self.timing.tick / 2;
                self.schedule(half, Event::Beat { server });
            }
            Event::Election => self.elect(),
            Event::Receive { connection, frame } => self.hear(connection, frame),
        }
    }
}

#[cfg(test)]
mod tests;
