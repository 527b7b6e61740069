//! The server without its sockets: sessions, connections and the tree, and what to send when a message has come.
//!
//! It has no clock, no threads and no sockets: time is a parameter, and it returns what should be sent. So it knows
//! nothing of faults, which strike between it and the sockets, and any input can be fed to it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::time::Duration;

use crate::state::connection::{Connection, Last};
use crate::state::node::Node;
use crate::state::settings::Settings;
use crate::state::transaction::{Context, Transaction};
use crate::state::tree::Tree;
use crate::state::watches::{Change, EventType, Mode, Watches};
use crate::wire::access::{self, Id, right};
use crate::wire::code::{Code, Operation, opcode, xid};
use crate::wire::jute::{Malformed, Reader, Writer, length};
use crate::wire::kind::Kind;
use crate::wire::request::{self, Look, Write};

/// The longest answer to a multi of reads.
const MAX_ANSWER: usize = 16 << 20;

type Body = Result<Writer, Code>;

/// A point in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Since the start.
    pub(crate) elapsed: Duration,
    /// The wall clock, in ms.
    pub(crate) wall: i64,
}

/// An action on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Send { connection: u64, kind: Kind, path: Option<String>, frame: Vec<u8> },
    Close { connection: u64 },
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) password: Vec<u8>,
    pub(crate) timeout: Duration,
    /// When it ends unless the server hears from it.
    pub(crate) expires: Duration,
    pub(crate) connection: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) tree: Tree,
    pub(crate) watches: Watches,
    pub(crate) sessions: BTreeMap<i64, Session>,
    pub(crate) connections: BTreeMap<u64, Connection>,
    /// The number of the last transaction.
    pub(crate) zxid: i64,
    /// Numbers after that one, taken by something that was no transaction.
    burnt: i64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    next_session: i64,
    /// The secret for the passwords of sessions.
    secret: RandomState,
    next_reaping: Duration,
    pub(crate) effects: Vec<Effect>,
}

impl World {
    pub(crate) fn new(settings: Settings, moment: Moment) -> Self {
        let next_reaping = moment.elapsed.saturating_add(settings.container_check);
        Self {
            tree: Tree::new(settings.profile),
            settings,
            watches: Watches::default(),
            sessions: BTreeMap::new(),
            connections: BTreeMap::new(),
            zxid: 0,
            burnt: 0,
            received: 0,
            sent: 0,
            // From the clock, as in ZooKeeper, so that ids from before a restart are not reused.
            next_session: (moment.wall << 24) >> 8 & i64::MAX,
            secret: RandomState::new(),
            next_reaping,
            effects: Vec::new(),
        }
    }

    /// The actions that are due, in order. Call it after each of the other methods.
    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// A new connection.
    pub(crate) fn connect(&mut self, moment: Moment, connection: u64, peer: SocketAddr) {
        let shown = vec![Id::new("ip", &peer.ip().to_string())];
        let last = Last { operation: "NA", xid: 0, zxid: -1, answered: Duration::ZERO };
        let new = Connection { session: None, shown, peer, since: moment.wall, received: 0, sent: 0, last };
        self.connections.insert(connection, new);
    }

    /// A connection is gone; its session lives on for a while.
    pub(crate) fn disconnect(&mut self, connection: u64) {
        self.watches.remove_watcher(connection);
        let Some(gone) = self.connections.remove(&connection) else { return };
        if let Some(session) = gone.session.and_then(|session| self.sessions.get_mut(&session)) {
            if session.connection == Some(connection) {
                session.connection = None;
            }
        }
    }

    /// A four-letter word has come.
    pub(crate) fn hear_word(&mut self, connection: u64) {
        if let Some(from) = self.connections.get_mut(&connection) {
            from.received += 1;
        }
    }

    /// A message has come.
    pub(crate) fn receive(&mut self, moment: Moment, connection: u64, frame: &[u8]) {
        self.received += 1;
        let Some(from) = self.connections.get_mut(&connection) else { return };
        from.received += 1;
        from.last.answered = moment.elapsed;
        let session = from.session;
        let outcome = match session {
            None => self.greet(moment, connection, &mut Reader(frame)),
            Some(session) => self.request(moment, connection, session, &mut Reader(frame)),
        };
        if outcome.is_err() {
            self.close(connection);
        }
    }

