//! The leader's part, and elections.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ground::wire::codec::{code, opcode};

use super::server::Role;
use super::{Answer, Asked, Entry, Event, Replicas, Work};

/// The state of a server that believes that it leads.
pub(super) struct Leadership {
    pub(super) epoch: i64,
    /// Requests that have not been processed yet, with their servers.
    asked: VecDeque<(usize, Asked)>,
    /// Proposals that are not committed yet.
    pending: VecDeque<Pending>,
    tracked: BTreeMap<i64, Tracked>,
    /// When it last heard of each follower.
    heard: BTreeMap<usize, Duration>,
    reaped: Duration,
}

enum Pending {
    Entry(Entry),
    /// Answers to send once everything before them is committed.
    Sync {
        server: usize,
        connection: u64,
        xid: i32,
    },
}

/// A session.
struct Tracked {
    timeout: Duration,
    expires: Duration,
    /// The server of its client.
    owner: Option<usize>,
}

impl Replicas {
    fn leading(&mut self, server: usize) -> Option<&mut Leadership> {
        match &mut self.servers[server].role {
            Role::Leading(leading) => Some(leading),
            _ => None,
        }
    }

    /// A server asks its leader.
    pub(super) fn ask(&mut self, server: usize, asked: Asked) {
        let Some(leader) = self.servers[server].leader(server) else { return };
        if self.leading(leader).is_none() {
            return self.step_down(server);
        }
        let answer = |all: &mut Self, connection: u64, answer: Answer| {
            all.send_to_server(server, Work::Answer(connection, answer));
        };
        match asked {
            Asked::Open { connection, timeout } => {
                let session = self.next_session;
                self.next_session += 1;
                self.track(leader, session, timeout, Some(server));
                self.propose(leader, Entry::Open { session, timeout, origin: (server, connection) });
            }
            Asked::Resume { connection, session, timeout } => {
                let is_there = self.tracked(leader, session).is_some();
                if is_there {
                    self.track(leader, session, timeout, Some(server));
                }
                answer(self, connection, Answer::Resumed { session, timeout, is_there });
            }
            // As in ZooKeeper, requests are processed later, in turn, but a session's move is noticed at once.
            Asked::Write { .. } => {
                if let Some(leading) = self.leading(leader) {
                    leading.asked.push_back((server, asked));
                }
                let delay = self.millis(0, 2);
                self.schedule_work(delay, leader, Work::Prepare);
            }
            Asked::Sync { connection, xid } => {
                let waits = self.leading(leader).filter(|leading| !leading.pending.is_empty());
                match waits {
                    Some(leading) => leading.pending.push_back(Pending::Sync { server, connection, xid }),
                    // It does not check whether it still leads.
                    None => answer(self, connection, Answer::Synced { xid }),
                }
            }
        }
    }

    /// Processes the next request, and proposes it.
    pub(super) fn prepare(&mut self, leader: usize) {
        let next = self.leading(leader).and_then(|leading| leading.asked.pop_front());
        let Some((server, Asked::Write { connection, session, xid, frame })) = next else { return };
        let answer = |all: &mut Self, answer: Answer| {
            all.send_to_server(server, Work::Answer(connection, answer));
        };
        let Some(tracked) = self.tracked(leader, session) else {
            return answer(self, Answer::Refused { xid, code: code::SESSION_EXPIRED });
        };
        let (timeout, owner) = (tracked.timeout, tracked.owner);
        let closes = closes_session(&frame);
        // As in ZooKeeper, a session can be closed from any server.
        if owner != Some(server) && !closes {
            return answer(self, Answer::Moved);
        }
        self.track(leader, session, timeout, owner);
        if closes {
            self.forget(leader, session);
        }
        self.propose(leader, Entry::Request { session, frame, origin: (server, connection) });
    }

    fn tracked(&mut self, leader: usize, session: i64) -> Option<&Tracked> {
        self.leading(leader)?.tracked.get(&session)
    }

    fn forget(&mut self, leader: usize, session: i64) {
        self.leading(leader).and_then(|leading| leading.tracked.remove(&session));
    }

