//! One session's lease, compared with its leader's state.
//!
//! The lock's own worlds assume the lease's promise. This checks it, with the session's client, the
//! servers to which it connects, and the leader. Links keep their order and may stall for a while. The
//! link to the leader may break at any moment, so at every moment the lease must end before the leader
//! would end the session if it heard nothing more. And whatever it has once named must stay true to its
//! end: somebody may have looked once, and rely on that.
//!
//! The client may give up its connection at any moment, and ask the next server for the session. That
//! server may grant another timeout, of half as much at least, on which the leader acts at once. Its answer may be late, or never
//! come, and it may follow a deposed leader. Requests on their way to the previous server still arrive.

use super::explorer::{Actions, Violation, World};
use super::machine::Moment;
use super::machine::lease::Lease;
use std::time::Duration;

/// The longest session timeout, in twentieths: the time unit of the client library's timers.
const TIMEOUT: u8 = 20;

/// A server that the session can be connected to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Server {
    /// It grants this timeout.
    Granting(u8),
    /// It follows a leader that has been deposed and does not know it.
    Deposed,
}

impl Server {
    fn timeout(self) -> u8 {
        if let Self::Granting(timeout) = self { timeout } else { TIMEOUT }
    }

    /// The client library pings when it has sent nothing for this long,
    fn ping_after(self) -> u8 {
        (self.timeout() * 3).div_ceil(TIMEOUT)
    }

