//! A small blocking ZooKeeper client for the tests: the operator at the console, or a stranger on the same path.
//!
//! It is written by hand on a socket, independent of the client under test. [`Connection`] is one connection and one
//! session, with every failure visible. Most tests want an [`Admin`]: it stays connected, and panics with a clear
//! message where a test could only panic anyway.

mod admin;
#[allow(missing_docs, reason = "the names are ZooKeeper's own")]
pub mod codec;

pub use admin::Admin;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use codec::{Reader, Writer, code, opcode, xid};

use crate::secured;

/// How long one answer may take before the connection counts as dead.
const PATIENCE: Duration = Duration::from_secs(5);

/// The mode of a new node, with ZooKeeper's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Stays until deleted.
    Persistent = 0,
    /// Ends with the session.
    Ephemeral = 1,
    /// Stays until deleted; the server appends a number.
    PersistentSequential = 2,
    /// Ends with the session; the server appends a number.
    EphemeralSequential = 3,
    /// Reaped by the server once it has had children and is empty again.
    Container = 4,
}

/// A node's metadata, as the server sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are ZooKeeper's own")]
pub struct Stat {
    pub czxid: i64,
    pub mzxid: i64,
    pub ctime: i64,
    pub mtime: i64,
    pub version: i32,
    pub cversion: i32,
    pub aversion: i32,
    pub ephemeral_owner: i64,
    pub data_length: i32,
    pub num_children: i32,
    pub pzxid: i64,
}

impl Stat {
    /// Reads it off the front of a message; `None` if it ends early.
    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        // In the order of the fields.
        Some(Self {
            czxid: reader.long()?,
            mzxid: reader.long()?,
            ctime: reader.long()?,
            mtime: reader.long()?,
            version: reader.int()?,
            cversion: reader.int()?,
            aversion: reader.int()?,
            ephemeral_owner: reader.long()?,
            data_length: reader.int()?,
            num_children: reader.int()?,
            pzxid: reader.long()?,
        })
    }
}

/// A watch that fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// ZooKeeper's number: 1 created, 2 deleted, 3 data changed, 4 children changed.
    pub kind: i32,
    /// The watched path.
    pub path: String,
}

/// Why a request failed.
#[derive(Debug)]
pub enum Failure {
    /// The server said no, with ZooKeeper's error number (-101 is "no node").
    Server(i32),
    /// No definite answer: the connection failed or was silent.
    Link(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(code) => write!(out, "ZooKeeper error {code}"),
            Self::Link(error) => write!(out, "connection: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Link(error)
    }
}

/// One connection with its session. It does nothing by itself: no pings, no reconnects.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    incoming: Vec<u8>,
    session: i64,
    timeout: Duration,
    patience: Duration,
    last_xid: i32,
    events: VecDeque<Event>,
}

impl Connection {
    /// Opens a new session.
    pub fn open(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        Self::attach(address, 0, &[0; 16], timeout)
    }