    /// The leader has heard from a session. The session ends on a whole tick.
    fn track(&mut self, leader: usize, session: i64, timeout: Duration, owner: Option<usize>) {
        let tick = self.timing.tick.as_millis();
        let length = timeout * self.timing.second / 1000;
        let end = ((self.now + length).as_millis() / tick + 1) * tick;
        let expires = Duration::from_millis(u64::try_from(end).unwrap_or(u64::MAX));
        if let Some(leading) = self.leading(leader) {
            leading.tracked.insert(session, Tracked { timeout, expires, owner });
        }
    }

    pub(super) fn propose(&mut self, leader: usize, entry: Entry) {
        let Some(leading) = self.leading(leader) else { return };
        leading.pending.push_back(Pending::Entry(entry));
        let delay = self.millis(0, 4);
        self.schedule_work(delay, leader, Work::Commit);
    }

    /// Commits the proposals, if a majority is there to write them.
    pub(super) fn commit(&mut self, leader: usize) {
        if self.leader() != Some(leader) || !self.has_quorum(leader) {
            return;
        }
        while let Some(pending) = self.leading(leader).and_then(|leading| leading.pending.pop_front()) {
            match pending {
                Pending::Entry(entry) => {
                    self.write_down(entry);
                    let upto = self.log.len();
                    self.apply(leader, upto);
                    for server in self.followers(leader) {
                        self.send_to_server(server, Work::Apply(upto));
                    }
                }
                Pending::Sync { server, connection, xid } => {
                    self.send_to_server(server, Work::Answer(connection, Answer::Synced { xid }));
                }
            }
        }
    }

    fn write_down(&mut self, entry: Entry) {
        match &entry {
            Entry::Open { session, timeout, .. } => {
                self.sessions.insert(*session, *timeout);
            }
            Entry::Request { session, frame, .. } if closes_session(frame) => {
                self.sessions.remove(session);
            }
            Entry::Expire { session } => {
                self.sessions.remove(session);
            }
            _ => {}
        }
        self.log.push(entry);
    }

    fn followers(&self, leader: usize) -> Vec<usize> {
        let follows =
            |server: &usize| *server != leader && self.servers[*server].leader(*server) == Some(leader);
        (0..self.servers.len()).filter(follows).collect()
    }

    fn has_quorum(&self, leader: usize) -> bool {
        let hears = |server: &usize| self.is_running(*server) && self.hear_each_other(*server, leader);
        let there = self.followers(leader).into_iter().filter(hears).count() + 1;
        there > self.servers.len() / 2
    }

    pub(super) fn expire_at(&mut self, leader: usize, session: i64) {
        self.forget(leader, session);
        self.propose(leader, Entry::Expire { session });
    }

    /// Does a server's work that is due twice in each tick.
    pub(super) fn beat(&mut self, server: usize) {
        let silence = self.timing.tick * self.timing.limit;
        match self.servers[server].role {
            Role::Leading(_) => self.lead(server, silence),
            Role::Following { heard, .. } if self.now > heard + silence => self.step_down(server),
            Role::Following { .. } => {}
            Role::Looking => {
                let delay = self.millis(5, 100);
                self.schedule_work(delay, server, Work::Join);
                self.consider_election();
            }
        }
    }

    fn lead(&mut self, leader: usize, silence: Duration) {
        let now = self.now;
        let mut all = vec![std::mem::take(&mut self.servers[leader].touched)];
        for follower in self.followers(leader) {
            if !self.is_running(follower) || !self.hear_each_other(leader, follower) {
                continue;
            }
            if let Role::Following { heard, .. } = &mut self.servers[follower].role {
                *heard = now;
            }
            all.push(std::mem::take(&mut self.servers[follower].touched));
            self.leading(leader).and_then(|leading| leading.heard.insert(follower, now));
        }
        for (session, timeout) in all.into_iter().flatten() {
            if let Some(owner) = self.tracked(leader, session).map(|tracked| tracked.owner) {
                self.track(leader, session, timeout, owner);
            }
        }
        let Some(leading) = self.leading(leader) else { return };
        let there = leading.heard.values().filter(|heard| **heard + silence >= now).count() + 1;
        if there <= self.servers.len() / 2 {
            return self.step_down(leader);
        }
        self.commit(leader);
        let Some(leading) = self.leading(leader) else { return };
        let is_over = |(_, tracked): &(&i64, &Tracked)| tracked.expires <= now;
        let over: Vec<_> = leading.tracked.iter().filter(is_over).map(|(session, _)| *session).collect();
        let reaps = leading.reaped.saturating_add(self.timing.reaping) <= now;
        over.into_iter().for_each(|session| self.expire_at(leader, session));
        if reaps {
            self.leading(leader).into_iter().for_each(|leading| leading.reaped = now);
            for path in self.servers[leader].replica.to_reap(now) {
                self.propose(leader, Entry::Remove { path });
            }
        }
    }

