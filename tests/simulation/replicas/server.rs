//! One server: the requests of its clients, and how much of the log it has applied.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ground::wire::codec::opcode;

use super::ghosts::Ghosts;
use super::{Answer, Asked, Entry, Event, Leadership, Replicas, Work};
use crate::replica::Replica;
use crate::rounds::BARRIER;
use crate::wire::code::Operation;

pub(super) enum Role {
    Leading(Leadership),
    Following {
        leader: usize,
        /// When it last heard from it.
        heard: Duration,
    },
    /// It serves no clients.
    Looking,
}

pub(super) struct Server {
    pub(super) replica: Replica,
    pub(super) role: Role,
    /// It changes with each loss of a leader.
    pub(super) generation: u64,
    /// How much of the log it has applied.
    pub(super) applied: usize,
    pub(super) ghosts: Ghosts,
    pub(super) is_up: bool,
    pub(super) is_paused: bool,
    /// The state of each connection.
    pub(super) queues: BTreeMap<u64, Queue>,
    /// Sessions that it has heard from, and has not reported to the leader yet.
    pub(super) touched: BTreeMap<i64, Duration>,
    /// When the last messages to the leader, and from it, arrive.
    to_leader: Duration,
    from_leader: Duration,
}

/// A client's requests, in order. Reads wait for the writes before them.
#[derive(Default)]
pub(super) struct Queue {
    is_greeted: bool,
    session: Option<(i64, Duration)>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    frame: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// The leader has it.
    Away,
    Refused(i32),
}

impl Waiting {
    fn number(&self, at: usize) -> i32 {
        self.frame.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_be_bytes)
    }

    fn xid(&self) -> i32 {
        self.number(0)
    }

    fn operation(&self) -> i32 {
        self.number(4)
    }
}

impl Server {
    pub(super) fn new(replica: Replica) -> Self {
        Self {
            replica,
            role: Role::Looking,
            generation: 0,
            applied: 0,
            ghosts: Ghosts::default(),
            is_up: true,
            is_paused: false,
            queues: BTreeMap::new(),
            touched: BTreeMap::new(),
            to_leader: Duration::ZERO,
            from_leader: Duration::ZERO,
        }
    }

    /// The server that it follows; itself if it leads.
    pub(super) fn leader(&self, number: usize) -> Option<usize> {
        match self.role {
            Role::Leading(_) => Some(number),
            Role::Following { leader, .. } => Some(leader),
            Role::Looking => None,
        }
    }
}

impl Replicas {
    /// A message of a client has come.
    pub(super) fn hear(&mut self, connection: u64, frame: Vec<u8>) {
        let Some(&home) = self.homes.get(&connection) else { return };
        if matches!(self.servers[home].role, Role::Looking) {
            return self.close(connection);
        }
        let Some(queue) = self.servers[home].queues.get_mut(&connection) else { return };
        if !queue.is_greeted {
            queue.is_greeted = true;
            return self.greet(home, connection, &frame);
        }
        let session = queue.session;
        let waiting = Waiting { frame, state: State::Ready };
        let (operation, xid) = (waiting.operation(), waiting.xid());
        let asked = session.and_then(|(session, _)| {
            let is_change = Operation::of(operation).is_write || operation == opcode::CLOSE_SESSION;
            let frame = || waiting.frame.clone();
            let asks_first = operation == opcode::SYNC;
            is_change
                .then(|| Asked::Write { connection, session, xid, frame: frame() })
                .or_else(|| asks_first.then_some(Asked::Sync { connection, xid }))
        });
        let state = if asked.is_some() { State::Away } else { State::Ready };
        queue.waiting.push_back(Waiting { state, ..waiting });
        if let Some((session, timeout)) = session {
            self.servers[home].touched.insert(session, timeout);
        }
        if let Some(asked) = asked {
            self.send_to_leader(home, asked);
        }
        self.pump(home, connection);
    }

    fn greet(&mut self, home: usize, connection: u64, frame: &[u8]) {
        let greeting = self.servers[home].replica.greeting(frame);
        let Some((session, timeout)) = greeting else { return self.close(connection) };
        self.send_to_leader(
            home,
            match session {
                0 => Asked::Open { connection, timeout },
                _ => Asked::Resume { connection, session, timeout },
            },
        );
    }

    fn send_to_leader(&mut self, server: usize, asked: Asked) {
        let is_leader = self.servers[server].leader(server) == Some(server);
        let delay = if is_leader { Duration::ZERO } else { self.millis(0, 4) };
        let one = &mut self.servers[server];
        one.to_leader = one.to_leader.max(self.now + delay);
        let (time, generation) = (one.to_leader, one.generation);
        self.schedule_at(time, Event::Work { server, generation, work: Work::Ask(asked) });
    }

    /// The leader sends something, in order.
    pub(super) fn send_to_server(&mut self, server: usize, work: Work) {
        let is_leader = self.servers[server].leader(server) == Some(server);
        let delay = if is_leader { Duration::ZERO } else { self.lag() };
        let one = &mut self.servers[server];
        one.from_leader = one.from_leader.max(self.now + delay);
        let (time, generation) = (one.from_leader, one.generation);
        self.schedule_at(time, Event::Work { server, generation, work });
    }

    /// A random delay: usually short, but now and then a server lags behind.
    fn lag(&mut self) -> Duration {
        if (self.dice)(40) == 0 { self.millis(5, 300) } else { self.millis(0, 4) }
    }

