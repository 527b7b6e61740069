//! One server of a simulated ensemble: the server in memory, without its sockets and its clock.
//!
//! Other servers decide what is done, and in which order: they open and end sessions, and a request may come
//! from a client of theirs. Time is a parameter.

use std::time::Duration;

use crate::state::settings::Settings;
use crate::state::tree::listing;
use crate::state::world::{self, Moment, Session, World};
use crate::wire::access;
use crate::wire::jute::{Reader, Writer};
use crate::wire::kind::Kind;

/// Numbers from here on are not real connections. They stand for sessions whose clients are connected to other servers.
const STAND_INS: u64 = 1 << 40;

/// An action on a connection: something to send, or its end.
pub(crate) type Effect = (u64, Option<Vec<u8>>);

/// The server.
#[derive(Debug)]
pub(crate) struct Replica(World);

impl Replica {
    /// A server that has just been started.
    pub(crate) fn new(settings: Settings) -> Self {
        Self(World::new(settings, moment(Duration::ZERO)))
    }

    /// The actions that are due, in order.
    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        let effects = self.0.effects().into_iter();
        effects
            .map(|effect| match effect {
                world::Effect::Send { connection, frame, .. } => (connection, Some(frame)),
                world::Effect::Close { connection } => (connection, None),
            })
            .collect()
    }

    /// A new connection.
    pub(crate) fn connect(&mut self, now: Duration, connection: u64) {
        self.0.connect(moment(now), connection, ([127, 0, 0, 1], 0).into());
    }

    /// A connection is gone.
    pub(crate) fn disconnect(&mut self, connection: u64) {
        self.0.disconnect(connection);
    }

    /// A message has come, without its length.
    pub(crate) fn receive(&mut self, now: Duration, connection: u64, frame: &[u8]) {
        self.0.receive(moment(now), connection, frame);
    }

    /// Sets the range of session timeouts that this server grants from now on.
    pub(crate) fn limit(&mut self, shortest: Duration, longest: Duration) {
        self.0.settings.session_timeouts = (shortest, longest);
    }

    /// The session for which the first message of a client asks, 0 for a new one, and the timeout that it gets here; `None` if
    /// the client has seen more than this server has, or the message makes no sense.
    pub(crate) fn greeting(&self, frame: &[u8]) -> Option<(i64, Duration)> {
        let mut reader = Reader(frame);
        let _protocol = reader.int().ok()?;
        let (seen, wanted, session) = (reader.long().ok()?, reader.int().ok()?, reader.long().ok()?);
        let (shortest, longest) = self.0.settings.session_timeouts;
        let wanted = Duration::from_millis(u64::try_from(wanted).unwrap_or(0));
        (seen <= self.0.zxid).then(|| (session, wanted.clamp(shortest, longest)))
    }

    /// A session has been opened, here or elsewhere.
    pub(crate) fn open(&mut self, session: i64, timeout: Duration) {
        self.0.next_zxid();
        self.know(session, timeout);
    }

    fn know(&mut self, session: i64, timeout: Duration) {
        let new = Session { password: Vec::new(), timeout, expires: Duration::MAX, connection: None };
        self.0.sessions.entry(session).or_insert(new);
    }

    /// Whether the client of a session is connected here.
    pub(crate) fn is_connected(&self, session: i64) -> bool {
        self.0.sessions.get(&session).is_some_and(|session| session.connection.is_some())
    }

    /// The client of a session is connected here from now on.
    pub(crate) fn attach(&mut self, connection: u64, session: i64, timeout: Duration) {
        self.know(session, timeout);
        let there = self.0.sessions.get_mut(&session);
        let former = there.and_then(|there| there.connection.replace(connection));
        if let Some(former) = former.filter(|former| *former != connection) {
            self.0.close(former);
            self.0.sessions.entry(session).and_modify(|there| there.connection = Some(connection));
        }
        if let Some(connection) = self.0.connections.get_mut(&connection) {
            connection.session = Some(session);
        }
        self.welcome(connection, session, timeout);
    }

    /// The session that a client wants to continue is over.
    pub(crate) fn turn_away(&mut self, connection: u64) {
        self.welcome(connection, 0, Duration::ZERO);
        self.0.close(connection);
    }

    fn welcome(&mut self, connection: u64, session: i64, timeout: Duration) {
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let frame = Writer::default().int(0).int(millis).long(session).buffer(Some(&[7; 16])).boolean(false);
        self.0.send(connection, Kind::Connect, None, frame);
    }

    /// The refusal of a request that was not even tried.
    pub(crate) fn refuse(&mut self, connection: u64, xid: i32, code: i32) {
        let frame = Writer::default().int(xid).long(self.0.zxid).int(code);
        self.0.send(connection, Kind::Other, None, frame);
    }

    /// Applies a request that a session has sent to another server.
    pub(crate) fn follow(&mut self, now: Duration, session: i64, frame: &[u8]) {
        let stand_in = STAND_INS + u64::try_from(session).unwrap_or_default();
        self.connect(now, stand_in);
        if let Some(connection) = self.0.connections.get_mut(&stand_in) {
            connection.session = Some(session);
        }
        let here = self.0.sessions.get(&session).and_then(|session| session.connection);
        self.receive(now, stand_in, frame);
        // If the client has left a connection here, that ends with the session.
        if let Some(here) = here.filter(|_| !self.0.sessions.contains_key(&session)) {
            self.0.close(here);
        }
        self.disconnect(stand_in);
        self.0.effects.retain(|effect| {
            let (world::Effect::Send { connection, .. } | world::Effect::Close { connection }) = effect;
            *connection < STAND_INS
        });
    }

    /// A new epoch begins, with its own numbers.
    pub(crate) fn begin_epoch(&mut self, epoch: i64) {
        self.0.zxid = epoch << 32;
    }

    /// Ends a session, with its nodes and its connection.
    pub(crate) fn expire(&mut self, now: Duration, session: i64) {
        self.0.expire(moment(now), session);
    }

    /// Creates a node without a request.
    pub(crate) fn place(&mut self, path: &str) {
        let access = [access::Entry::anyone(access::right::ALL)].into();
        self.0.transaction(moment(Duration::ZERO), 0, |transaction| transaction.place(path, access));
    }

    /// Deletes a node without a request, if nothing is below it.
    pub(crate) fn remove(&mut self, now: Duration, path: &str) {
        if self.0.tree.node(path).is_some_and(|node| node.children.is_empty()) {
            self.0.transaction(moment(now), 0, |transaction| transaction.end_node(path));
        }
    }

    /// The paths of all nodes, except the servers' own.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        listing(&self.0.tree, "/").into_keys()
    }

    /// The paths of a node's children, with the transactions that last wrote them.
    pub(crate) fn children(&self, path: &str) -> impl Iterator<Item = (String, i64)> {
        let children = self.0.tree.node(path).into_iter().flat_map(|node| &node.children);
        let paths = children.map(move |name| format!("{path}/{name}"));
        paths.filter_map(|path| self.0.tree.node(&path).map(|node| (path, node.mzxid)))
    }

    /// The transaction that created a node.
    pub(crate) fn created(&self, path: &str) -> Option<i64> {
        self.0.tree.node(path).map(|node| node.czxid)
    }

    /// The number of watches.
    pub(crate) fn watches(&self) -> usize {
        self.0.watches.count()
    }

    /// Containers that are due to be reaped.
    pub(crate) fn to_reap(&self, now: Duration) -> Vec<String> {
        self.0.tree.to_reap(moment(now).wall)
    }

    /// How many nodes were ever deleted, for [`deleted_since`](Self::deleted_since).
    pub(crate) fn deleted(&self) -> u64 {
        self.0.tree.graveyard.count()
    }

    /// The nodes that were deleted since that count, parents before their children.
    pub(crate) fn deleted_since(&self, deleted: u64) -> Vec<String> {
        self.0.tree.graveyard.since(deleted)
    }

    /// Puts back the node that was deleted last at this path, even if its session is over; `false` if that is impossible.
    pub(crate) fn bring_back(&mut self, path: &str) -> bool {
        self.0.tree.bring_back(path, |_| true)
    }

    /// Takes away a node that was brought back.
    pub(crate) fn hide(&mut self, path: &str) {
        let tree = &mut self.0.tree;
        let there = path.rsplit_once('/').filter(|_| tree.node(path).is_some());
        if let Some((parent, name)) = there {
            tree.known_mut(parent).children.remove(name);
            tree.take(path);
        }
    }
}

fn moment(elapsed: Duration) -> Moment {
    let millis = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
    Moment { elapsed, wall: 1_700_000_000_000 + millis }
}
