//! The sessions of a client. It has one at a time, and opens the next one when that is over.
//!
//! This also looks after the connection of the session. When it breaks, another is attached, to the server that answers first:
//! at once, then after short pauses, until a server grants it or says that the session is over. The library would wait longer
//! each time, without limit.

mod slot;

pub(crate) use self::slot::{Slot, SlotState};

use crate::base::clock;
use crate::base::error::LossReason;
use crate::base::platform;
use crate::base::stats::Counters;
use crate::connect::options::ClientOptions;
use crate::machine::keeper::Keeper;
use crate::session::heartbeat;
use crate::session::nodes::Nodes;
use crate::session::session::{Link, Session};
use crate::zookeeper::connecting::{self, Attached, NotAttached, NotOpened, Opened};
use crate::zookeeper::ensemble::{Ensemble, Pending};
use crate::zookeeper::servers::SessionInfo;
use crate::zookeeper::serving::End;
use crate::zookeeper::zookeeper::ZooKeeper;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Between two tries to open a session.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Between two tries to attach a connection.
const FIRST_ATTACH_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_ATTACH_PAUSE: Duration = Duration::from_millis(250);
/// The least time for one such try, however short the session timeout.
const ATTACH_AT_LEAST: Duration = Duration::from_secs(1);
/// How long a server may take to confirm the end of a session: a follower may hang up instead.
const GOOD_BYE: Duration = Duration::from_secs(1);

pub(crate) struct Pool {
    options: Arc<ClientOptions>,
    /// The name that others see. It stays as it was when the client connected, or equal locks would have unequal claims.
    identity: String,
    runtime: Handle,
    slot: Arc<Slot>,
    closing: Arc<watch::Sender<bool>>,
    /// Whether the keeper is still running.
    kept: watch::Receiver<bool>,
    /// Whether there is a guardian.
    guarded: Arc<watch::Sender<bool>>,
}

impl Pool {
    pub(crate) fn new(options: ClientOptions, runtime: Handle, counters: Arc<Counters>) -> Self {
        let options = Arc::new(options);
        let identity = options.identity.clone().unwrap_or_else(platform::identity);
        let slot = Arc::new(Slot::new(SlotState::Opening(None)));
        let closing = Arc::new(watch::Sender::new(false));
        let (keeps, kept) = watch::channel(true);
        let keeper = SessionKeeper {
            slot: slot.clone(),
            options: options.clone(),
            closing: closing.clone(),
            kept: keeps,
            counters,
        };
        runtime.spawn(keeper.run());
        Self { options, identity, runtime, slot, closing, kept, guarded: Arc::default() }
    }

    /// Returns a pool whose sessions a test opens.
    #[cfg(test)]
    pub(crate) fn of(slot: Arc<Slot>) -> Self {
        let (_, kept) = watch::channel(true);
        let options = Arc::new(ClientOptions::new("none:1").unwrap());
        let (runtime, closing) = (Handle::current(), Arc::new(watch::Sender::new(false)));
        Self { options, identity: String::new(), runtime, slot, closing, kept, guarded: Arc::default() }
    }

    pub(crate) fn options(&self) -> &ClientOptions {
        &self.options
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closing.borrow()
    }

    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Begins to close the session.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until it is closed.
    pub(crate) async fn closed(&self) {
        // If this fails, the keeper is gone, and the session with it.
        let _ = self.kept.clone().wait_for(|kept| !kept).await;
        // Its guardian is dismissed then, and ends in a moment.
        let mut guarded = self.guarded.subscribe();
        let _ = clock::timeout(GOOD_BYE, guarded.wait_for(|guarded| !guarded)).await;
    }

    pub(crate) fn guarded(&self) -> &Arc<watch::Sender<bool>> {
        &self.guarded
    }
}

/// Keeps the slot filled until the client is closed.
struct SessionKeeper {
    slot: Arc<Slot>,
    options: Arc<ClientOptions>,
    closing: Arc<watch::Sender<bool>>,
    kept: watch::Sender<bool>,
    counters: Arc<Counters>,
}