    /// Time has passed: ends everything that is over.
    pub(crate) fn tick(&mut self, moment: Moment) {
        let is_over = |session: &Session| session.expires <= moment.elapsed;
        let over: Vec<i64> =
            self.sessions.iter().filter(|(_, session)| is_over(session)).map(|(&id, _)| id).collect();
        for session in over {
            self.expire(moment, session);
        }
        if self.next_reaping <= moment.elapsed {
            self.next_reaping = moment.elapsed.saturating_add(self.settings.container_check);
            for path in self.tree.to_reap(moment.wall) {
                self.transaction(moment, 0, |transaction| transaction.end_node(&path));
            }
        }
    }

    /// The latest time for the next [`World::tick`].
    pub(crate) fn next_tick(&self) -> Duration {
        let first = self.sessions.values().map(|session| session.expires).min();
        first.map_or(self.next_reaping, |first| first.min(self.next_reaping))
    }

    /// The clock is put forward. Clients that are connected and not frozen count as heard from during all that time.
    pub(crate) fn leap(&mut self, by: Duration, is_well: impl Fn(i64) -> bool) {
        for (id, session) in &mut self.sessions {
            if session.connection.is_some() && is_well(*id) {
                session.expires = session.expires.saturating_add(by);
            }
        }
    }

    /// Ends a session, with its nodes and its connection.
    pub(crate) fn expire(&mut self, moment: Moment, session: i64) -> bool {
        let Some(ended) = self.sessions.remove(&session) else { return false };
        self.end_nodes_of(moment, session);
        if let Some(connection) = ended.connection {
            self.close(connection);
        }
        true
    }

    /// A message has come whose deletions will be lost once they are answered: those nodes then exist again, as they
    /// were.
    pub(crate) fn receive_and_bring_back(&mut self, moment: Moment, connection: u64, frame: &[u8]) {
        let before = self.tree.graveyard.count();
        self.receive(moment, connection, frame);
        for path in self.tree.graveyard.since(before) {
            self.bring_back(&path);
        }
    }

    /// Puts back the node that was deleted last at this path, and tells no client; `false` if that is impossible.
    pub(crate) fn bring_back(&mut self, path: &str) -> bool {
        self.tree.bring_back(path, |session| self.sessions.contains_key(&session))
    }

