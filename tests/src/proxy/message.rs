//! Recorded messages of ZooKeeper, named and in order.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Instant;

use crate::wire::codec::{Reader, opcode, xid};

/// The kind of a message. A reply has the kind of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are ZooKeeper's own")]
pub enum Kind {
    Connect,
    Create,
    CreateContainer,
    Delete,
    Exists,
    GetData,
    SetData,
    GetChildren,
    Sync,
    Check,
    Multi,
    Ping,
    Auth,
    SetWatches,
    Close,
    /// A watch that fired; a reply to no request.
    Event,
    /// A four-letter word, which is its path. Only triggers see it: it is recorded nowhere.
    Word,
    /// Any other operation, by its number.
    Other(i32),
    /// In a trigger: every kind except [`Kind::Ping`] and [`Kind::Word`].
    Any,
}

impl Kind {
    fn of(operation: i32) -> Self {
        match operation {
            opcode::CREATE | opcode::CREATE_2 => Self::Create,
            opcode::CREATE_CONTAINER => Self::CreateContainer,
            opcode::DELETE => Self::Delete,
            opcode::EXISTS => Self::Exists,
            opcode::GET_DATA => Self::GetData,
            opcode::SET_DATA => Self::SetData,
            opcode::GET_CHILDREN | opcode::GET_CHILDREN_2 => Self::GetChildren,
            opcode::SYNC => Self::Sync,
            opcode::CHECK => Self::Check,
            opcode::MULTI => Self::Multi,
            opcode::PING => Self::Ping,
            opcode::AUTH => Self::Auth,
            opcode::SET_WATCHES | opcode::SET_WATCHES_2 => Self::SetWatches,
            opcode::CLOSE_SESSION => Self::Close,
            other => Self::Other(other),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    /// Understands the names above, in any case and with dashes: `get-children`.
    fn from_str(name: &str) -> Result<Self, String> {
        let operations = (opcode::CLOSE_SESSION..=opcode::SET_WATCHES_2).map(Self::of);
        let plain = name.replace('-', "");
        let mut named = operations.chain([Self::Connect, Self::Event, Self::Any]);
        let found = named.find(|kind| format!("{kind:?}").eq_ignore_ascii_case(&plain));
        found.ok_or_else(|| format!("no kind of message: {name}"))
    }
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The client.
    Request,
    /// The server.
    Reply,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Request, Self::Reply];

    pub(super) fn other(self) -> Self {
        match self {
            Self::Request => Self::Reply,
            Self::Reply => Self::Request,
        }
    }
}

/// One message on its way through the proxy.
#[derive(Debug, Clone)]
pub struct Message {
    /// The connection, numbered from 1 in the order in which they were opened.
    pub connection: u64,
    /// The side that sent it.
    pub side: Side,
    /// Its kind.
    pub kind: Kind,
    /// The path in it or, for a reply, in its request. For a multi, all paths, joined by commas.
    pub path: String,
    /// For a multi, the kinds of its operations.
    pub operations: Vec<Kind>,
    /// Whether a read asks for a watch.
    pub watch: bool,
    /// The number that ties a reply to its request.
    pub xid: i32,
    /// For a reply: ZooKeeper's error number, 0 for success.
    pub error: i32,
    /// When it came in.
    pub time: Instant,
    /// Its number among all that came in.
    pub seen: u64,
    /// Whether it was passed on.
    pub passed: bool,
}

impl Message {
    pub(super) fn of(side: Side, kind: Kind, path: String) -> Self {
        Self {
            connection: 0,
            side,
            kind,
            path,
            operations: Vec::new(),
            watch: false,
            xid: 0,
            error: 0,
            time: Instant::now(),
            seen: 0,
            passed: false,
        }
    }
}

/// The data with which a session can be taken over: its id, its password, its timeout in milliseconds.
pub(super) type Greeting = (i64, Vec<u8>, i32);

/// Names the messages of one connection.
#[derive(Debug, Default)]
pub(super) struct Namer {
    greeted: [bool; 2],
    /// The requests whose replies have not passed, each with its path.
    asked: HashMap<i32, (Kind, String)>,
}

impl Namer {
    /// Names a message; `None` if it is not one of ZooKeeper's. The caller fills in its connection and its number.
    pub(super) fn name(&mut self, side: Side, body: &[u8]) -> Option<Message> {
        let mut message = Message::of(side, Kind::Connect, String::new());
        if !std::mem::replace(&mut self.greeted[side as usize], true) {
            return Some(message);
        }
        let mut reader = Reader(body);
        message.xid = reader.int()?;
        match side {
            Side::Request => {
                message.kind = Kind::of(reader.int()?);
                describe(&mut message, reader);
                self.asked.insert(message.xid, (message.kind, message.path.clone()));
            }
            Side::Reply => {
                reader.long()?;
                message.error = reader.int()?;
                match message.xid {
                    xid::WATCH_EVENT => {
                        message.kind = Kind::Event;
                        reader.take(8)?;
                        message.path = reader.text()?;
                    }
                    xid::PING => message.kind = Kind::Ping,
                    xid::AUTH => message.kind = Kind::Auth,
                    xid::SET_WATCHES => message.kind = Kind::SetWatches,
                    number => (message.kind, message.path) = self.asked.remove(&number)?,
                }
            }
        }
        Some(message)
    }
}

/// The session in a connect reply, if it was granted.
pub(super) fn greeting(body: &[u8]) -> Option<Greeting> {
    let mut reader = Reader(body);
    reader.int()?;
    let timeout = reader.int()?;
    let session = reader.long()?;
    let password = reader.buffer()?.to_vec();
    (timeout > 0).then_some((session, password, timeout))
}

/// Fills in the paths of a request, as far as its kind has any.
fn describe(message: &mut Message, mut reader: Reader<'_>) {
    match message.kind {
        Kind::Multi => {
            let mut paths = Vec::new();
            // If the list cannot be parsed, use what was found so far.
            while let Some((kind, path)) = operation(&mut reader) {
                message.operations.push(kind);
                paths.push(path);
            }
            message.path = paths.join(",");
        }
        Kind::Ping | Kind::Auth | Kind::SetWatches | Kind::Close | Kind::Connect | Kind::Other(_) => {}
        kind => {
            message.path = reader.text().unwrap_or_default();
            let reads = [Kind::Exists, Kind::GetData, Kind::GetChildren].contains(&kind);
            message.watch = reads && reader.boolean() == Some(true);
        }
    }
}

/// One operation of a multi; `None` at its end.
fn operation(reader: &mut Reader<'_>) -> Option<(Kind, String)> {
    let kind = Kind::of(reader.int()?);
    let done = reader.boolean()?;
    reader.int()?;
    if done {
        return None;
    }
    let path = reader.text()?;
    match kind {
        Kind::Create | Kind::CreateContainer => {
            reader.buffer()?;
            for _ in 0..reader.int()? {
                reader.int()?;
                reader.buffer()?;
                reader.buffer()?;
            }
            reader.int()?;
        }
        Kind::SetData => {
            reader.buffer()?;
            reader.int()?;
        }
        Kind::Delete | Kind::Check => {
            reader.int()?;
        }
        Kind::GetChildren | Kind::GetData => {
            reader.boolean()?;
        }
        _ => return None,
    }
    Some((kind, path))
}

/// How many messages of each kind went by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The requests of the clients, in order of arrival; without pings.
    pub asked: Vec<Kind>,
    /// The replies and events of the servers, in order of arrival; without pings.
    pub answered: Vec<Kind>,
}

