//! One server's side of a conversation: sends the requests of the steps, and records the answers.
//!
//! Nothing here waits for time to pass. After each step a harmless read goes out on every connection, and everything
//! that the server has to tell a connection about the step comes before the answer to that.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::answer::{Header, event, reply};
use crate::client::{Received, Wire};
use crate::normalise::Names;
use crate::plant::Plant;
use crate::request::{Op, Request, Terms, Then};
use crate::step::{Connect, Password, Seen, Step, Wanted};
use crate::words::Figures;
use ground::wire::codec::{Reader, Writer};
use ground::wire::{Connection, try_expire};

/// A server that is silent for this long stays silent.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most answers come within this time. The requests that find out about the others do no harm to late ones.
const USUAL: Duration = Duration::from_millis(20);
/// A server closes a connection within this time, if it has to.
const END: Duration = Duration::from_secs(2);
/// The shortest sessions expire within this time.
const EXPIRY: Duration = Duration::from_secs(30);
/// The id of the request for the root's stat, which no other request has.
const BARRIER: i32 = 1_000_000;
const PASSWORD_LENGTH: usize = 16;

/// The messages that were received after each step.
pub(crate) type Transcript = Vec<Vec<String>>;

#[derive(Debug, Default)]
struct Slot {
    wire: Option<Wire>,
    session: i64,
    password: Vec<u8>,
    last_zxid: i64,
    last_error: i32,
    has_watches: bool,
    next_xid: i32,
}

struct Side<'a> {
    address: SocketAddr,
    names: Names,
    slots: Vec<Slot>,
    /// All sessions that were opened, to be closed in the end.
    opened: Vec<(i64, Vec<u8>)>,
    figures: Figures,
    plant: Plant,
    lines: Vec<String>,
    passed_checks: usize,
    steps: &'a [Step],
}

/// Holds the conversation in a separate tree, named by `number`.
pub(crate) fn converse(
    address: SocketAddr,
    slots: usize,
    steps: &[Step],
    number: u64,
    plant: Plant,
    is_old: bool,
) -> Transcript {
    let mut side = Side {
        address,
        names: Names::new(format!("/c{number:08}")),
        slots: (0..slots).map(|_| Slot::default()).collect(),
        opened: Vec::new(),
        figures: Figures::default(),
        plant,
        lines: Vec::new(),
        passed_checks: 0,
        steps,
    };
    side.start(is_old);
    let transcript = side.steps.iter().map(|step| side.take(step)).collect();
    side.finish();
    transcript
}