    /// Changes the tree in a transaction of its own, and notifies watchers.
    pub(crate) fn transaction<T>(
        &mut self,
        moment: Moment,
        connection: u64,
        work: impl FnOnce(&mut Transaction<'_>) -> T,
    ) -> T {
        self.attempt(moment, connection, |transaction| Ok::<_, std::convert::Infallible>(work(transaction)))
            .unwrap_or_else(|never| match never {})
    }

    /// Like [`World::transaction`], but undone if it fails. As in ZooKeeper, its number is used up anyway.
    fn attempt<T, E>(
        &mut self,
        moment: Moment,
        connection: u64,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.next_zxid();
        let by = self.connections.get(&connection);
        let context = Context {
            session: by.and_then(|by| by.session).unwrap_or(0),
            shown: by.map_or(&[], |by| &by.shown),
            zxid: self.zxid,
            time: moment.wall,
            settings: &self.settings,
        };
        let mut transaction = Transaction::new(&mut self.tree, context);
        let outcome = work(&mut transaction)?;
        for change in transaction.commit() {
            self.tell(&change);
        }
        Ok(outcome)
    }

    /// The number of a transaction, even of one that fails.
    pub(crate) fn next_zxid(&mut self) {
        self.zxid += 1 + std::mem::take(&mut self.burnt);
    }

    /// Sends an answer to a request.
    fn reply(&mut self, connection: u64, to: Asked, body: Body) {
        let code = body.as_ref().err().copied().unwrap_or(Code::Ok);
        if let Some(asker) = self.connections.get_mut(&connection) {
            let operation = Operation::of(to.operation);
            asker.last.operation = if code != Code::Ok && operation.is_write { "NA" } else { operation.word };
            asker.last.zxid = self.zxid;
            // Numbers below 0 do not belong to requests of the client.
            asker.last.xid = if to.xid < 0 { asker.last.xid } else { to.xid };
        }
        let head = Writer::default().int(to.xid).long(to.zxid.unwrap_or(self.zxid)).int(code as i32);
        self.send(connection, to.kind, to.path, head.and(body.unwrap_or_default()));
    }

    /// Closes a connection. Its session lives on for a while.
    pub(crate) fn close(&mut self, connection: u64) {
        self.effects.push(Effect::Close { connection });
        self.disconnect(connection);
    }

    /// Sends a watch event.
    fn notify(&mut self, connection: u64, event: EventType, path: &str) {
        let connected = 3; // the state of the session as the client is to see it
        let head = Writer::default().int(xid::EVENT).long(-1).int(0);
        let frame = head.int(event as i32).int(connected).text(path);
        self.send(connection, Kind::Event, Some(path.to_owned()), frame);
    }

    fn tell(&mut self, change: &Change) {
        for watcher in self.watches.fire(change) {
            let shown = self.connections.get(&watcher).map(|watcher| &watcher.shown[..]);
            let may_know = !self.settings.profile.hides_events()
                || access::check(&change.access, right::READ, shown.unwrap_or_default()).is_ok();
            if may_know {
                self.notify(watcher, change.event, &change.path);
            }
        }
    }

    pub(crate) fn send(&mut self, connection: u64, kind: Kind, path: Option<String>, frame: Writer) {
        self.sent += 1;
        if let Some(to) = self.connections.get_mut(&connection) {
            to.sent += 1;
        }
        self.effects.push(Effect::Send { connection, kind, path, frame: frame.framed() });
    }

    /// The first message of a connection: a new session, or one that moves here.
    fn greet(&mut self, moment: Moment, connection: u64, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let (_protocol, seen, wanted, session) =
            (reader.int()?, reader.long()?, reader.int()?, reader.long()?);
        let password = reader.buffer()?.unwrap_or_default();
        // Clients before 3.4 do not send this, and do not expect it in the answer.
        let knows_read_only = reader.boolean().is_ok();
        if seen > self.zxid {
            // The client has seen more than this server has, so it belongs to another one.
            return Err(Malformed);
        }
        let (shortest, longest) = self.settings.session_timeouts;
        let timeout = Duration::from_millis(u64::try_from(wanted).unwrap_or(0)).clamp(shortest, longest);
        // A client whose session cannot be continued there gets a new one.
        let session = if self.settings.profile.resumes_sessions() { session } else { 0 };
        let granted = if session == 0 {
            Some(self.open(moment, timeout))
        } else {
            if let Some(former) = self.sessions.get(&session).and_then(|session| session.connection) {
                self.close(former);
            }
            self.sessions.get(&session).filter(|there| there.password == password).map(|_| session)
        };
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let (id, password) = match granted.and_then(|id| Some((id, self.sessions.get(&id)?))) {
            Some((id, session)) => (id, session.password.clone()),
            None => (0, vec![0; 16]),
        };
        let frame =
            Writer::default().int(0).int(if id == 0 { 0 } else { millis }).long(id).buffer(Some(&password));
        let frame = if knows_read_only { frame.boolean(false) } else { frame };
        self.send(connection, Kind::Connect, None, frame);
        if id == 0 {
            return Err(Malformed);
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            (session.connection, session.timeout) = (Some(connection), timeout);
        }
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.session = Some(id);
            (connection.last.operation, connection.last.zxid) = ("SESS", self.zxid);
        }
        self.touch(moment, id);
        Ok(())
    }

    fn open(&mut self, moment: Moment, timeout: Duration) -> i64 {
        self.next_zxid();
        let id = self.next_session;
        self.next_session += 1;
        let half = |salt: u8| self.secret.hash_one((id, salt)).to_be_bytes();
        let password = [half(0), half(1)].concat();
        let session =
            Session { password, timeout, expires: moment.elapsed.saturating_add(timeout), connection: None };
        self.sessions.insert(id, session);
        id
    }

    /// The server has heard from a session. As in ZooKeeper, it ends on a whole tick.
    fn touch(&mut self, moment: Moment, session: i64) {
        let Some(session) = self.sessions.get_mut(&session) else { return };
        let tick = self.settings.tick.as_millis().max(1);
        let end = (moment.elapsed.saturating_add(session.timeout).as_millis() / tick + 1) * tick;
        session.expires = Duration::from_millis(u64::try_from(end).unwrap_or(u64::MAX));
    }

