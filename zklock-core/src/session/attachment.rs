//! The attachment of a session to a server.
//!
//! When a connection breaks, another is attached, to the server that answers first: at once, then after short pauses, until a
//! server grants it or says that the session is over. The library would wait longer each time, without limit.

use crate::base::clock;
use crate::base::failure::Failure;
use crate::base::platform;
use crate::connect::options::ClientOptions;
use crate::machine::times;
use crate::session::nodes::SessionNodes;
use crate::session::refusals::Refusals;
use crate::session::session::Session;
use crate::zookeeper::connecting::{self, Attached};
use crate::zookeeper::ensemble::{Ensemble, Pending};
use crate::zookeeper::servers::SessionInfo;
use crate::zookeeper::serving::End;
use crate::zookeeper::zookeeper::ZooKeeper;
use std::sync::Arc;
use std::time::Duration;

/// Between two tries to attach a connection.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// The least time for one such try, however short the session timeout.
const ATTACH_AT_LEAST: Duration = Duration::from_secs(1);
/// How long a server may take to confirm the end of a session: a follower may hang up instead.
pub(super) const GOOD_BYE: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(super) enum Attachment {
    /// Connected, until the connection has ended.
    Connected(Arc<ZooKeeper>, Pending<End>),
    /// Looking for another connection, until there is one or the session can get none any more. The error is what is known
    /// about its nodes then.
    Attaching(Pending<Result<Arc<ZooKeeper>, SessionNodes>>),
}

impl Attachment {
    pub(super) fn of(connection: Arc<ZooKeeper>) -> Self {
        let ended = Box::pin(connection.ended());
        Self::Connected(connection, ended)
    }

    /// Waits for the next state. If the session can get no connection any more, the error is what is known about its nodes.
    /// This may be dropped and called again.
    pub(super) async fn change(
        &mut self,
        options: &Arc<ClientOptions>,
        session: &Arc<Session>,
    ) -> Result<Self, SessionNodes> {
        match self {
            Self::Connected(connection, ended) => match ended.await {
                End::SessionOver => Err(SessionNodes::Gone),
                End::Refused => Err(SessionNodes::Abandoned),
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
    pub(super) fn keep_watches(&self) {
        if let Self::Connected(connection, _) = self {
            connection.keep_watches();
        }
    }

    pub(super) fn give_up(self) {
        if let Self::Connected(connection, _) = self {
            connection.give_up();
        }
    }

    /// Closes the session, and waits for the server to confirm it, so that its nodes are gone. Without a connection, the
    /// session times out.
    pub(super) async fn part(self) -> SessionNodes {
        let parted = async {
            let (connection, ended) = match self {
                Self::Connected(connection, ended) => (connection, ended),
                // A connection that is about to be attached can still be used to say so.
                Self::Attaching(attached) => match attached.await.map(Self::of) {
                    Ok(Self::Connected(connection, ended)) => (connection, ended),
                    Ok(Self::Attaching(_)) => return SessionNodes::Abandoned,
                    Err(nodes) => return nodes,
                },
            };
            drop(connection);
            SessionNodes::after(ended.await)
        };
        let nodes = clock::timeout(GOOD_BYE, parted).await.unwrap_or(SessionNodes::Abandoned);
        if nodes != SessionNodes::Gone {
            tracing::debug!("no server confirmed the end of the session; it times out");
        }
        nodes
    }

    /// Closes the session, until the servers have confirmed it or have ended it themselves. If a connection breaks or stays
    /// silent, it uses another.
    pub(super) async fn end(mut self, options: &Arc<ClientOptions>, session: &Arc<Session>) -> SessionNodes {
        loop {
            self = match self {
                Self::Connected(connection, ended) => {
                    let info = connection.session();
                    drop(connection);
                    let bound = times::ATTACH.of(session.timeout()).max(ATTACH_AT_LEAST);
                    if clock::timeout(bound, ended).await.map(SessionNodes::after) == Ok(SessionNodes::Gone) {
                        return SessionNodes::Gone;
                    }
                    Self::Attaching(Box::pin(attached(options.clone(), session.clone(), info)))
                }
                Self::Attaching(attached) => match attached.await {
                    Ok(connection) => Self::of(connection),
                    Err(nodes) => return nodes,
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
) -> Result<Arc<ZooKeeper>, SessionNodes> {
    let mut pause = FIRST_PAUSE;
    let mut turn = platform::random_bits() as usize;
    let mut refusals = Refusals::of(&options);
    let since = clock::now();
    let mut patience = 1;
    loop {
        if clock::now().since(since) > times::ABANDONED.of(session.timeout()) {
            return Err(SessionNodes::Abandoned);
        }
        let bound = (times::ATTACH.of(session.timeout()) * patience).max(ATTACH_AT_LEAST);
        let attach = attach(&options, &session, info.clone(), turn);
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
            Ok(Err(Failure::SessionOver)) => return Err(SessionNodes::Gone),
            Ok(Err(Failure::GivenUp(problem))) => {
                tracing::warn!(problem, "the session is given up");
                session.set_trouble(Some(problem));
                return Err(SessionNodes::Abandoned);
            }
            Ok(Err(Failure::Refused(problem))) => {
                tracing::warn!(problem, "the connection is refused");
                if refusals.count_one() {
                    session.set_trouble(Some(problem));
                    return Err(SessionNodes::Abandoned);
                }
                problem
            }
            Ok(Err(failure)) => {
                refusals = Refusals::of(&options);
                failure.to_string()
            }
            Err(_) => {
                refusals = Refusals::of(&options);
                // It takes several replies, which may be slow to come from every server.
                patience = (patience * 2).min(4);
                "no server answers in time".to_owned()
            }
        };
        tracing::debug!(problem, "no connection could be attached");
        session.set_trouble(Some(problem));
        clock::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        turn = turn.wrapping_add(1);
    }
}

/// Attaches a connection to the session, in steps that the session has to know of: a server may be asked for it, and then
/// what the server has granted.
async fn attach(
    options: &ClientOptions,
    session: &Session,
    info: SessionInfo,
    turn: usize,
) -> Result<Attached, Failure> {
    let reached = connecting::reach(options, info, turn).await?;
    let asked = clock::now();
    session.ask();
    let granted = reached.connect(session.timeout()).await?;
    session.granted(granted.server(), asked, granted.timeout);
    granted.prove().await
}
