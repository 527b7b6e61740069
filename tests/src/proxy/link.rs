//! One connection through a proxy: two sockets, and a queue of messages in each direction between them.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, connect_unspec, socket_with};

use super::hook::{Gate, fire};
use super::message::{Kind, Message, Namer, Side, greeting};
use super::rules::{Rules, Verdict};
use super::shared::Fault;

/// A larger number in the first four bytes is not the length of a message, but a four-letter word.
const LONGEST: usize = 64 << 20;

/// How long to retry a server behind a server. A follower is there before its leader listens, and tries again when it
/// is refused. If we accepted its connection and then reset it, the follower would go back into the election.
const PATIENCE: Duration = Duration::from_secs(2);
const REDIAL: Duration = Duration::from_millis(20);

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: u64,
    client: Arc<TcpStream>,
    server: Upstream,
    /// Until when to retry a server that refuses us.
    patience: Instant,
    /// By the side that sends: what the client has sent, what the server has sent.
    lanes: [Lane; 2],
    /// `None` if the bytes are not ZooKeeper's messages.
    namer: Option<Namer>,
    pub(super) over: bool,
}

#[derive(Debug)]
enum Upstream {
    /// Not tried yet because of a freeze, or tried in vain; to be tried at that time.
    Awaited(Instant),
    Dialled(Arc<TcpStream>),
    Open(Arc<TcpStream>),
    /// Cut without telling the client.
    Gone,
}

/// The data that one side has sent, on its way to the other.
#[derive(Debug, Default)]
struct Lane {
    /// The beginning of a message whose end has not come.
    raw: Vec<u8>,
    queue: VecDeque<Unit>,
    gate: Option<Gate>,
    /// Passed, but not yet taken by the socket.
    out: Vec<u8>,
    /// The sender will send no more.
    ended: bool,
    /// The receiver has been told the end, or is gone.
    finished: bool,
}

#[derive(Debug)]
struct Unit {
    due: Instant,
    judged: bool,
    cargo: Cargo,
}

#[derive(Debug)]
enum Cargo {
    /// A message without its length, or a word, which has none.
    Frame(Vec<u8>, Box<Message>),
    Raw(Vec<u8>),
    End,
    Reset,
}

impl Link {
    pub(super) fn new(number: u64, client: TcpStream, framed: bool) -> Self {
        let now = Instant::now();
        Self {
            number,
            client: Arc::new(client),
            server: Upstream::Awaited(now),
            patience: if framed { now } else { now + PATIENCE },
            lanes: Default::default(),
            namer: framed.then(Namer::default),
            over: false,
        }
    }