    fn end_nodes_of(&mut self, moment: Moment, session: i64) {
        let paths: Vec<String> = self.tree.ephemerals(session).cloned().collect();
        self.transaction(moment, 0, |transaction| paths.iter().for_each(|path| transaction.end_node(path)));
    }

    fn request(
        &mut self,
        moment: Moment,
        connection: u64,
        session: i64,
        reader: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        let (xid, operation) = (reader.int()?, reader.int()?);
        let (kind, path) = request::aim(operation, *reader);
        let mut asked = Asked { xid, operation, kind, path, zxid: None };
        self.touch(moment, session);
        match operation {
            opcode::AUTH => return self.authenticate(connection, asked, reader),
            opcode::SASL => {
                // A real server that is not configured for it does the same: the client learns nothing, and goes on
                // without it.
                reader.buffer()?;
                asked.zxid = Some(0);
                self.reply(connection, asked, Ok(Writer::default().buffer(None)));
                return Ok(());
            }
            _ => {}
        }
        let profile = self.settings.profile;
        if !profile.knows(operation) {
            if !profile.answers_the_unknown() {
                return Err(Malformed);
            }
            asked.zxid = Some(-1);
            self.reply(connection, asked, Err(Code::Unimplemented));
            return Err(Malformed);
        }
        if operation == opcode::CLOSE_SESSION {
            self.end_nodes_of(moment, session);
            self.sessions.remove(&session);
            self.reply(connection, asked, Ok(Writer::default()));
            self.close(connection);
            return Ok(());
        }
        if operation == opcode::PING {
            asked.xid = xid::PING;
        }
        let body = match self.answer(moment, connection, operation, reader) {
            Ok(body) => body,
            Err(Malformed) if !profile.answers_the_unknown() => return Err(Malformed),
            Err(Malformed) => {
                if Operation::of(operation).is_write {
                    self.next_zxid();
                }
                Err(Code::MarshallingError)
            }
        };
        self.reply(connection, asked, body);
        Ok(())
    }

    fn authenticate(
        &mut self,
        connection: u64,
        asked: Asked,
        reader: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        let (_kind, scheme, proof) = (reader.int()?, reader.text()?, reader.buffer()?.unwrap_or_default());
        let asked = Asked { zxid: Some(0), ..asked };
        let known = match scheme.as_deref() {
            Some("digest") => Some(Id::digest(proof)),
            // The address is already known.
            Some("ip") => None,
            _ => {
                self.reply(connection, asked, Err(Code::AuthFailed));
                return Err(Malformed);
            }
        };
        if let Some(there) = self.connections.get_mut(&connection) {
            let known = known.filter(|id| !there.shown.contains(id));
            there.shown.extend(known);
        }
        self.reply(connection, asked, Ok(Writer::default()));
        Ok(())
    }

