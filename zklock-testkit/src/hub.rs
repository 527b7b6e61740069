//! The layer between the [`World`] and the sockets, where faults strike.
//!
//! A single lock guards everything. Each connection has a thread that reads and one that writes, each of which waits on its
//! own condition variable.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::fault::{Action, Script};
use crate::state::report;
use crate::state::settings::Settings;
use crate::state::world::{Effect, World};
use crate::wire::code::opcode;
use crate::wire::jute::Reader;
use crate::wire::kind::Kind;
use crate::wire::request;

/// How much may wait to be read by one client. A client with more than this is cut off.
const MAX_BACKLOG: usize = 64 << 20;

/// One connection.
#[derive(Debug)]
struct Link {
    stream: Arc<TcpStream>,
    /// What is to be sent, and when: a message, or the end of the connection.
    outbox: VecDeque<(Duration, Option<Vec<u8>>)>,
    backlog: usize,
    /// Nothing is sent before this time, so that messages stay in order after a delay.
    not_before: Duration,
    session: Option<i64>,
    changed: Arc<Condvar>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) script: Script,
    pub(crate) clock: Clock,
    links: BTreeMap<u64, Link>,
    last_link: u64,
    pub(crate) are_all_frozen: bool,
    pub(crate) frozen_sessions: BTreeSet<i64>,
    pub(crate) is_refusing: bool,
    is_ending: bool,
    /// How many threads of connections are running.
    pub(crate) threads: usize,
}

#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    /// Signalled when something has happened in the world.
    happened: Condvar,
    /// Signalled when the clock was changed, or something now ends earlier than expected.
    sooner: Condvar,
}