    /// and drops a connection on which it has received nothing for 8 twentieths, which a timer notices by 9.
    fn drop_after(self) -> u8 {
        (self.timeout() * 9).div_ceil(TIMEOUT)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Request {
    /// Asks for the session.
    Connect(u8),
    Ping,
    Read,
    Write(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum FromLeader {
    Ping,
    Commit(u8),
    /// The session that was asked for at this time is alive.
    Valid(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The client sends a read, or a quorum write.
    Read,
    Write,
    /// It gives up its connection and asks the next server for the session.
    Reattach,
    /// The same, and that server's link from the leader is stalled: the answer is late, or never comes.
    ReattachInVain,
    /// A link of its server stalls, or moves again.
    TurnClient,
    TurnLeader,
    /// The links of the previous server move again.
    Thaw,
    Step,
}

/// The faults that are still possible.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Stops {
    /// How often the client's link may still stop for a while.
    pub(crate) client: u8,
    /// How often the leader's link may still stop.
    pub(crate) leader: u8,
    /// Whether the leader's link moves again after a stop.
    pub(crate) resumes: bool,
}

/// A server's links, with the messages on them. Each may be stalled.
#[derive(Clone, Hash, Debug, Default)]
struct Links {
    client: (bool, Vec<Request>),
    leader: (bool, Vec<FromLeader>),
    /// The server has heard of the session since it last answered the leader's ping.
    heard: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Attachment {
    Connected,
    Asking,
    /// The connection was dropped.
    None,
}

#[derive(Clone, Hash, Debug)]
pub(crate) struct Pulse {
    now: u8,
    /// How often the leader pings its followers: half a tick of the servers.
    period: u8,
    end: u8,
    stops: Stops,
    lease: Lease,
    /// The last moment that the lease has named.
    named: Moment,
    servers: &'static [Server],
    /// The links of all servers up to the one to which the client is connected.
    links: Vec<Links>,
    attachment: Attachment,
    last_sent: u8,
    last_received: u8,
    pinging: bool,
    /// Whether it has sent a request in this unit of time.
    asked: bool,
    /// The server through which the leader takes the session's writes.
    owner: usize,
    /// When the leader ends the session if it hears nothing more.
    expires: u8,
    is_over: bool,
}

impl Pulse {
    pub(crate) fn new(period: u8, end: u8, stops: Stops, servers: &'static [Server]) -> Self {
        let timeout = servers[0].timeout();
        Self {
            now: 0,
            period,
            end,
            stops,
            lease: Lease::new(Duration::from_secs(u64::from(timeout)), at(0)),
            named: at(0),
            servers,
            links: vec![Links::default()],
            attachment: Attachment::Connected,
            last_sent: 0,
            last_received: 0,
            pinging: false,
            asked: false,
            owner: 0,
            expires: timeout,
            is_over: false,
        }
    }

    /// The server to which the client is connected.
    fn present(&self) -> usize {
        self.links.len() - 1
    }

    fn is_expired(&self) -> bool {
        self.now >= self.expires
    }

    fn send(&mut self, request: Request) {
        self.last_sent = self.now;
        let present = self.present();
        self.links[present].client.1.push(request);
        self.flow();
    }

    /// Moves everything on links that are not stalled.
    fn flow(&mut self) {
        while (0..self.links.len()).any(|server| self.flow_at(server)) {}
        if !self.stops.resumes {
            // Messages on a stalled link never arrive.
            self.links.iter_mut().filter(|links| links.leader.0).for_each(|links| links.leader.1.clear());
        }
    }

    /// Lets one message arrive, if there is any.
    fn flow_at(&mut self, server: usize) -> bool {
        let links = &mut self.links[server];
        if !links.client.0 && !links.client.1.is_empty() {
            let request = links.client.1.remove(0);
            links.heard |= !matches!(request, Request::Connect(_));
            self.serve(server, request);
        } else if !links.leader.0 && !links.leader.1.is_empty() {
            let message = links.leader.1.remove(0);
            self.hear(server, message);
        } else {
            return false;
        }
        true
    }

    /// The server executes a request of the client.
    fn serve(&mut self, server: usize, request: Request) {
        let is_deposed = self.servers[server] == Server::Deposed;
        match request {
            Request::Connect(sent) if is_deposed => self.attached(server, sent),
            Request::Connect(_) if self.is_expired() => self.is_over |= server == self.present(),
            Request::Connect(sent) => {
                self.owner = server;
                self.touch(server);
                self.links[server].leader.1.push(FromLeader::Valid(sent));
            }
            Request::Ping => {
                self.pinging &= server != self.present();
                self.received(server);
            }
            Request::Read => {
                self.received(server);
            }
            Request::Write(_) if is_deposed || self.is_expired() || server != self.owner => {}
            Request::Write(sent) => self.links[server].leader.1.push(FromLeader::Commit(sent)),
        }
    }

    /// The server hears from the leader. Its answer reaches the client even if that has given up the connection: the answer may
    /// have arrived before, and be read late.
    fn hear(&mut self, server: usize, message: FromLeader) {
        match message {
            FromLeader::Ping if self.links[server].heard && !self.is_expired() => {
                self.links[server].heard = false;
                self.touch(server);
            }
            FromLeader::Ping => {}
            FromLeader::Commit(sent) => {
                self.received(server);
                self.lease.acknowledge(at(sent), at(self.now));
            }
            FromLeader::Valid(sent) => self.attached(server, sent),
        }
    }

    /// The leader hears of the session from this server.
    fn touch(&mut self, server: usize) {
        self.expires = self.now + self.servers[server].timeout();
    }

    fn received(&mut self, server: usize) {
        if server == self.present() {
            self.last_received = self.now;
        }
    }

    /// The client has its session again, and writes at once.
    fn attached(&mut self, server: usize, sent: u8) {
        if server == self.present() && self.attachment == Attachment::Asking {
            self.attachment = Attachment::Connected;
            let timeout = Duration::from_secs(u64::from(self.servers[server].timeout()));
            self.lease.attach(at(sent), timeout, at(self.now));
            self.asked = true;
            (self.last_sent, self.last_received, self.pinging) = (self.now, self.now, false);
            self.links[server].client.1.push(Request::Write(self.now));
        }
    }

    fn reattach(&mut self, leader_stands: bool) {
        let present = self.present();
        // The servers do not execute a request for the session after a later one.
        self.links[present].client.1.retain(|request| !matches!(request, Request::Connect(_)));
        self.stops.leader -= u8::from(leader_stands);
        self.links.push(Links { leader: (leader_stands, Vec::new()), ..Links::default() });
        self.attachment = Attachment::Asking;
        self.asked = true;
        self.lease.ask();
        self.send(Request::Connect(self.now));
    }

    fn step(&mut self) {
        self.now += 1;
        self.asked = false;
        if self.now % self.period == 0 {
            for (links, server) in self.links.iter_mut().zip(self.servers) {
                if *server != Server::Deposed {
                    links.leader.1.push(FromLeader::Ping);
                }
            }
            self.flow();
        }
        if self.attachment != Attachment::Connected {
            return;
        }
        let server = self.servers[self.present()];
        if self.now >= self.last_received + server.drop_after() {
            self.attachment = Attachment::None;
        } else if !self.pinging && self.now >= self.last_sent + server.ping_after() {
            self.pinging = true;
            self.send(Request::Ping);
        }
    }

    fn can_reattach(&self) -> bool {
        !self.asked && self.links.len() < self.servers.len()
    }
}

impl World for Pulse {
    type Action = Action;

    fn actions(&self) -> Actions<Action> {
        let mut actions = Actions { progress: Vec::new(), faults: Vec::new() };
        let is_at_rest = self.attachment == Attachment::None && self.links.len() == self.servers.len();
        if is_at_rest || self.is_over || self.now >= self.end {
            return actions;
        }
        actions.progress.push(Action::Step);
        if self.can_reattach() {
            actions.faults.push(Action::Reattach);
            if self.stops.leader > 0 {
                actions.faults.push(Action::ReattachInVain);
            }
        }
        if !self.asked && self.attachment == Attachment::Connected {
            actions.faults.extend([Action::Read, Action::Write]);
        }
        let links = &self.links[self.present()];
        if links.client.0 || self.stops.client > 0 {
            actions.faults.push(Action::TurnClient);
        }
        if if links.leader.0 { self.stops.resumes } else { self.stops.leader > 0 } {
            actions.faults.push(Action::TurnLeader);
        }
        let before = self.present().checked_sub(1).map(|before| &self.links[before]);
        if before.is_some_and(|links| links.client.0 || links.leader.0 && self.stops.resumes) {
            actions.faults.push(Action::Thaw);
        }
        actions
    }

    fn apply(&mut self, action: Action) {
        let present = self.present();
        match action {
            Action::Step => self.step(),
            Action::Read | Action::Write => {
                self.asked = true;
                let is_write = action == Action::Write;
                self.send(if is_write { Request::Write(self.now) } else { Request::Read });
            }
            Action::Reattach => self.reattach(false),
            Action::ReattachInVain => self.reattach(true),
            Action::TurnClient => {
                let link = &mut self.links[present].client.0;
                self.stops.client -= u8::from(!*link);
                *link = !*link;
                self.flow();
            }
            Action::TurnLeader => {
                let link = &mut self.links[present].leader.0;
                self.stops.leader -= u8::from(!*link);
                *link = !*link;
                self.flow();
            }
            Action::Thaw => {
                let links = &mut self.links[present - 1];
                links.client.0 = false;
                links.leader.0 &= !self.stops.resumes;
                self.flow();
            }
        }
        self.named = self.named.max(self.lease.until());
    }

    fn check(&self) -> Result<(), Violation> {
        let (named, until, end) = (self.named, self.lease.until(), at(self.expires));
        if named > end {
            let detail = format!("the lease runs until {named:?}, the session to {end:?}");
            return Err(Violation { property: "lease", detail });
        }
        if named > until && named > at(self.now) {
            let detail = format!("{named:?} was named, and is taken back: the lease runs until {until:?}");
            return Err(Violation { property: "lease", detail });
        }
        Ok(())
    }
}

fn at(units: u8) -> Moment {
    Moment::at(Duration::from_secs(u64::from(units)))
}
