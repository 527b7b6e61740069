//! The part of an ensemble's server that a single server does not have: other servers decide what is done, and in which
//! order.

use std::time::Duration;

use super::{Moment, Session, World};
use crate::wire::jute::{Malformed, Reader, Writer};
use crate::wire::kind::Kind;

/// Numbers from here on are not real connections. They stand for sessions whose clients are connected to other servers.
const STAND_INS: u64 = 1 << 40;

/// The first message of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Greeting {
    /// The number of the last transaction that it has seen.
    pub(crate) seen: i64,
    pub(crate) wanted: Duration,
    /// 0 for a new session.
    pub(crate) session: i64,
}

impl Greeting {
    pub(crate) fn read(frame: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(frame);
        let (_protocol, seen, wanted, session) =
            (reader.int()?, reader.long()?, reader.int()?, reader.long()?);
        let wanted = Duration::from_millis(u64::try_from(wanted).unwrap_or(0));
        Ok(Self { seen, wanted, session })
    }
}

impl World {
    /// The timeout that a session gets from this server if it asks for this one.
    pub(crate) fn granted(&self, wanted: Duration) -> Duration {
        let (shortest, longest) = self.settings.session_timeouts;
        wanted.clamp(shortest, longest)
    }

    /// A session has been opened, here or elsewhere.
    pub(crate) fn know(&mut self, session: i64, timeout: Duration) {
        let new = Session { password: Vec::new(), timeout, expires: Duration::MAX, connection: None };
        self.sessions.entry(session).or_insert(new);
    }

    /// Whether the client of a session is connected here.
    pub(crate) fn is_connected(&self, session: i64) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.connection.is_some())
    }

    /// The client of a session is connected here from now on.
    pub(crate) fn attach(&mut self, connection: u64, session: i64, timeout: Duration) {
        self.know(session, timeout);
        let former = self.sessions.get_mut(&session).and_then(|there| there.connection.replace(connection));
        if let Some(former) = former.filter(|former| *former != connection) {
            self.close(former);
            self.sessions.entry(session).and_modify(|there| there.connection = Some(connection));
        }
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.session = Some(session);
        }
        self.welcome(connection, session, timeout);
    }

    /// The session that a client wants to continue is over.
    pub(crate) fn turn_away(&mut self, connection: u64) {
        self.welcome(connection, 0, Duration::ZERO);
        self.close(connection);
    }

    fn welcome(&mut self, connection: u64, session: i64, timeout: Duration) {
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let frame = Writer::default().int(0).int(millis).long(session).buffer(Some(&[7; 16])).boolean(false);
        self.send(connection, Kind::Connect, None, frame);
    }

    /// The refusal of a request that was not even tried.
    pub(crate) fn refuse(&mut self, connection: u64, xid: i32, code: i32) {
        let frame = Writer::default().int(xid).long(self.zxid).int(code);
        self.send(connection, Kind::Other, None, frame);
    }

    /// Applies a request that a session has sent to another server.
    pub(crate) fn follow(&mut self, moment: Moment, session: i64, frame: &[u8]) {
        let stand_in = STAND_INS + u64::try_from(session).unwrap_or_default();
        self.connect(moment, stand_in, ([127, 0, 0, 1], 0).into());
        if let Some(connection) = self.connections.get_mut(&stand_in) {
            connection.session = Some(session);
        }
        let here = self.sessions.get(&session).and_then(|session| session.connection);
        self.receive(moment, stand_in, frame);
        // If the client has left a connection here, that ends with the session.
        here.filter(|_| !self.sessions.contains_key(&session)).into_iter().for_each(|here| self.close(here));
        self.disconnect(stand_in);
        self.effects.retain(|effect| effect.connection() < STAND_INS);
    }

    /// A new epoch begins, with its own numbers.
    pub(crate) fn begin_epoch(&mut self, epoch: i64) {
        self.zxid = epoch << 32;
    }

    /// Deletes a node without a request, if nothing is below it.
    pub(crate) fn remove(&mut self, moment: Moment, path: &str) {
        if self.tree.node(path).is_some_and(|node| node.children.is_empty()) {
            self.transaction(moment, 0, |transaction| transaction.end_node(path));
        }
    }
}
