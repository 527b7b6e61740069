//! Tries that are answered from memory: the memory of a client between its tries, and the properties of such an answer.
//!
//! It only assumes of the watch that it fires before any later reply on its connection. If the connection is lost, the watch
//! just falls silent. A driver would report that, but the machine must notice by itself.

use super::client::Client;
use super::line::Line;
use super::machine::Moment;
use super::machine::memory::Memory;
use super::setup::TIMEOUT;
use super::subject::Want;
use super::watch::Watch;
use super::world::Scene;
use std::time::Duration;

/// A client's memory of a try that found the lock busy.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Recollection {
    /// When the request was sent that set the watch.
    since: Moment,
    /// `None` when the connection is lost.
    watch: Option<Watch>,
    is_told: bool,
}

impl Recollection {
    pub(crate) fn has_to_tell(&self) -> bool {
        !self.is_told && self.watch.as_ref().is_some_and(|watch| watch.fired.is_some())
    }
}

impl Client {
    /// Replies have come as of this transaction, so watches for earlier changes have fired before them.
    pub(super) fn hear_before(&mut self, seen: i64) {
        if let Some(memory) = &mut self.memory {
            let fired = memory.watch.as_ref().and_then(|watch| watch.fired);
            memory.is_told |= fired.is_some_and(|(_, zxid)| zxid <= seen);
        }
    }

    /// Keeps the memory that its try has left.
    pub(super) fn remember(&mut self) {
        if let Some(since) = self.contender.busy_since() {
            // Whatever follows in the same tick, such as another connection, comes later.
            let since = since.before(Duration::from_millis(1));
            self.memory = Some(Recollection { since, watch: self.watches.pop(), is_told: false });
            self.watches.clear();
        }
    }

    /// The watch that its try has left fires.
    pub(super) fn hear_of_memory(&mut self, line: &mut Line) {
        let Some(memory) = &mut self.memory else { return };
        memory.is_told = true;
        if let Some((_, zxid)) = memory.watch.as_ref().and_then(|watch| watch.fired) {
            line.floor = line.floor.max(zxid);
            line.seen = line.seen.max(zxid);
        }
    }

    pub(super) fn memory_watch(&mut self) -> Option<&mut Watch> {
        self.memory.as_mut()?.watch.as_mut()
    }

    /// The connection is lost.
    pub(super) fn lose_watch_of_memory(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.watch = None;
        }
    }
}

impl Scene {
    /// The client is connected again. The quorum has answered a write on the new connection.
    pub(super) fn connect(&mut self, number: usize) {
        let (now, zxid) = (self.now(), self.ensemble.zxid());
        let remembers = self.clients_on(number).iter().any(|other| self.clients[*other].memory.is_some());
        let line = &mut self.lines[number];
        line.is_down = false;
        // It makes no difference to clients without a memory, and without it there are fewer states.
        if let Some(session) = line.session.as_mut().filter(|_| remembers) {
            session.lease.ask();
            session.lease.attach(now, TIMEOUT, now);
            session.lease.acknowledge(now, now);
            session.touched = now;
            (line.seen, line.floor) = (zxid, zxid);
        }
    }

    /// Whether the next try of this client is answered from memory.
    pub(super) fn is_remembered(&self, number: usize) -> bool {
        let line = &self.lines[self.line_of(number)];
        let session = line.session.as_ref().filter(|_| !line.is_down);
        match (&self.clients[number].memory, session) {
            (Some(memory), Some(session)) => {
                let mut good = Memory::new(memory.since);
                if memory.is_told {
                    good.handle_watch();
                }
                good.is_good(&session.lease, self.now())
            }
            _ => false,
        }
    }

    /// The caller tries again, and learns at once that the lock is busy. If that is wrong, nobody could have known: the lock has
    /// become free within this heartbeat, by a change that the client has not seen.
    pub(super) fn answer_from_memory(&mut self, number: usize) {
        let seen = self.lines[self.line_of(number)].seen;
        let client = &mut self.clients[number];
        client.attempt += 1;
        if let Some((tick, zxid)) = client.free_since {
            let detail = if zxid <= seen {
                format!("client {number} is told so, and has seen that it is free")
            } else if tick < self.ticks {
                format!("client {number} is told so, and it has been free since tick {tick}")
            } else {
                return;
            };
            self.violate("busy", detail);
        }
    }

    /// Notes the clients that could have the lock that they try.
    pub(super) fn note_what_is_free(&mut self) {
        let since = (self.ticks, self.ensemble.zxid());
        for number in 0..self.clients.len() {
            let plan = &self.setup.plans[number];
            if plan.remembers {
                let is_free = plan.wants.iter().all(|want| !self.has_rivals(number, want));
                let client = &mut self.clients[number];
                client.free_since = is_free.then(|| client.free_since.unwrap_or(since));
            }
        }
    }

    fn has_rivals(&self, number: usize, want: &Want) -> bool {
        self.ensemble.head().children_of(want.queue).any(|child| {
            let other = self.want(child.owner.client, want.queue);
            child.owner.client != number && other.is_some_and(|other| want.excludes(other))
        })
    }
}