impl Hub {
    pub(crate) fn new(settings: Settings, clock: Clock) -> Self {
        let world = World::new(settings, clock.now());
        let state = State {
            world,
            script: Script::default(),
            clock,
            links: BTreeMap::new(),
            last_link: 0,
            are_all_frozen: false,
            frozen_sessions: BTreeSet::new(),
            is_refusing: false,
            is_ending: false,
            threads: 0,
        };
        Self { state: Mutex::new(state), happened: Condvar::new(), sooner: Condvar::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something from outside, and wakes every thread that may be affected.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let outcome = change(&mut state);
        state.carry_out(None);
        self.happened.notify_all();
        self.sooner.notify_all();
        outcome
    }

    /// Waits until `look` returns something; `None` if it does not by `bound`.
    pub(crate) fn wait_for<T>(&self, bound: Duration, look: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut seen = None;
        let is_missing = |state: &mut State| {
            seen = look(state);
            seen.is_none()
        };
        drop(self.happened.wait_timeout_while(self.lock(), bound, is_missing));
        seen
    }

    /// A new connection. `None` if it is not accepted.
    pub(crate) fn admit(&self, stream: Arc<TcpStream>) -> Option<u64> {
        let mut state = self.lock();
        let is_full = state.links.len() >= state.world.settings.max_connections;
        if state.is_refusing || state.is_ending || is_full {
            return None;
        }
        let peer = stream.peer_addr().ok()?;
        state.last_link += 1;
        let id = state.last_link;
        let link = Link {
            stream,
            outbox: VecDeque::new(),
            backlog: 0,
            not_before: Duration::ZERO,
            session: None,
            changed: Arc::default(),
        };
        state.links.insert(id, link);
        let now = state.clock.now();
        state.world.connect(now, id, peer);
        state.threads += 2;
        Some(id)
    }

    /// A message has come; `false` if the connection is gone.
    pub(crate) fn receive(&self, link: u64, frame: &[u8]) -> bool {
        let mut state = self.lock();
        let Some(from) = state.links.get(&link) else { return false };
        let (kind, path, session) = aim(from.session, frame);
        let is_new = kind == Kind::Connect;
        let mut action = None;
        loop {
            if state.is_frozen(session) {
                let Some(from) = state.links.get(&link) else { return false };
                state = wait(&Arc::clone(&from.changed), state, None);
            } else if !state.world.connections.contains_key(&link) {
                // The session ended while this message was on its way.
                return true;
            } else if action.is_none() {
                action = state.script.strike(kind, path.as_deref(), session);
                match (action, session) {
                    (None, _) => break,
                    (Some(Action::Freeze), Some(session)) => {
                        state.frozen_sessions.insert(session);
                    }
                    _ => {}
                }
            } else {
                break;
            }
        }
        let now = state.clock.now();
        if action == Some(Action::LoseRequest) {
            state.finish(link);
        } else {
            if let (Some(Action::Expire), Some(session)) = (action, session) {
                // Its connection ends with it. If the client has just come on a new connection, it is told that the session
                // has ended.
                state.world.expire(now, session);
            }
            match action {
                Some(Action::BringBack) => state.world.receive_and_bring_back(now, link, frame),
                _ => state.world.receive(now, link, frame),
            }
            state.carry_out(action.map(|action| (link, action)));
        }
        drop(state);
        self.happened.notify_all();
        if is_new {
            self.sooner.notify_all();
        }
        true
    }

    /// The answer to a four-letter word; `None` if the connection is gone.
    pub(crate) fn word(&self, link: u64, word: &str) -> Option<String> {
        let mut state = self.lock();
        state.world.hear_word(link);
        loop {
            let changed = Arc::clone(&state.links.get(&link)?.changed);
            if !state.are_all_frozen {
                return Some(report::answer(word, &state.world));
            }
            state = wait(&changed, state, None);
        }
    }

    /// Waits for the next message to write; `None` if the connection is to be closed.
    pub(crate) fn next_frame(&self, link: u64) -> Option<Vec<u8>> {
        let mut state = self.lock();
        loop {
            let now = state.clock.now().elapsed;
            let this = state.links.get(&link)?;
            let is_frozen = state.is_frozen(this.session);
            let changed = Arc::clone(&this.changed);
            let pause = match this.outbox.front() {
                Some((due, _)) if !is_frozen && *due <= now => {
                    let this = state.links.get_mut(&link)?;
                    let frame = this.outbox.pop_front()?.1?;
                    this.backlog -= frame.len();
                    return Some(frame);
                }
                Some((due, _)) if !is_frozen => state.clock.until(*due),
                _ => None,
            };
            state = wait(&changed, state, pause);
        }
    }

    /// A thread of a connection ends, and the connection with it. If it is the thread that reads, answers to earlier
    /// messages are sent first, since a good message may be followed by one that ends the connection.
    pub(crate) fn thread_ends(&self, link: u64, is_reader: bool) {
        let mut state = self.lock();
        if is_reader {
            state.finish(link);
        } else {
            state.cut(link);
        }
        state.threads -= 1;
        self.happened.notify_all();
    }

    /// Ends sessions and reaps nodes when their time has come, until the server ends.
    pub(crate) fn keep_time(&self) {
        let mut state = self.lock();
        while !state.is_ending {
            let now = state.clock.now();
            state.world.tick(now);
            state.carry_out(None);
            let pause = state.clock.until(state.world.next_tick());
            self.happened.notify_all();
            // Do not look again at once if the clock is coarser than the time to wait.
            state = wait(&self.sooner, state, pause.map(|pause| pause.max(Duration::from_millis(1))));
        }
    }

    pub(crate) fn end(&self) {
        self.change(|state| {
            state.is_ending = true;
            state.cut_all();
        });
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.lock().is_ending
    }
}

/// Waits until there is a signal, or for as long as the pause.
fn wait<'a>(
    signal: &Condvar,
    state: MutexGuard<'a, State>,
    pause: Option<Duration>,
) -> MutexGuard<'a, State> {
    match pause {
        Some(pause) => signal.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0,
        None => signal.wait(state).unwrap_or_else(PoisonError::into_inner),
    }
}

impl State {
    /// Whether nothing is carried out or sent for this session.
    fn is_frozen(&self, session: Option<i64>) -> bool {
        self.are_all_frozen || session.is_some_and(|id| self.frozen_sessions.contains(&id))
    }

    /// Cuts a connection, even if something was still to be sent.
    pub(crate) fn cut(&mut self, link: u64) {
        if let Some(link) = self.links.remove(&link) {
            let _ = link.stream.shutdown(Shutdown::Both);
            link.changed.notify_all();
        }
        self.world.disconnect(link);
    }