    /// Reads the rest of a request, and carries it out.
    fn answer(
        &mut self,
        moment: Moment,
        connection: u64,
        operation: i32,
        reader: &mut Reader<'_>,
    ) -> Result<Body, Malformed> {
        let (profile, none) = (self.settings.profile, Writer::default());
        Ok(match operation {
            opcode::MULTI => match Write::read_multi(profile, reader)? {
                Some(writes) => self.multi(moment, connection, &writes),
                None => {
                    // It takes a number that no client sees before the next one.
                    self.burnt += 1;
                    Err(Code::MarshallingError)
                }
            },
            opcode::MULTI_READ => self.multi_read(connection, &Look::read_multi(profile, reader)?),
            opcode::GET_DATA | opcode::GET_CHILDREN | opcode::GET_CHILDREN_2 => {
                self.look(connection, &Look::read(operation, reader)?)
            }
            opcode::EXISTS => {
                let (path, watch) = (reader.some_text()?, reader.boolean()?);
                self.exists(connection, &path, watch)
            }
            opcode::GET_ACL => self.access_list(connection, &reader.some_text()?),
            opcode::SYNC => Ok(match reader.text()? {
                None => none.buffer(None),
                Some(path) => none.text(&path),
            }),
            opcode::PING => Ok(none),
            opcode::SET_WATCHES | opcode::SET_WATCHES_2 => {
                self.watch_again(connection, reader, operation == opcode::SET_WATCHES_2)?;
                Ok(none)
            }
            opcode::ADD_WATCH => {
                let (path, mode) = (reader.some_text()?, reader.int()?);
                self.add_watch(connection, &path, mode)
            }
            opcode::CHECK_WATCHES | opcode::REMOVE_WATCHES => {
                let (path, kind) = (reader.some_text()?, reader.int()?);
                let is_removal = operation == opcode::REMOVE_WATCHES;
                let is_path = is_removal || path.is_empty() || path.contains('/');
                let is_there = |watches: &mut Watches| match is_removal {
                    true => watches.remove(&path, kind, connection),
                    false => watches.contains(&path, kind),
                };
                match Watches::has_kind(kind) && is_path {
                    false => Err(Code::MarshallingError),
                    true if is_there(&mut self.watches) => Ok(none),
                    true => Err(Code::NoWatcher),
                }
            }
            opcode::GET_EPHEMERALS => Ok(self.ephemerals(connection, reader.text()?.as_deref())),
            opcode::GET_ALL_CHILDREN_NUMBER => {
                let path = reader.some_text()?;
                let count = |_: &Node| none.int(length(self.tree.count_below(&path)));
                self.readable(connection, &path, right::READ).map(count)
            }
            opcode::WHO_AM_I => {
                let shown = self.connections[&connection].shown.iter();
                Ok(none.list(shown, |writer, id| writer.text(&id.scheme).text(id.user())))
            }
            opcode::RECONFIG => {
                let _servers = (reader.text()?, reader.text()?, reader.text()?, reader.long()?);
                self.next_zxid();
                Err(Code::ReconfigDisabled)
            }
            opcode::SET_ACL => self.write(moment, connection, &Write::read_set_acl(reader)?),
            opcode::DELETE_CONTAINER => {
                // That is reserved for the server itself.
                self.next_zxid();
                Err(Code::BadArguments)
            }
            _ => self.write(moment, connection, &Write::read(operation, reader)?),
        })
    }

    fn write(&mut self, moment: Moment, connection: u64, write: &Write) -> Body {
        self.attempt(moment, connection, |transaction| transaction.write(write)).map(|(_, body)| body)
    }

    /// Does all of the operations or none. The answer has a result for each operation.
    fn multi(&mut self, moment: Moment, connection: u64, writes: &[Write]) -> Body {
        let outcome = self.attempt(moment, connection, |transaction| {
            let mut all = Vec::new();
            for (index, write) in writes.iter().enumerate() {
                all.push(transaction.write(write).map_err(|code| (index, code))?);
            }
            Ok(all)
        });
        let body = match outcome {
            Ok(all) => all.into_iter().fold(Writer::default(), |writer, (operation, body)| {
                writer.int(operation).boolean(false).int(0).and(body)
            }),
            Err((_, Code::MarshallingError)) => return Err(Code::MarshallingError),
            Err((failed, code)) => (0..writes.len()).fold(Writer::default(), |writer, index| {
                let code = match index.cmp(&failed) {
                    std::cmp::Ordering::Less => Code::Ok,
                    std::cmp::Ordering::Equal => code,
                    std::cmp::Ordering::Greater => Code::RuntimeInconsistency,
                };
                write_error(writer, code)
            }),
        };
        Ok(body.int(-1).boolean(true).int(-1))
    }

    /// A short request can ask for the same long node many times, so the answer is limited.
    fn multi_read(&mut self, connection: u64, looks: &[Look]) -> Body {
        let mut body = Writer::default();
        for look in looks {
            body = match self.look(connection, look) {
                Ok(found) => body.int(look.operation).boolean(false).int(0).and(found),
                Err(code) => write_error(body, code),
            };
            if body.length() > MAX_ANSWER {
                return Err(Code::MarshallingError);
            }
        }
        Ok(body.int(-1).boolean(true).int(-1))
    }

    fn look(&mut self, connection: u64, Look { operation, path, watch }: &Look) -> Body {
        let node = self.readable(connection, path, right::READ)?;
        let (body, add): (_, fn(&mut Watches, &str, u64)) = match *operation {
            opcode::GET_DATA => (Writer::default().buffer(node.data.as_deref()), Watches::watch_data),
            _ => {
                let names = Writer::default().list(node.children.iter(), |writer, name| writer.text(name));
                (names, Watches::watch_children)
            }
        };
        let body = if *operation == opcode::GET_CHILDREN { body } else { body.and(node.stat()) };
        if *watch {
            add(&mut self.watches, path, connection);
        }
        Ok(body)
    }