impl Counts {
    /// How many requests of a kind; [`Kind::Any`] counts all except pings.
    pub fn requests(&self, kind: Kind) -> usize {
        count(&self.asked, kind)
    }

    /// How many replies of a kind; [`Kind::Any`] counts all except pings.
    pub fn replies(&self, kind: Kind) -> usize {
        count(&self.answered, kind)
    }
}

fn count(kinds: &[Kind], wanted: Kind) -> usize {
    kinds.iter().filter(|&&kind| wanted == Kind::Any || wanted == kind).count()
}

/// Keeps messages while recording is on.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    on: bool,
    messages: Vec<Message>,
}

impl Recorder {
    pub(super) fn start(&mut self) {
        *self = Self { on: true, ..Self::default() };
    }

    pub(super) fn saw(&mut self, message: &Message) {
        if self.on {
            self.messages.push(message.clone());
        }
    }

    pub(super) fn passed(&mut self, seen: u64) {
        if let Some(message) = self.messages.iter_mut().rev().find(|message| message.seen == seen) {
            message.passed = true;
        }
    }

    pub(super) fn take(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    pub(super) fn messages(&self) -> Vec<Message> {
        self.messages.clone()
    }

    pub(super) fn counts(&self) -> Counts {
        let counted = self.messages.iter().filter(|message| message.kind != Kind::Ping);
        let kinds =
            |side| counted.clone().filter(move |message| message.side == side).map(|message| message.kind);
        Counts { asked: kinds(Side::Request).collect(), answered: kinds(Side::Reply).collect() }
    }
}