/// This runs even if its runtime is gone, and the keeper has never run.
impl Drop for SessionKeeper {
    fn drop(&mut self) {
        self.closing.send_replace(true);
        // Wakes everybody who waits for a session or for its end.
        if let SlotState::Open(session) = self.slot.state() {
            session.end(LossReason::ClientClosed);
            session.set_nodes(Nodes::Left);
        }
        self.slot.state.send_if_modified(|state| {
            let changes = !matches!(state, SlotState::NoRoot | SlotState::Refused(_));
            if changes {
                *state = SlotState::Closed;
            }
            changes
        });
        self.kept.send_replace(false);
    }
}

impl SessionKeeper {
    async fn run(self) {
        let mut closing = self.closing.subscribe();
        let mut pause = FIRST_PAUSE;
        let mut turn = platform::random_bits() as usize;
        let mut say = Say::of(&self.options);
        loop {
            turn = turn.wrapping_add(1);
            let opened = tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => return,
                opened = self.open(turn) => opened,
            };
            match opened {
                // Later, the chroot may be about to come back.
                Ok(None) if self.counters.sessions() == 0 => {
                    self.slot.state.send_replace(SlotState::NoRoot);
                    return;
                }
                Ok(None) => {
                    self.pause(&mut pause, "the chroot does not exist".to_owned(), &mut closing).await;
                }
                Ok(Some(opened)) => {
                    pause = FIRST_PAUSE;
                    self.counters.count_session();
                    self.slot.is_zookeeper();
                    let Opened { ensemble, asked, session, timeout } = opened;
                    let connection = Arc::new(ensemble);
                    let keeper = Keeper::new(timeout, asked, clock::now());
                    let beats = self.options.heartbeat;
                    let keeper = if beats { keeper } else { keeper.without_heartbeat() };
                    let session = Session::new(connection.clone(), session, keeper, self.counters.clone());
                    if self.follow(&session, connection, &mut closing).await == LossReason::ClientClosed {
                        return;
                    }
                }
                Err(NotOpened::Refused(why)) => {
                    // Later, the credentials may be about to change.
                    if say.refused_by_all() && self.counters.sessions() == 0 {
                        self.slot.state.send_replace(SlotState::Refused(why.into()));
                        return;
                    }
                    self.pause(&mut pause, why, &mut closing).await;
                }
                Err(NotOpened::NotZooKeeper { server, why }) => {
                    say = Say::of(&self.options);
                    let problem = format!("{server} {why}");
                    self.slot.is_not_zookeeper(server, why);
                    self.pause(&mut pause, problem, &mut closing).await;
                }
                Err(NotOpened::Yet(problem)) => {
                    say = Say::of(&self.options);
                    self.pause(&mut pause, problem, &mut closing).await;
                }
            }
        }
    }

    /// Opens a session; `None` if the chroot does not exist.
    async fn open(&self, turn: usize) -> Result<Option<Opened>, NotOpened> {
        let bound = clock::timeout(self.options.session_timeout, connecting::open(&self.options, turn));
        let opened = bound.await.map_err(|_| NotOpened::Yet("no server answers in time".to_owned()))??;
        if self.options.hosts.chroot.is_empty() {
            return Ok(Some(opened));
        }
        // If that cannot be found out now, the first acquire will report it.
        let has_root = clock::timeout(opened.timeout / 2, opened.ensemble.has_root()).await;
        if has_root != Ok(Some(false)) {
            return Ok(Some(opened));
        }
        if !self.options.create_chroot {
            return Ok(None);
        }
        match clock::timeout(opened.timeout / 2, opened.ensemble.create_root()).await {
            Ok(Ok(true)) => Ok(Some(opened)),
            Ok(Err(why)) => Err(NotOpened::Refused(why)),
            Ok(Ok(false)) | Err(_) => {
                Err(NotOpened::Yet("no server has confirmed that it created the chroot".to_owned()))
            }
        }
    }

    async fn pause(&self, pause: &mut Duration, problem: String, closing: &mut watch::Receiver<bool>) {
        tracing::debug!(problem, "no session could be opened");
        self.slot.state.send_replace(SlotState::Opening(Some(problem.into())));
        tokio::select! {
            _ = closing.wait_for(|closing| *closing) => {}
            () = clock::sleep(*pause) => {}
        }
        *pause = (*pause * 2).min(LONGEST_PAUSE);
    }

    /// Lets everybody work with the session until it is over, and returns the reason.
    async fn follow(
        &self,
        session: &Arc<Session>,
        connection: Arc<ZooKeeper>,
        closing: &mut watch::Receiver<bool>,
    ) -> LossReason {
        self.slot.state.send_replace(SlotState::Open(session.clone()));
        tracing::info!(session = format_args!("{:#x}", session.id()), timeout = ?session.timeout(), "session opened");
        let mut link = session.link();
        let mut tie = Tie::of(connection);
        let mut nodes = Nodes::Left;
        // The library closes the session when nothing has its client any more, not even a heartbeat on its way.
        let reason = {
            let mut heart = std::pin::pin!(heartbeat::run(session.clone()));
            let reason = loop {
                tokio::select! {
                    biased;
                    _ = closing.wait_for(|closing| *closing) => break LossReason::ClientClosed,
                    tied = tie.change(&self.options, session) => match tied {
                        Ok(next) => tie = next,
                        Err(Over::Said) => {
                            nodes = Nodes::Gone;
                            break LossReason::SessionExpired;
                        }
                        Err(Over::GivenUp) => {
                            session.abandon_nodes();
                            break LossReason::SessionExpired;
                        }
                    },
                    // A reply may report the end before the connection does.
                    _ = link.wait_for(|link| matches!(link, Link::Over(_))) => {
                        break session.loss().unwrap_or(LossReason::SessionExpired);
                    }
                    never = &mut heart => match never {},
                }
            };
            tie.keep_watches();
            reason
        };
        session.end(reason);
        tracing::info!(session = format_args!("{:#x}", session.id()), %reason, "session over");
        self.slot.state.send_if_modified(|state| {
            let closing = reason == LossReason::ClientClosed;
            *state = if closing { SlotState::Closed } else { SlotState::Opening(None) };
            true
        });
        let nodes = match reason {
            LossReason::ClientClosed => tie.part().await,
            LossReason::SessionClosed => {
                // A caller that closes the client does not wait for servers that do not answer.
                let closes = async {
                    let _ = closing.wait_for(|closing| *closing).await;
                    clock::sleep(GOOD_BYE).await;
                };
                // Its other holds may have been asked for how long they last, just before.
                let ends = async {
                    session.keep_promises().await;
                    tie.end(&self.options, session).await
                };
                tokio::select! {
                    nodes = ends => nodes,
                    () = closes => Nodes::Left,
                }
            }
            _ => {
                tie.give_up();
                nodes
            }
        };
        session.set_nodes(nodes);
        reason
    }
}