    /// A client can set a watch on a node that does not exist. No right is needed, as in the version that is imitated.
    fn exists(&mut self, connection: u64, path: &str, watch: bool) -> Body {
        if path.contains('\0') {
            return Err(Code::BadArguments);
        }
        if watch {
            self.watches.watch_data(path, connection);
        }
        Ok(self.tree.node(path).ok_or(Code::NoNode)?.stat())
    }

    fn access_list(&self, connection: u64, path: &str) -> Body {
        let node = self.readable(connection, path, right::READ | right::ADMIN)?;
        let may_see_all = self.readable(connection, path, right::ADMIN).is_ok();
        let body = Writer::default().list(node.access.iter(), |writer, entry| {
            if may_see_all { entry.write(writer) } else { entry.veiled().write(writer) }
        });
        Ok(body.and(node.stat()))
    }

    fn ephemerals(&self, connection: u64, prefix: Option<&str>) -> Writer {
        let session = self.connections[&connection].session.unwrap_or(0);
        let prefix = prefix.filter(|prefix| !matches!(prefix.trim(), "" | "/")).unwrap_or("");
        let all: Vec<_> = self.tree.ephemerals(session).filter(|path| path.starts_with(prefix)).collect();
        Writer::default().list(all.iter(), |writer, path| writer.text(path))
    }

    fn add_watch(&mut self, connection: u64, path: &str, mode: i32) -> Body {
        let mode = match mode {
            0 => Mode::Persistent,
            1 => Mode::Recursive,
            _ => return Err(Code::MarshallingError),
        };
        self.watches.watch_on(path, connection, mode);
        Ok(Writer::default().int(0))
    }

    /// A client has come back on a new connection. It gets its watches back, and at once any events that it missed.
    fn watch_again(
        &mut self,
        connection: u64,
        reader: &mut Reader<'_>,
        has_lasting: bool,
    ) -> Result<(), Malformed> {
        // The last transaction that the client has seen.
        let seen = reader.long()?;
        let mut paths = || reader.list(Reader::some_text);
        let (data, exist, child) = (paths()?, paths()?, paths()?);
        let lasting = if has_lasting { [paths()?, paths()?] } else { Default::default() };
        for path in &data {
            match self.tree.node(path).map(|node| node.mzxid > seen) {
                None => self.notify(connection, EventType::Deleted, path),
                Some(true) => self.notify(connection, EventType::DataChanged, path),
                Some(false) => self.watches.watch_data(path, connection),
            }
        }
        for path in &exist {
            match self.tree.node(path) {
                Some(_) => self.notify(connection, EventType::Created, path),
                None => self.watches.watch_data(path, connection),
            }
        }
        for path in &child {
            match self.tree.node(path).map(|node| node.pzxid > seen) {
                None => self.notify(connection, EventType::Deleted, path),
                Some(true) => self.notify(connection, EventType::ChildrenChanged, path),
                Some(false) => self.watches.watch_children(path, connection),
            }
        }
        for (paths, mode) in lasting.iter().zip([Mode::Persistent, Mode::Recursive]) {
            for path in paths {
                self.watches.watch_on(path, connection, mode);
            }
        }
        Ok(())
    }

    /// The node, if the connection has one of these rights.
    fn readable(&self, connection: u64, path: &str, rights: i32) -> Result<&Node, Code> {
        let node = self.tree.node(path).ok_or(Code::NoNode)?;
        access::check(&node.access, rights, &self.connections[&connection].shown)?;
        Ok(node)
    }
}

/// The facts about a request that its answer needs.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) xid: i32,
    pub(crate) operation: i32,
    pub(crate) kind: Kind,
    pub(crate) path: Option<String>,
    /// Replaces the number of the last transaction.
    pub(crate) zxid: Option<i64>,
}

fn write_error(writer: Writer, code: Code) -> Writer {
    writer.int(opcode::ERROR).boolean(false).int(code as i32).int(code as i32)
}