impl Side<'_> {
    /// Notes the state of the server before the conversation.
    fn start(&mut self, is_old: bool) {
        let mut operator = Connection::open(self.address, PATIENCE).expect("a session");
        // The only node that conversations share.
        let root = operator.set("/", b"").expect("anybody may set it");
        // Servers of 3.4 do not know this request.
        let count = if is_old { 0 } else { operator.count("/").expect("a count of nodes") };
        operator.close().expect("the session ends");
        // Closing it is one more transaction.
        self.names.start(root.mzxid + 1, &root, count);
        self.figures = Figures::read(self.address, PATIENCE);
    }

    fn take(&mut self, step: &Step) -> Vec<String> {
        self.lines.clear();
        let mut settled = None;
        // A server only sends something unasked if it may close a connection, or if a watch fires.
        let mut tells_all = true;
        let mut tells_watchers = false;
        match step {
            Step::Connect(connect) => self.connect(connect),
            Step::Send { slot, requests } => {
                self.send(*slot, requests);
                tells_all = requests.iter().any(Request::may_close);
                tells_watchers = requests.iter().any(Request::may_write);
                settled = Some(*slot).filter(|_| !tells_all);
            }
            Step::HangUp { slot } => {
                if let Some(wire) = self.slots[*slot].wire.take() {
                    wire.hang_up(PATIENCE);
                }
            }
            Step::Await { slot, events } => self.wait(*slot, *events),
            Step::Word(word) => {
                let open = self.slots.iter().filter(|slot| slot.wire.is_some()).count();
                let line = self.figures.word(self.address, word, &self.names, PATIENCE, open);
                self.lines.push(line);
            }
        }
        let may_hear = |slot: &Slot| tells_all || (tells_watchers && slot.has_watches);
        let others = 0..self.slots.len();
        let others: Vec<_> =
            others.filter(|&slot| settled != Some(slot) && may_hear(&self.slots[slot])).collect();
        others.iter().for_each(|&slot| self.send_barrier(slot));
        others.iter().for_each(|&slot| self.read_barrier(slot, &mut Vec::new()));
        if step.ends_session() {
            sort_events(&mut self.lines);
        }
        self.lines.clone()
    }

    fn connect(&mut self, connect: &Connect) {
        let slot = connect.slot;
        if let Some(old) = self.slots[slot].wire.take() {
            // Otherwise the server would have two connections of ours at once, and we could not read the first.
            old.hang_up(PATIENCE);
        }
        let (session, password) = match connect.wanted {
            Wanted::New => (0, vec![0; PASSWORD_LENGTH]),
            Wanted::Of(other) => (self.slots[other].session, self.slots[other].password.clone()),
            Wanted::Unheard => (0x7777, vec![7; PASSWORD_LENGTH]),
        };
        let password = match connect.password {
            Password::Right => Some(password),
            Password::Wrong => Some(password.iter().map(|byte| !byte).collect()),
            Password::Short => Some(vec![1; 3]),
            Password::Null => None,
        };
        let seen = match connect.seen {
            Seen::Nothing => 0,
            Seen::Last => self.slots[slot].last_zxid,
            Seen::Future => self.slots[slot].last_zxid + 1_000_000,
        };
        let mut hello = Writer::default().int(0).long(seen).int(connect.timeout).long(session);
        hello = hello.nullable(password.as_deref());
        if let Some(read_only) = connect.read_only {
            hello = hello.boolean(read_only);
        }
        hello.0.truncate(connect.cut.unwrap_or(usize::MAX));
        let mut wire = Wire::connect(self.address);
        wire.send(&hello.framed());
        let Received::Frame(frame) = wire.receive(PATIENCE) else {
            self.lines.push(format!("[{slot}] closed without an answer"));
            return;
        };
        let mut reader = Reader(&frame);
        let mut fields = || Some((reader.int()?, reader.int()?, reader.long()?, reader.buffer()?));
        let (version, timeout, session, password) = fields().expect("an answer to a connect request");
        let password = password.to_vec();
        if session != 0 {
            self.names.meet(session);
            let state = &mut self.slots[slot];
            (state.session, state.next_xid, state.has_watches) = (session, 1, false);
            state.password.clone_from(&password);
            if !self.opened.contains(&(session, password.clone())) {
                self.opened.push((session, password.clone()));
            }
        }
        let password = match (password.len(), password.iter().all(|byte| *byte == 0)) {
            (length, true) => format!("{length} zeros"),
            (length, false) => format!("{length} bytes"),
        };
        self.lines.push(format!(
            "[{slot}] {} version {version} timeout {timeout} password {password} and {:?}",
            self.names.session(session),
            reader.0
        ));
        if session == 0 {
            let end = wire.receive(PATIENCE);
            self.lines.push(format!(
                "[{slot}] then {}",
                if matches!(end, Received::Closed) { "closed" } else { "open" }
            ));
        } else {
            self.slots[slot].wire = Some(wire);
        }
    }

    fn send(&mut self, slot: usize, requests: &[Request]) {
        let state = &mut self.slots[slot];
        let Some(wire) = &mut state.wire else {
            self.lines.push(format!("[{slot}] is not connected"));
            return;
        };
        state.has_watches |= requests.iter().any(Request::may_watch);
        let terms = Terms { root: &self.names.root, last_zxid: state.last_zxid };
        let mut flight = Vec::new();
        let mut expected = Vec::new();
        for request in requests {
            let xid = state.next_xid;
            state.next_xid += 1;
            flight.extend(request.frame(xid, &terms));
            expected.push((request.xid(xid), request));
        }
        wire.send(&flight);
        // If a connection is closed with unread bytes, everything on the way to us is lost.
        let patience = if requests.iter().any(Request::may_close) { PATIENCE } else { USUAL };
        if !self.read(slot, &mut expected, patience, true) {
            // Some answers never come. A later answer shows that, without a wait.
            self.send_barrier(slot);
            self.read_barrier(slot, &mut expected);
            // Whether this was needed depends on timing.
            self.lines.retain(|line| !line.contains("] sees "));
        } else if requests.last().is_some_and(|last| last.closes(self.slots[slot].last_error)) {
            self.read_end(slot);
        }
        for _ in 0..std::mem::take(&mut self.passed_checks) {
            self.lines.push(format!("[{slot}] 13: passed"));
        }
    }

    /// Waits until the server closes the connection, and sends nothing, because the server might answer that first.
    fn read_end(&mut self, slot: usize) {
        let Some(wire) = &mut self.slots[slot].wire else { return };
        let end = match wire.receive(END) {
            Received::Closed => "closed".to_owned(),
            Received::Silence => "is still open".to_owned(),
            Received::Frame(frame) => format!("has one more frame: {frame:02x?}"),
        };
        if end == "closed" {
            self.slots[slot].wire = None;
        }
        self.lines.push(format!("[{slot}] {end}"));
    }

    /// A real server never answers a `check` outside of a multi that succeeds. A server that answers it is as good.
    fn note_missing(&mut self, slot: usize, request: &Request, what: &str) {
        if matches!(request, Request::At(Op::Check, ..)) {
            self.passed_checks += 1;
        } else {
            self.lines.push(format!("[{slot}] {}: {what}", request.opcode()));
        }
    }

    /// The only place where time must pass: until a server ends sessions.
    fn wait(&mut self, slot: usize, events: usize) {
        let end = Instant::now() + EXPIRY;
        let heard = |lines: &[String]| lines.iter().filter(|line| line.contains("] event: ")).count();
        while heard(&self.lines) < events && Instant::now() < end {
            self.send_barrier(slot);
            self.read_barrier(slot, &mut Vec::new());
            thread::sleep(Duration::from_millis(50));
        }
        // The number of these lines does not depend on the servers.
        self.lines.retain(|line| !line.contains("] sees "));
    }

    fn send_barrier(&mut self, slot: usize) {
        if let Some(wire) = &mut self.slots[slot].wire {
            wire.send(&barrier().frame(BARRIER, &Terms { root: &self.names.root, last_zxid: 0 }));
        }
    }

    /// Reads what the server has for a connection, and the answers to `expected` if they come at all.
    fn read_barrier(&mut self, slot: usize, expected: &mut Vec<(i32, &Request)>) {
        if self.slots[slot].wire.is_none() {
            return;
        }
        let request = barrier();
        let mut all = std::mem::take(expected);
        all.push((BARRIER, &request));
        self.read(slot, &mut all, PATIENCE, false);
        for (_, request) in all.iter().filter(|(xid, _)| *xid != BARRIER) {
            self.note_missing(slot, request, "no answer");
        }
    }

    /// Reads until all of `expected` has come, or the barrier among it; `false` if it does not come.
    fn read(
        &mut self,
        slot: usize,
        expected: &mut Vec<(i32, &Request)>,
        patience: Duration,
        may_be_late: bool,
    ) -> bool {
        while !expected.is_empty() {
            let state = &mut self.slots[slot];
            let Some(wire) = &mut state.wire else { return true };
            match wire.receive(patience) {
                Received::Frame(mut frame) => {
                    if !self.plant.alter(&mut frame) {
                        continue;
                    }
                    let Some((header, body)) = Header::read(&frame) else {
                        self.lines.push(format!("[{slot}] a short frame: {frame:02x?}"));
                        continue;
                    };
                    let line = if header.xid == -1 {
                        event(&header, body, &self.names)
                    } else if let Some(index) = expected.iter().position(|(xid, _)| *xid == header.xid) {
                        if header.error == 0 && matches!(expected[index].1, Request::At(Op::Check, ..)) {
                            expected.remove(index);
                            self.passed_checks += 1;
                            continue;
                        }
                        state.last_zxid = state.last_zxid.max(header.zxid);
                        state.last_error = header.error;
                        let (xid, request) = expected.remove(index);
                        if xid == BARRIER {
                            self.lines.push(format!("[{slot}] sees {}", self.names.zxid(header.zxid)));
                            return true;
                        }
                        format!("{}: {}", request.opcode(), reply(request, &header, body, &mut self.names))
                    } else {
                        format!("an answer that nobody asked for: {frame:02x?}")
                    };
                    self.lines.push(format!("[{slot}] {line}"));
                }
                Received::Closed => {
                    state.wire = None;
                    for (_, request) in expected.iter().filter(|(xid, _)| *xid != BARRIER) {
                        self.note_missing(slot, request, "closed instead");
                    }
                    self.lines.push(format!("[{slot}] closed"));
                    return true;
                }
                Received::Silence if may_be_late => return false,
                Received::Silence => {
                    self.lines.push(format!("[{slot}] silence"));
                    state.wire = None;
                    return true;
                }
            }
        }
        true
    }

    /// Ends all sessions and deletes what the conversation has left.
    fn finish(&mut self) {
        for wire in self.slots.iter_mut().filter_map(|slot| slot.wire.take()) {
            wire.hang_up(PATIENCE);
        }
        for (session, password) in std::mem::take(&mut self.opened) {
            let _ = try_expire(self.address, session, &password);
        }
        let mut operator = Connection::open(self.address, PATIENCE).expect("a session");
        operator.authenticate(b"super:secret").expect("the server knows this user");
        // Also delete nodes next to the tree, with its name and a number.
        for name in operator.children("/", false).expect("the root has children") {
            if name.starts_with(&self.names.root[1..]) {
                delete(&mut operator, &format!("/{name}"));
            }
        }
        operator.close().expect("the session ends");
    }
}

fn barrier() -> Request {
    Request::At(Op::Exists, "/".to_owned(), Then::Watch(false))
}

/// Deletes a node and everything below it, as far as the server allows it.
fn delete(operator: &mut Connection, path: &str) {
    for child in operator.children(path, false).unwrap_or_default() {
        delete(operator, &format!("{path}/{child}"));
    }
    let _ = operator.delete(path);
}

/// Sorts consecutive events by connection and path.
fn sort_events(lines: &mut [String]) {
    let is_event = |line: &String| line.contains("] event: ");
    let key = |line: &String| line.split(' ').take(3).map(str::to_owned).collect::<Vec<_>>();
    for run in lines.chunk_by_mut(|one, other| is_event(one) && is_event(other)) {
        run.sort_by_cached_key(key);
    }
}