    /// Moves the session `session` to this connection, as a client does when it reconnects. An error of kind `NotFound`
    /// means that the server does not (or no longer) know the session.
    pub fn attach(address: SocketAddr, session: i64, password: &[u8], timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        let mut connection = Self {
            stream,
            incoming: Vec::new(),
            session,
            timeout,
            patience: PATIENCE,
            last_xid: 0,
            events: VecDeque::new(),
        };
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let hello =
            Writer::default().int(0).long(0).int(millis).long(session).buffer(password).boolean(false);
        connection.stream.write_all(&hello.framed())?;
        let answer = connection.frame(Instant::now() + PATIENCE)?.ok_or(io::ErrorKind::TimedOut)?;
        let mut reader = Reader(&answer);
        reader.int().ok_or(io::ErrorKind::InvalidData)?;
        let negotiated = reader.int().ok_or(io::ErrorKind::InvalidData)?;
        connection.session = reader.long().ok_or(io::ErrorKind::InvalidData)?;
        connection.timeout = Duration::from_millis(u64::try_from(negotiated).unwrap_or(0));
        if connection.timeout.is_zero() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the session has expired"));
        }
        if secured::is_wanted() {
            connection.authenticate(secured::SUPERUSER).map_err(io::Error::other)?;
        }
        Ok(connection)
    }

    /// Shows the credentials of a user, as the scheme `digest` has them: `name:password`.
    pub fn authenticate(&mut self, credentials: &[u8]) -> Result<(), Failure> {
        let body = Writer::default().int(0).buffer(b"digest").buffer(credentials);
        self.send(xid::AUTH, opcode::AUTH, &body.0)?;
        self.answer_to(xid::AUTH).map(drop)
    }

    /// The session's id.
    pub fn session(&self) -> i64 {
        self.session
    }

    /// The session timeout that the server granted.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How long one answer may take before the connection counts as dead; 5 s unless set.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Creates a node and returns its path.
    pub fn create(&mut self, path: &[u8], data: &[u8], mode: Mode) -> Result<String, Failure> {
        let operation = if mode == Mode::Container { opcode::CREATE_CONTAINER } else { opcode::CREATE };
        let answer = self.call(operation, &creation(path, data, mode as i32))?;
        read(&answer, Reader::text)
    }

    /// Creates nodes without data, all in flight at once, and returns their paths.
    pub fn create_together(&mut self, paths: &[String], mode: Mode) -> Result<Vec<String>, Failure> {
        let first = self.last_xid + 1;
        for path in paths {
            self.last_xid += 1;
            self.send(self.last_xid, opcode::CREATE, &creation(path.as_bytes(), b"", mode as i32).0)?;
        }
        (first..=self.last_xid).map(|xid| read(&self.answer_to(xid)?, Reader::text)).collect()
    }

    /// Deletes a node, whatever its version.
    pub fn delete(&mut self, path: &str) -> Result<(), Failure> {
        self.call(opcode::DELETE, &Writer::default().buffer(path.as_bytes()).int(-1)).map(drop)
    }

    /// The names of a node's children, in the order of the server.
    pub fn children(&mut self, path: &str, watch: bool) -> Result<Vec<String>, Failure> {
        let answer =
            self.call(opcode::GET_CHILDREN, &Writer::default().buffer(path.as_bytes()).boolean(watch))?;
        read(&answer, |reader| (0..reader.int()?).map(|_| reader.text()).collect())
    }

    /// How many nodes are below a node. Servers before 3.6 do not know this request.
    pub fn count(&mut self, path: &str) -> Result<i32, Failure> {
        read(
            &self.call(opcode::GET_ALL_CHILDREN_NUMBER, &Writer::default().buffer(path.as_bytes()))?,
            Reader::int,
        )
    }

    /// A node's data and metadata.
    pub fn data(&mut self, path: &str, watch: bool) -> Result<(Vec<u8>, Stat), Failure> {
        let answer =
            self.call(opcode::GET_DATA, &Writer::default().buffer(path.as_bytes()).boolean(watch))?;
        read(&answer, |reader| Some((reader.buffer()?.to_vec(), Stat::read(reader)?)))
    }

    /// A node's metadata, or `None` if it does not exist.
    pub fn exists(&mut self, path: &str, watch: bool) -> Result<Option<Stat>, Failure> {
        match self.call(opcode::EXISTS, &Writer::default().buffer(path.as_bytes()).boolean(watch)) {
            Ok(answer) => read(&answer, Stat::read).map(Some),
            Err(Failure::Server(code::NO_NODE)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Replaces a node's data, whatever its version.
    pub fn set(&mut self, path: &str, data: &[u8]) -> Result<Stat, Failure> {
        let body = Writer::default().buffer(path.as_bytes()).buffer(data).int(-1);
        let answer = self.call(opcode::SET_DATA, &body)?;
        read(&answer, Stat::read)
    }

    /// Waits until this server has caught up with the leader.
    pub fn sync(&mut self, path: &str) -> Result<(), Failure> {
        self.call(opcode::SYNC, &Writer::default().buffer(path.as_bytes())).map(drop)
    }

    /// Sends a ping, which also keeps the session alive.
    pub fn ping(&mut self) -> Result<(), Failure> {
        self.send(xid::PING, opcode::PING, &[])?;
        self.answer_to(xid::PING).map(drop)
    }

    /// The next watch event, or `None` if `until` comes first.
    pub fn event(&mut self, until: Instant) -> io::Result<Option<Event>> {
        while self.events.is_empty() {
            let Some(frame) = self.frame(until)? else { return Ok(None) };
            self.keep_event(&frame);
        }
        Ok(self.events.pop_front())
    }

    /// Ends the session on the server, and with it all its ephemeral nodes.
    pub fn close(mut self) -> Result<(), Failure> {
        let ended = self.call(opcode::CLOSE_SESSION, &Writer::default()).map(drop);
        let _ = self.stream.shutdown(Shutdown::Both);
        match ended {
            // A follower may hang up instead of answering; the session is gone all the same.
            Err(Failure::Link(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            other => other,
        }
    }

    /// Requests the end of the session without waiting for it.
    pub(crate) fn farewell(mut self) {
        self.last_xid += 1;
        let _ = self.send(self.last_xid, opcode::CLOSE_SESSION, &[]);
    }

    fn call(&mut self, operation: i32, body: &Writer) -> Result<Vec<u8>, Failure> {
        self.last_xid += 1;
        self.send(self.last_xid, operation, &body.0)?;
        self.answer_to(self.last_xid)
    }

    fn send(&mut self, xid: i32, operation: i32, body: &[u8]) -> io::Result<()> {
        let mut message = Writer::default().int(xid).int(operation);
        message.0.extend(body);
        self.stream.set_write_timeout(Some(self.patience))?;
        self.stream.write_all(&message.framed())
    }

    /// Reads until the answer to `wanted`, and keeps the watch events on the way. Returns what follows its header.
    fn answer_to(&mut self, wanted: i32) -> Result<Vec<u8>, Failure> {
        let until = Instant::now() + self.patience;
        loop {
            let frame = self.frame(until)?.ok_or_else(|| io::Error::from(io::ErrorKind::TimedOut))?;
            let mut reader = Reader(&frame);
            let header = (reader.int(), reader.long(), reader.int());
            let (Some(xid), Some(_), Some(error)) = header else {
                return Err(Failure::Link(io::ErrorKind::InvalidData.into()));
            };
            if xid == wanted {
                return if error == code::OK { Ok(reader.0.to_vec()) } else { Err(Failure::Server(error)) };
            }
            self.keep_event(&frame);
        }
    }

    fn keep_event(&mut self, frame: &[u8]) {
        let mut reader = Reader(frame);
        if reader.int() == Some(xid::WATCH_EVENT) && reader.take(12).is_some() {
            let kind = reader.int();
            let _state = reader.int();
            if let (Some(kind), Some(path)) = (kind, reader.text()) {
                self.events.push_back(Event { kind, path });
            }
        }
    }

    fn frame(&mut self, until: Instant) -> io::Result<Option<Vec<u8>>> {
        read_frame(&mut self.stream, &mut self.incoming, until)
    }
}

/// The next whole frame, or `None` if `until` comes first. What was read of it so far is kept in `incoming`.
pub fn read_frame(
    stream: &mut TcpStream,
    incoming: &mut Vec<u8>,
    until: Instant,
) -> io::Result<Option<Vec<u8>>> {
    loop {
        let mut reader = Reader(incoming);
        if let Some(length) = reader.int() {
            let length = usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?;
            if let Some(frame) = reader.take(length) {
                let frame = frame.to_vec();
                incoming.drain(..4 + length);
                return Ok(Some(frame));
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        let mut chunk = [0; 16384];
        match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => incoming.extend(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Ends another client's session: takes it over, as its owner would on a reconnect, and closes it.
///
/// [`Proxy::session`](crate::Proxy::session) knows the password. Returns `false` if the session was already gone.
pub fn try_expire(address: SocketAddr, session: i64, password: &[u8]) -> Result<bool, Failure> {
    match Connection::attach(address, session, password, Duration::from_secs(30)) {
        Ok(connection) => connection.close().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The fields after the header of a request to create a node that anybody may use.
pub fn creation(path: &[u8], data: &[u8], flags: i32) -> Writer {
    // One access list entry: every right (31) for world:anyone.
    let access = Writer::default().int(1).int(31).buffer(b"world").buffer(b"anyone").0;
    let mut body = Writer::default().buffer(path).buffer(data);
    body.0.extend(access);
    body.int(flags)
}

fn read<'a, T>(answer: &'a [u8], parse: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Result<T, Failure> {
    parse(&mut Reader(answer)).ok_or_else(|| Failure::Link(io::ErrorKind::InvalidData.into()))
}
