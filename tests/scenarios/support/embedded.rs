//! A bare connection, and helpers for most tests of the embedded server.

use ground::wire;
use ground::wire::codec::{Reader, Writer};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub(crate) use crate::support::{SOON, settled, soon};
pub(crate) use ground::wire::codec::opcode as operation;
use zklock::{Client, ClientOptions};
use zklock_testkit::Server;

/// The shortest session of a server with ZooKeeper's own ticks.
pub(crate) const SESSION: Duration = Duration::from_secs(4);
/// How long to wait to see that nothing happens.
pub(crate) const A_WHILE: Duration = Duration::from_millis(100);

pub(crate) fn manual() -> Server {
    Server::builder().manual_clock().start().unwrap()
}

pub(crate) async fn client(server: &Server) -> Client {
    client_with(server, SESSION).await
}

pub(crate) async fn client_with(server: &Server, session: Duration) -> Client {
    let options = ClientOptions::new(&server.connect_string()).session_timeout(session);
    soon(Client::connect(options)).await.unwrap()
}

/// Waits for the nodes of a queue.
#[track_caller]
pub(crate) fn queue_of(server: &Server, path: &str, count: usize) -> Vec<String> {
    let nodes = server.wait_for_children(path, count, SOON);
    nodes.unwrap_or_else(|| panic!("no {count} nodes in {path}:\n{}", server.dump("/")))
}

/// The transaction id of a notification.
pub(crate) const EVENT: i32 = -1;

pub(crate) fn text(text: &str) -> Vec<u8> {
    Writer::default().buffer(text.as_bytes()).0
}

pub(crate) fn creation(path: &str, flags: i32) -> Vec<u8> {
    wire::creation(path.as_bytes(), b"data", flags).0
}

/// The fields after the header of a transaction of these requests.
pub(crate) fn transaction(requests: &[(i32, Vec<u8>)]) -> Vec<u8> {
    let head = |operation: i32, is_last: bool| {
        [&operation.to_be_bytes()[..], &[u8::from(is_last)], &[255; 4]].concat()
    };
    let requests =
        requests.iter().flat_map(|(operation, body)| [head(*operation, false), body.clone()].concat());
    requests.chain(head(-1, true)).collect()
}

/// The fields after the header of a request to read something, perhaps with a watch.
pub(crate) fn reading(path: &str, watch: bool) -> Vec<u8> {
    [text(path), vec![u8::from(watch)]].concat()
}

/// An answer, or a notification.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) xid: i32,
    pub(crate) error: i32,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The first text in it.
    pub(crate) fn text(&self) -> String {
        Reader(&self.body).text().unwrap()
    }
}

/// A connection that does nothing by itself: requests go out and answers come in as the test says.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    pub(crate) session: i64,
    pub(crate) password: Vec<u8>,
    pub(crate) timeout: Duration,
    incoming: Vec<u8>,
}

impl Raw {
    /// A connection that has said nothing yet.
    pub(crate) fn silent(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, SOON).unwrap();
        stream.set_nodelay(true).unwrap();
        let (session, password, timeout) = (0, vec![0; 16], Duration::ZERO);
        Self { stream, session, password, timeout, incoming: Vec::new() }
    }

    pub(crate) fn open(server: &Server) -> Self {
        Self::open_for(server, SESSION)
    }

    pub(crate) fn open_for(server: &Server, timeout: Duration) -> Self {
        Self::attach(server, timeout, 0, &[0; 16]).unwrap()
    }

    /// Moves a session to this connection. The error is the server's refusal.
    pub(crate) fn attach(
        server: &Server,
        timeout: Duration,
        session: i64,
        password: &[u8],
    ) -> io::Result<Self> {
        let mut raw = Self::silent(server.address());
        raw.greet(timeout, session, password);
        raw.greeted()?;
        Ok(raw)
    }

    /// The session on a new connection.
    pub(crate) fn again(&self, server: &Server) -> io::Result<Self> {
        Self::attach(server, self.timeout, self.session, &self.password)
    }

    pub(crate) fn greet(&mut self, timeout: Duration, session: i64, password: &[u8]) {
        let hello = Writer::default().int(0).long(0).int(timeout.as_millis() as i32).long(session);
        self.frame_out(&hello.buffer(password).boolean(false).0);
    }

    /// Reads the answer to the greeting.
    pub(crate) fn greeted(&mut self) -> io::Result<()> {
        let answer = self.frame_in(SOON)?.ok_or(io::ErrorKind::TimedOut)?;
        let millis = i32::from_be_bytes(answer[4..8].try_into().unwrap());
        self.session = i64::from_be_bytes(answer[8..16].try_into().unwrap());
        self.password = answer[20..36].to_vec();
        self.timeout = Duration::from_millis(millis as u64);
        if millis == 0 { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }

    pub(crate) fn send(&mut self, xid: i32, operation: i32, body: &[u8]) {
        self.frame_out(&[xid.to_be_bytes().as_slice(), &operation.to_be_bytes(), body].concat());
    }

    /// Sends a frame. If the server has closed the connection, the frame is lost, and the next read shows that.
    pub(crate) fn frame_out(&mut self, frame: &[u8]) {
        let _ = self.stream.write_all(&Writer::default().buffer(frame).0);
    }

    /// The next answer, or notification.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Answer {
        self.answer_within(SOON).expect("an answer")
    }

    /// The next answer or notification; `None` if none comes by `bound`, or the connection has ended.
    pub(crate) fn answer_within(&mut self, bound: Duration) -> Option<Answer> {
        let frame = self.frame_in(bound).ok()??;
        let int = |at: usize| i32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        Some(Answer { xid: int(0), error: int(12), body: frame[16..].to_vec() })
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, xid: i32, operation: i32, body: &[u8]) -> Answer {
        self.send(xid, operation, body);
        let answer = self.answer();
        assert_eq!(answer.xid, xid);
        answer
    }

    /// Whether the server has closed the connection, or does so within `bound`, without another word.
    pub(crate) fn is_closed(&mut self, bound: Duration) -> bool {
        self.frame_in(bound).is_err()
    }

    /// Asserts that the server answers on this connection.
    #[track_caller]
    pub(crate) fn is_served(&mut self) {
        assert_eq!(self.ask(-2, operation::PING, &[]).error, 0);
    }

    fn frame_in(&mut self, bound: Duration) -> io::Result<Option<Vec<u8>>> {
        wire::read_frame(&mut self.stream, &mut self.incoming, Instant::now() + bound)
    }
}