    /// Ends a connection once everything has been sent. No more messages are accepted from it.
    fn finish(&mut self, link: u64) {
        self.world.disconnect(link);
        self.queue(link, Duration::ZERO, None);
    }

    pub(crate) fn cut_all(&mut self) {
        for link in self.links.keys().copied().collect::<Vec<_>>() {
            self.cut(link);
        }
    }

    /// The connection of a session.
    pub(crate) fn link_of(&self, session: i64) -> Option<u64> {
        self.world.sessions.get(&session).and_then(|session| session.connection)
    }

    /// Puts the clock forward.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        let (all, frozen) = (self.are_all_frozen, &self.frozen_sessions);
        self.world.leap(by, |session| !all && !frozen.contains(&session));
        self.wake_all();
        let now = self.clock.now();
        self.world.tick(now);
    }

    /// Wakes all threads of connections, so that they check the clock and frozen sessions again.
    pub(crate) fn wake_all(&self) {
        self.links.values().for_each(|link| link.changed.notify_all());
    }

    /// Does what the world asks for. A fault may strike at a message to one connection.
    fn carry_out(&mut self, fault: Option<(u64, Action)>) {
        loop {
            let mut expired = Vec::new();
            for effect in self.world.effects() {
                match effect {
                    Effect::Close { connection } => self.queue(connection, Duration::ZERO, None),
                    Effect::Send { connection, kind, path, frame } => {
                        let session = self.recognise(connection, kind);
                        let action = match (kind, fault) {
                            // It was sent without a request at which a fault could have struck.
                            (Kind::Event, _) => self.script.strike(kind, path.as_deref(), session),
                            (_, Some((struck, action))) if struck == connection => Some(action),
                            _ => None,
                        };
                        if kind == Kind::Event && action == Some(Action::Expire) {
                            expired.extend(session);
                        }
                        if kind == Kind::Event && action == Some(Action::Freeze) {
                            self.frozen_sessions.extend(session);
                        }
                        self.send(connection, action, frame);
                    }
                }
            }
            let now = self.clock.now();
            if expired.is_empty() {
                return;
            }
            for session in expired {
                self.world.expire(now, session);
            }
        }
    }

    /// The session of a connection. For a new connection it is known after the greeting.
    fn recognise(&mut self, id: u64, kind: Kind) -> Option<i64> {
        let link = self.links.get_mut(&id)?;
        if kind == Kind::Connect {
            link.session = self.world.connections.get(&id).and_then(|connection| connection.session);
        }
        link.session
    }

    fn send(&mut self, link: u64, action: Option<Action>, frame: Vec<u8>) {
        let delay = match action {
            Some(Action::DropReply) => return,
            Some(Action::CutBeforeReply | Action::LoseRequest) => return self.finish(link),
            Some(Action::DelayReply(delay)) => delay,
            Some(Action::CutAfterReply | Action::Freeze | Action::Expire | Action::BringBack) | None => {
                Duration::ZERO
            }
        };
        self.queue(link, delay, Some(frame));
        if action == Some(Action::CutAfterReply) {
            self.finish(link);
        }
    }

    fn queue(&mut self, id: u64, delay: Duration, outgoing: Option<Vec<u8>>) {
        let now = self.clock.now().elapsed;
        let Some(link) = self.links.get_mut(&id) else { return };
        link.backlog += outgoing.as_ref().map_or(0, Vec::len);
        link.not_before = link.not_before.max(now.saturating_add(delay));
        link.outbox.push_back((link.not_before, outgoing));
        link.changed.notify_all();
        if link.backlog > MAX_BACKLOG {
            self.cut(id);
        }
    }
}

/// The kind, the path and the session of a message.
fn aim(session: Option<i64>, frame: &[u8]) -> (Kind, Option<String>, Option<i64>) {
    let mut reader = Reader(frame);
    if session.is_none() {
        let mut session = || {
            let (_protocol, _seen, _timeout) = (reader.int().ok()?, reader.long().ok()?, reader.int().ok()?);
            reader.long().ok().filter(|&session| session != 0)
        };
        return (Kind::Connect, None, session());
    }
    let operation = reader.int().and_then(|_| reader.int()).unwrap_or(opcode::ERROR);
    let (kind, path) = request::aim(operation, reader);
    (kind, path, session)
}