    pub(super) fn take_answer(&mut self, server: usize, connection: u64, answer: Answer) {
        let one = &mut self.servers[server];
        let Some(queue) = one.queues.get_mut(&connection) else { return };
        let mut mark = |xid: i32, state: State| {
            let waits = |waiting: &&mut Waiting| waiting.xid() == xid && waiting.state == State::Away;
            if let Some(waiting) = queue.waiting.iter_mut().find(waits) {
                waiting.state = state;
            }
        };
        match answer {
            Answer::Resumed { session, timeout, is_there: true } => {
                queue.session = Some((session, timeout));
                one.replica.attach(connection, session, timeout);
                self.drain(server);
                self.hear_again(server, connection);
            }
            Answer::Resumed { .. } => {
                one.replica.turn_away(connection);
                self.drain(server);
            }
            Answer::Synced { xid } => mark(xid, State::Ready),
            Answer::Refused { xid, code } => mark(xid, State::Refused(code)),
            Answer::Moved => return self.close(connection),
        }
        self.pump(server, connection);
    }

    /// Handles messages that came before the session existed.
    fn hear_again(&mut self, server: usize, connection: u64) {
        let queue = self.servers[server].queues.get_mut(&connection);
        let early = queue.map(|queue| std::mem::take(&mut queue.waiting)).unwrap_or_default();
        for waiting in early {
            self.hear(connection, waiting.frame);
        }
    }

    /// Answers everything up to the first request that has to wait.
    fn pump(&mut self, server: usize, connection: u64) {
        let now = self.now;
        loop {
            let one = &mut self.servers[server];
            let Some(queue) = one.queues.get_mut(&connection) else { return };
            let can_be_answered = |next: &Waiting| next.state != State::Away;
            if queue.session.is_none() || !queue.waiting.front().is_some_and(can_be_answered) {
                return;
            }
            let Some(next) = queue.waiting.pop_front() else { return };
            match next.state {
                State::Refused(code) => one.replica.refuse(connection, next.xid(), code),
                State::Ready | State::Away => one.replica.receive(now, connection, &next.frame),
            }
            self.drain(server);
        }
    }

    /// Applies the log up to this point.
    pub(super) fn apply(&mut self, server: usize, upto: usize) {
        let now = self.now;
        while self.servers[server].applied < upto.min(self.log.len()) {
            let one = &mut self.servers[server];
            let entry = self.log[one.applied].clone();
            one.applied += 1;
            let is_here = |origin: (usize, u64)| origin.0 == server && one.queues.contains_key(&origin.1);
            match entry {
                Entry::Open { session, timeout, origin } => {
                    let is_here = is_here(origin);
                    one.replica.open(session, timeout);
                    if let Some(queue) = one.queues.get_mut(&origin.1).filter(|_| is_here) {
                        queue.session = Some((session, timeout));
                        one.replica.attach(origin.1, session, timeout);
                        self.drain(server);
                        self.hear_again(server, origin.1);
                    }
                }
                Entry::Request { frame, origin, .. } if is_here(origin) => {
                    let queue = one.queues.get_mut(&origin.1);
                    queue.and_then(|queue| queue.waiting.pop_front());
                    one.as_the_others(false, |replica| replica.receive(now, origin.1, &frame));
                    self.drain(server);
                    self.pump(server, origin.1);
                }
                Entry::Request { session, frame, .. } => {
                    let is_lost = one.ghosts.takes_request(&frame);
                    one.as_the_others(is_lost, |replica| replica.follow(now, session, &frame));
                }
                Entry::Expire { session } => {
                    let is_here = one.replica.is_connected(session);
                    let is_lost = !is_here && one.ghosts.takes_one();
                    one.as_the_others(is_lost, |replica| replica.expire(now, session));
                }
                Entry::Remove { path } => one.as_the_others(false, |replica| replica.remove(now, &path)),
                Entry::Epoch(epoch) => one.replica.begin_epoch(epoch),
            }
            self.drain(server);
            let one = &self.servers[server];
            if self.servers.iter().filter(|other| other.applied >= one.applied).count() == 1 {
                let children = one.replica.children(BARRIER).filter(|(path, _)| !one.ghosts.has(path));
                let named =
                    |(path, created): (String, i64)| Some((path.rsplit_once('/')?.1.to_owned(), created));
                self.rounds.push(children.filter_map(named).collect());
            }
        }
    }

    /// Carries out the actions of a world.
    fn drain(&mut self, server: usize) {
        for (connection, frame) in self.servers[server].replica.effects() {
            let is_closed = frame.is_none();
            self.effects.push((connection, frame));
            if is_closed {
                self.disconnect(connection);
            }
        }
    }

    fn close(&mut self, connection: u64) {
        self.effects.push((connection, None));
        self.disconnect(connection);
    }

    /// It has lost its leader, and closes its clients' connections.
    pub(super) fn step_down(&mut self, server: usize) {
        let former = std::mem::replace(&mut self.servers[server].role, Role::Looking);
        let one = &mut self.servers[server];
        one.generation += 1;
        one.touched.clear();
        let connections: Vec<_> = one.queues.keys().copied().collect();
        connections.into_iter().for_each(|connection| self.close(connection));
        if let Role::Leading(leading) = former {
            self.end_leadership(server, &leading);
        }
        self.consider_election();
    }
}