/// The tie between a session and a server.
enum Tie {
    /// Connected, until the connection has ended.
    Connected(Arc<ZooKeeper>, Pending<End>),
    /// Looking for another connection, until there is one or the session is over.
    Attaching(Pending<Result<Arc<ZooKeeper>, Over>>),
}

/// Why the session can get no connection any more.
enum Over {
    /// The servers have said that it is over.
    Said,
    /// It may live on at the servers until it times out.
    GivenUp,
}

/// Counts refusals, to find out whether any of the hosts may still let the client in. While passwords are being changed, some
/// servers know the new one and others do not. Each try begins with another host, so as many refusals in a row as there are
/// hosts come from all hosts that answer.
struct Say(usize);

impl Say {
    fn of(options: &ClientOptions) -> Self {
        Self(options.hosts.servers.len())
    }

    fn refused_by_all(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}

impl Tie {
    fn of(connection: Arc<ZooKeeper>) -> Self {
        let ended = Box::pin(connection.ended());
        Self::Connected(connection, ended)
    }

    /// Waits for the next state, unless the session is over. It may be dropped and called again.
    async fn change(&mut self, options: &Arc<ClientOptions>, session: &Arc<Session>) -> Result<Self, Over> {
        match self {
            Self::Connected(connection, ended) => match ended.await {
                End::SessionOver => Err(Over::Said),
                End::Refused => Err(Over::GivenUp),
                end => {
                    tracing::info!(session = format_args!("{:#x}", session.id()), ?end, "connection lost");
                    session.set_connected(false);
                    let attached = attached(options.clone(), session.clone(), connection.session());
                    Ok(Self::Attaching(Box::pin(attached)))
                }
            },
            Self::Attaching(attached) => attached.await.map(Self::of),
        }
    }

    /// Keeps the library's watches from being removed with a request: they end with the session.
    fn keep_watches(&self) {
        if let Self::Connected(connection, _) = self {
            connection.keep_watches();
        }
    }

    fn give_up(self) {
        if let Self::Connected(connection, _) = self {
            connection.give_up();
        }
    }