    /// The sockets to wait for, each with the side that sends on it.
    pub(super) fn interests(&self, rules: &Rules) -> Vec<(Arc<TcpStream>, Side, PollFlags)> {
        let interest = |side: Side| {
            if let (Side::Reply, Upstream::Dialled(server)) = (side, &self.server) {
                return Some((Arc::clone(server), side, PollFlags::OUT));
            }
            let socket = Arc::clone(self.socket(side)?);
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, !self.lane(side).ended);
            let stuck = !self.lane(side.other()).out.is_empty() && !rules.is_frozen(side.other());
            flags.set(PollFlags::OUT, stuck);
            (!flags.is_empty()).then_some((socket, side, flags))
        };
        Side::BOTH.into_iter().filter_map(interest).collect()
    }

    /// When there is something to do even if no socket is ready.
    pub(super) fn deadline(&self, rules: &Rules) -> Option<Instant> {
        let dues = Side::BOTH.into_iter().filter_map(|side| {
            let lane = self.lane(side);
            let held = rules.is_frozen(side) || lane.gate.is_some() || lane.finished || !lane.out.is_empty();
            let held = held || side == Side::Request && self.is_unconnected();
            lane.queue.front().filter(|_| !held).map(|unit| unit.due)
        });
        let redial = match self.server {
            Upstream::Awaited(time) if !rules.is_frozen(Side::Request) => Some(time),
            _ => None,
        };
        dues.chain(redial).min()
    }

    /// Reads what a side has sent.
    pub(super) fn read(&mut self, side: Side, rules: &mut Rules) {
        let Some(mut socket) = self.socket(side).map(|socket| &**socket) else { return };
        let mut chunk = [0; 16 << 10];
        let end = match socket.read(&mut chunk) {
            Ok(0) => Cargo::End,
            Ok(count) => {
                self.lane_mut(side).raw.extend(&chunk[..count]);
                self.decode(side, rules);
                return;
            }
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind()) => {
                return;
            }
            Err(_) => Cargo::Reset,
        };
        let due = Instant::now() + rules.delay;
        let lane = self.lane_mut(side);
        let rest = std::mem::take(&mut lane.raw);
        if !rest.is_empty() {
            lane.queue.push_back(Unit { due, judged: true, cargo: Cargo::Raw(rest) });
        }
        lane.queue.push_back(Unit { due, judged: true, cargo: end });
        lane.ended = true;
    }

    fn decode(&mut self, side: Side, rules: &mut Rules) {
        let due = Instant::now() + rules.delay;
        let lane = &mut self.lanes[side as usize];
        while self.namer.is_some() {
            let Some(prefix) = lane.raw.first_chunk() else { return };
            let length = u32::from_be_bytes(*prefix) as usize;
            if length > LONGEST {
                self.namer = None;
                let word = Message::of(side, Kind::Word, String::from_utf8_lossy(prefix).into_owned());
                let cargo = Cargo::Frame(std::mem::take(&mut lane.raw), Box::new(word));
                lane.queue.push_back(Unit { due, judged: false, cargo });
                break;
            }
            if lane.raw.len() < 4 + length {
                return;
            }
            let frame: Vec<u8> = lane.raw.drain(..4 + length).collect();
            let body = frame[4..].to_vec();
            let cargo = match self.namer.as_mut().and_then(|namer| namer.name(side, &body)) {
                Some(mut message) => {
                    rules.last_seen += 1;
                    (message.connection, message.seen) = (self.number, rules.last_seen);
                    rules.recorder.saw(&message);
                    Cargo::Frame(body, Box::new(message))
                }
                None => Cargo::Raw(frame),
            };
            lane.queue.push_back(Unit { due, judged: false, cargo });
        }
        if !lane.raw.is_empty() {
            let cargo = Cargo::Raw(std::mem::take(&mut lane.raw));
            lane.queue.push_back(Unit { due, judged: true, cargo });
        }
    }

    /// Sends everything that may pass now.
    pub(super) fn pump(&mut self, rules: &mut Rules, upstream: SocketAddr) {
        self.dial(rules, upstream);
        for side in Side::BOTH {
            self.pump_lane(side, rules);
        }
        self.over |= self.lanes.iter().all(|lane| lane.finished);
    }

    /// Continues to connect to the server.
    fn dial(&mut self, rules: &Rules, upstream: SocketAddr) {
        if let Upstream::Awaited(time) = self.server {
            if self.lane(Side::Request).ended {
                // The client has given up a connection that never came about.
                self.over = true;
            } else if !rules.is_frozen(Side::Request) && time <= Instant::now() {
                match dial(upstream) {
                    Ok(server) => self.server = Upstream::Dialled(Arc::new(server)),
                    Err(_) => self.close(Fault::Reset),
                }
            }
        }
        if let Upstream::Dialled(server) = &self.server {
            if server.peer_addr().is_ok() {
                self.server = Upstream::Open(Arc::clone(server));
            } else if matches!(server.take_error(), Ok(None)) {
                // Still in progress.
            } else if Instant::now() < self.patience {
                self.server = Upstream::Awaited(Instant::now() + REDIAL);
            } else {
                self.close(Fault::Reset);
            }
        }
    }

    fn pump_lane(&mut self, side: Side, rules: &mut Rules) {
        while !self.over && !rules.is_frozen(side) && self.drain(side) {
            let Some(mut unit) = self.lane_mut(side).next() else { break };
            match unit.cargo {
                Cargo::Frame(mut body, message) => {
                    let (verdict, told) = if unit.judged {
                        (Verdict::Pass, Vec::new())
                    } else {
                        rules.judge(&message, &mut body)
                    };
                    match verdict {
                        Verdict::Pass => self.pass(side, rules, &body, &message),
                        Verdict::Hold(gate) => {
                            unit.judged = true;
                            unit.cargo = Cargo::Frame(body, message.clone());
                            let lane = self.lane_mut(side);
                            lane.gate = gate;
                            lane.queue.push_front(unit);
                        }
                        Verdict::Swallow => {}
                        Verdict::HangUp => self.hang_up(),
                    }
                    told.iter().for_each(fire);
                }
                Cargo::Raw(bytes) => self.lane_mut(side).out.extend(bytes),
                Cargo::End => {
                    if let Some(socket) = self.socket(side.other()) {
                        let _ = socket.shutdown(Shutdown::Write);
                    }
                    self.lane_mut(side).finished = true;
                    self.over |= matches!(self.server, Upstream::Gone);
                }
                Cargo::Reset => self.close(Fault::Reset),
            }
        }
    }

    fn pass(&mut self, side: Side, rules: &mut Rules, body: &[u8], message: &Message) {
        rules.recorder.passed(message.seen);
        if side == Side::Reply && message.kind == Kind::Connect {
            greeting(body).into_iter().for_each(|greeting| rules.greet(greeting));
        }
        let length = u32::try_from(body.len()).expect("no message is longer than 4 GiB");
        let out = &mut self.lane_mut(side).out;
        if message.kind != Kind::Word {
            out.extend(length.to_be_bytes());
        }
        out.extend(body);
    }

    /// Passes data on to the receiver. Returns whether more may pass.
    fn drain(&mut self, side: Side) -> bool {
        if matches!((&self.server, side), (Upstream::Gone, Side::Request)) {
            self.lane_mut(side).out.clear();
            return true;
        }
        let Some(socket) = self.socket(side.other()).map(Arc::clone) else { return false };
        let lane = self.lane_mut(side);
        while !lane.out.is_empty() {
            match (&*socket).write(&lane.out) {
                Ok(count) => drop(lane.out.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => {
                    // The receiver is gone; its own lane will tell the sender.
                    lane.finished = true;
                    lane.queue.clear();
                    lane.out.clear();
                }
            }
        }
        !lane.finished
    }

    /// Resets the client. The server sees an orderly end, after all that it was sent.
    fn hang_up(&mut self) {
        let _ = connect_unspec(&self.client);
        if let Upstream::Open(server) = &self.server {
            let _ = server.shutdown(Shutdown::Both);
        }
        self.over = true;
    }

    /// Ends the connection at once, or half of it. What has not passed is lost.
    pub(super) fn close(&mut self, fault: Fault) {
        let server = match &self.server {
            Upstream::Open(server) | Upstream::Dialled(server) => Some(server),
            Upstream::Awaited(_) | Upstream::Gone => None,
        };
        match fault {
            Fault::Cut => {
                for socket in server.into_iter().chain([&self.client]) {
                    finish(socket);
                }
            }
            Fault::Reset => {
                for socket in server.into_iter().chain([&self.client]) {
                    let _ = connect_unspec(socket);
                }
            }
            Fault::HalfOpen => {
                server.into_iter().for_each(finish);
                self.server = Upstream::Gone;
                let lane = self.lane_mut(Side::Reply);
                lane.ended = true;
                lane.queue.clear();
                return;
            }
        }
        self.over = true;
    }

    fn socket(&self, side: Side) -> Option<&Arc<TcpStream>> {
        match (side, &self.server) {
            (Side::Request, _) => Some(&self.client),
            (Side::Reply, Upstream::Open(server)) => Some(server),
            (Side::Reply, _) => None,
        }
    }

    fn is_unconnected(&self) -> bool {
        matches!(self.server, Upstream::Awaited(_) | Upstream::Dialled(_))
    }

    fn lane(&self, side: Side) -> &Lane {
        &self.lanes[side as usize]
    }

    fn lane_mut(&mut self, side: Side) -> &mut Lane {
        &mut self.lanes[side as usize]
    }
}

impl Lane {
    /// The next unit that its time and the gate let pass.
    fn next(&mut self) -> Option<Unit> {
        if self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            return None;
        }
        self.gate = None;
        if self.queue.front()?.due > Instant::now() {
            return None;
        }
        self.queue.pop_front()
    }
}

/// Begins a connection; whether it succeeds shows when it is read.
fn dial(upstream: SocketAddr) -> io::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match connect(&socket, &upstream) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    // A proxy that waits for more bytes would add an unwanted delay.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Sends FIN. Reads unread data first: otherwise the kernel would send RST instead.
fn finish(socket: &Arc<TcpStream>) {
    let mut rest = [0; 4096];
    while (&**socket).read(&mut rest).is_ok_and(|count| count > 0) {}
    let _ = socket.shutdown(Shutdown::Both);
}