    /// Its followers notice. Some of its proposals may have been written by one of them.
    pub(super) fn end_leadership(&mut self, leader: usize, leading: &Leadership) {
        for server in self.followers(leader) {
            if self.hear_each_other(leader, server) {
                let delay = self.millis(1, 20);
                self.schedule_work(delay, server, Work::Lose);
            }
        }
        if leading.epoch == self.epoch {
            self.orphans = leading.entries();
        }
    }

    /// Whether enough servers are looking for a leader to elect one.
    pub(super) fn consider_election(&mut self) {
        if !self.is_electing && self.electors().is_some() {
            self.is_electing = true;
            let delay = self.millis(50, 1_500);
            self.schedule(delay, Event::Election);
        }
    }

    /// A server that can lead, and those that would follow it.
    fn electors(&self) -> Option<(usize, Vec<usize>)> {
        let looks =
            |server: &usize| self.is_running(*server) && matches!(self.servers[*server].role, Role::Looking);
        let looking: Vec<_> = (0..self.servers.len()).filter(looks).collect();
        let groups = looking.iter().map(|one| {
            let group = looking.iter().copied().filter(|other| self.hear_each_other(*one, *other));
            (*one, group.collect::<Vec<_>>())
        });
        groups
            .filter(|(_, group)| group.len() > self.servers.len() / 2)
            .max_by_key(|(one, _)| self.servers[*one].applied)
    }

    pub(super) fn elect(&mut self) {
        self.is_electing = false;
        let Some((leader, group)) = self.electors() else { return };
        // The proposals of the previous leader were written by none of them, or by some of them up to any point.
        let stale = self.leader().and_then(|stale| self.leading(stale).map(|stale| stale.entries()));
        let mut orphans = stale.unwrap_or_else(|| std::mem::take(&mut self.orphans));
        self.orphans.clear();
        let kept = usize::try_from((self.dice)(orphans.len() as u64 + 1)).unwrap_or(0);
        orphans.truncate(kept);
        orphans.into_iter().for_each(|entry| self.write_down(entry));
        self.epoch += 1;
        self.write_down(Entry::Epoch(self.epoch));
        let (now, epoch, upto) = (self.now, self.epoch, self.log.len());
        for server in group {
            let one = &mut self.servers[server];
            one.generation += 1;
            one.role = match server == leader {
                true => Role::Leading(Leadership {
                    epoch,
                    asked: VecDeque::new(),
                    pending: VecDeque::new(),
                    tracked: BTreeMap::new(),
                    heard: BTreeMap::new(),
                    reaped: now,
                }),
                false => Role::Following { leader, heard: now },
            };
            self.apply(server, upto);
        }
        self.servers[leader].forget_ghosts();
        for follower in self.followers(leader) {
            self.leading(leader).and_then(|leading| leading.heard.insert(follower, now));
        }
        for (session, timeout) in self.sessions.clone() {
            self.track(leader, session, timeout, None);
        }
    }

    /// A server that is looking for a leader finds one.
    pub(super) fn join(&mut self, server: usize) {
        let is_looking = matches!(self.servers[server].role, Role::Looking) && self.is_running(server);
        let found = self
            .leader()
            .filter(|leader| is_looking && self.is_running(*leader) && self.hear_each_other(server, *leader));
        let Some(leader) = found else { return };
        self.servers[server].generation += 1;
        self.servers[server].role = Role::Following { leader, heard: self.now };
        self.apply(server, self.log.len());
        let now = self.now;
        self.leading(leader).and_then(|leading| leading.heard.insert(server, now));
    }
}

impl Leadership {
    fn entries(&self) -> Vec<Entry> {
        let entry = |pending: &Pending| match pending {
            Pending::Entry(entry) => Some(entry.clone()),
            Pending::Sync { .. } => None,
        };
        self.pending.iter().filter_map(entry).collect()
    }
}

fn closes_session(frame: &[u8]) -> bool {
    frame.get(4..8) == Some(&opcode::CLOSE_SESSION.to_be_bytes())
}