    /// Closes the session, and waits for the server to confirm it, so that its nodes are gone. Without a connection, the
    /// session times out.
    async fn part(self) -> Nodes {
        let parted = async {
            let (connection, ended) = match self {
                Self::Connected(connection, ended) => (connection, ended),
                // A connection that is about to be attached can still be used to say so.
                Self::Attaching(attached) => match attached.await.map(Self::of) {
                    Ok(Self::Connected(connection, ended)) => (connection, ended),
                    Ok(Self::Attaching(_)) | Err(Over::GivenUp) => return Nodes::Left,
                    Err(Over::Said) => return Nodes::Gone,
                },
            };
            drop(connection);
            ended.await.nodes()
        };
        let nodes = clock::timeout(GOOD_BYE, parted).await.unwrap_or(Nodes::Left);
        if nodes != Nodes::Gone {
            tracing::debug!("no server confirmed the end of the session; it times out");
        }
        nodes
    }

    /// Closes the session, until the servers have confirmed it or have ended it themselves. If a connection breaks or stays
    /// silent, it uses another.
    async fn end(mut self, options: &Arc<ClientOptions>, session: &Arc<Session>) -> Nodes {
        loop {
            self = match self {
                Self::Connected(connection, ended) => {
                    let info = connection.session();
                    drop(connection);
                    let bound = (session.timeout() / 4).max(ATTACH_AT_LEAST);
                    if clock::timeout(bound, ended).await.map(End::nodes) == Ok(Nodes::Gone) {
                        return Nodes::Gone;
                    }
                    Self::Attaching(Box::pin(attached(options.clone(), session.clone(), info)))
                }
                Self::Attaching(attached) => match attached.await {
                    Ok(connection) => Self::of(connection),
                    Err(Over::Said) => return Nodes::Gone,
                    Err(Over::GivenUp) => return Nodes::Left,
                },
            };
        }
    }
}

/// Attaches another connection to the session, if it is not over. It gives the session up when no server has granted it for
/// twice its timeout: the servers have ended it by then, unless none of them worked, and members of barriers wait for an
/// answer. It also gives up when every host has refused the login; the next session waits for another password.
async fn attached(
    options: Arc<ClientOptions>,
    session: Arc<Session>,
    info: SessionInfo,
) -> Result<Arc<ZooKeeper>, Over> {
    let mut pause = FIRST_ATTACH_PAUSE;
    let mut turn = platform::random_bits() as usize;
    let mut say = Say::of(&options);
    let since = clock::now();
    let mut patience = 1;
    loop {
        if clock::now().since(since) > session.timeout() * 2 {
            return Err(Over::GivenUp);
        }
        let bound = (session.timeout() / 4 * patience).max(ATTACH_AT_LEAST);
        let attach = connecting::attach(&options, &session, info.clone(), turn);
        let problem = match clock::timeout(bound, attach).await {
            Ok(Ok(Attached { ensemble, sent })) => {
                let ensemble = Arc::new(ensemble);
                session.attach(ensemble.clone(), sent);
                session.set_trouble(None);
                tokio::spawn(session.clone().sweep());
                let timeout = session.timeout();
                tracing::info!(session = format_args!("{:#x}", session.id()), ?timeout, "connected again");
                return Ok(ensemble);
            }
            Ok(Err(NotAttached::SessionOver)) => return Err(Over::Said),
            Ok(Err(NotAttached::GivenUp(problem))) => {
                tracing::warn!(problem, "the session is given up");
                session.set_trouble(Some(problem));
                return Err(Over::GivenUp);
            }
            Ok(Err(NotAttached::Refused(problem))) => {
                tracing::warn!(problem, "the connection is refused");
                if say.refused_by_all() {
                    session.set_trouble(Some(problem));
                    return Err(Over::GivenUp);
                }
                problem
            }
            Ok(Err(NotAttached::Yet(problem))) => {
                say = Say::of(&options);
                problem
            }
            Err(_) => {
                say = Say::of(&options);
                // It takes several replies, which may be slow to come from every server.
                patience = (patience * 2).min(4);
                "no server answers in time".to_owned()
            }
        };
        tracing::debug!(problem, "no connection could be attached");
        session.set_trouble(Some(problem));
        clock::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_ATTACH_PAUSE);
        turn = turn.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests;
