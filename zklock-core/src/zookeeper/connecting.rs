//! How a session is opened, and how another connection is attached to it.

use super::connection::Connection;
use super::encryption;
use super::login::{has_sasl, logging_in, not_let_in, not_logged_in};
use super::rights::NodeList;
use super::servers::{Servers, SessionInfo};
use super::serving::Serving;
use super::silence::Watches;
use super::spawning::{Spawned, spawning, unexpected};
use super::zookeeper::ZooKeeper;
use crate::base::clock;
use crate::base::failure::Failure;
use crate::base::sockets;
use crate::connect::level::{ServerLevel, refuses_in_silence};
use crate::connect::options::{ClientOptions, SHORTEST_SESSION_TIMEOUT};
use crate::connect::path::{Hosts, written};
use crate::machine::{Moment, times};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use zookeeper_client::{Connector, Error};

/// How long to wait for a host to accept a connection before trying the next one as well.
const NEXT_HOST: Duration = Duration::from_millis(100);
/// How long a server may take, at most, to say which version it is.
const ANSWER: Duration = Duration::from_millis(500);
/// Longer than the line that says it.
const LONGEST_ANSWER: usize = 512;
/// No server grants more than this to a client that asked for less. With such a timeout, the silence of a connection would mean
/// nothing for days.
const LONGEST_GRANT: Duration = Duration::from_secs(3600);
const ANOTHER_SESSION: &str = "the server gives another session in its place";

/// A new session: its connection, its number and its timeout.
pub(crate) struct Opened {
    pub(crate) ensemble: ZooKeeper,
    /// When it was asked for.
    pub(crate) asked: Moment,
    pub(crate) session: i64,
    pub(crate) timeout: Duration,
}

/// A new connection of a session.
pub(crate) struct Attached {
    pub(crate) ensemble: ZooKeeper,
    /// When the write that the quorum has answered was sent.
    pub(crate) sent: Moment,
}

/// Opens a session. The host at `turn` is tried first. Gives up after one session timeout.
///
/// The library by itself would try one host after the other, for longer and longer, and not say when it asked for the session
/// that it gets. A lease that is counted from too early is over before the next can be proven.
pub(crate) async fn open(options: &ClientOptions, turn: usize) -> Result<Opened, Failure> {
    let (host, stream) = accepting(&options.hosts, turn).await.map_err(Failure::TryAgain)?;
    // The version comes first, because it decides how the library may speak to the server, and what the server's silence means.
    let answer = asked_for_version(options, stream).await;
    let servers = Servers::new(options.server_level(), ServerLevel::of_answer(&answer));
    servers.ask(host.clone());
    let connector = logging_in(options, &host).await?;
    let connector = encryption::with_tls(options, connector).await.map_err(Failure::Refused)?;
    let connector = connector.with_session_timeout(options.session_timeout);
    // The lease is counted from here. So what takes time and is not part of the request, such as reading files or getting a
    // ticket, is done by now. The request itself must come later, or the lease would be too long.
    let asked = clock::now();
    let failed = |error| match error {
        Error::NoHosts if refuses_in_silence(&answer) && has_sasl(options) => {
            Failure::Refused(not_let_in(options))
        }
        error => not_connected(options, &host, &error),
    };
    let ensemble = connect(options, connector.with_fail_eagerly(), &host, servers, failed).await?;
    // It takes a session to ask this, and nobody may use the session before the answer, because the server may have let the
    // client in as nobody. On an error, dropping `ensemble` closes the session.
    if !ensemble.is_logged_in(options, true).await {
        return Err(Failure::Refused(not_logged_in(options, &host)));
    }
    let client = &ensemble.connection.client;
    if let Some(problem) = absurd(client.session_timeout(), options.session_timeout) {
        return Err(Failure::TryAgain(problem));
    }
    Ok(Opened { session: client.session_id().0, timeout: client.session_timeout(), ensemble, asked })
}

/// The first step to attach another connection to a session: makes certain that a server is there, and has what logs in to
/// it. The host at `turn` is tried first. Then come [`Reached::connect`] and [`Granted::prove`].
///
/// There is no limit to how long the steps may take: a server can wait for an earlier write of the session. If their future
/// is dropped, nothing more is sent, and the session lives on.
pub(crate) async fn reach(
    options: &ClientOptions,
    info: SessionInfo,
    turn: usize,
) -> Result<Reached<'_>, Failure> {
    // A server that receives nothing can grant nothing. So first make certain that one is there.
    let asking = info.servers.asking(&options.hosts);
    let (host, _) = accepting(&asking.hosts, turn).await.map_err(Failure::TryAgain)?;
    // From here on only this host counts as asked, even if a later step fails, so the next try begins with the others.
    asking.choose(&host);
    // The login comes before the request for the session, because a ticket can take long to get. From that request on, what
    // the earlier connection has shown no longer counts. If the login fails here, no server has refused anything, so the
    // session is not given up for it.
    let connector =
        logging_in(options, &host).await.map_err(|failure| Failure::TryAgain(failure.to_string()))?;
    let connector = encryption::with_tls(options, connector).await.map_err(Failure::TryAgain)?;
    Ok(Reached { options, host, connector, info })
}

/// A server that is there, and was not yet asked for the session.
pub(crate) struct Reached<'a> {
    options: &'a ClientOptions,
    host: String,
    connector: Connector,
    info: SessionInfo,
}

impl<'a> Reached<'a> {
    /// Asks for the session, and for the timeout that is in force. With a longer one, a crash would keep locks for longer, and
    /// no hold would be valid for longer. The session has to know before this that a server may be asked for it.
    pub(crate) async fn connect(self, timeout: Duration) -> Result<Granted<'a>, Failure> {
        let Self { options, host, connector, info: SessionInfo { library, servers } } = self;
        let number = library.id();
        let connector = connector.with_session(library).with_session_timeout(timeout);
        let failed = |error| not_attached(options, &host, &error);
        let ensemble = connect(options, connector.with_fail_eagerly(), &host, servers, failed).await?;
        if ensemble.connection.client.session_id() != number {
            // ClickHouse Keeper never takes a session up again. The other session is closed when `ensemble` is dropped. So
            // this is checked before anything keeps it from being closed.
            return Err(Failure::GivenUp(ANOTHER_SESSION.to_owned()));
        }
        // From here on it is our session, and a drop must not close it. So this comes before anything else can fail.
        let unless_answered = GivenUp(Some(ensemble.connection.serving.clone()));
        let granted = ensemble.connection.client.session_timeout();
        if let Some(problem) = absurd(granted, timeout) {
            // With so short a timeout, the servers may give the session's locks to others soon.
            let is_short = granted < SHORTEST_SESSION_TIMEOUT;
            return Err(if is_short { Failure::GivenUp(problem) } else { Failure::TryAgain(problem) });
        }
        Ok(Granted { unless_answered, options, host, timeout: granted, ensemble })
    }
}

/// A new connection of the session, which the server has granted. It is given up unless it is proven, even if the future that
/// waits for that is dropped.
pub(crate) struct Granted<'a> {
    /// The first field, because it must be dropped before the connection, which would otherwise close the session.
    unless_answered: GivenUp,
    options: &'a ClientOptions,
    host: String,
    /// The session timeout that the server has granted.
    pub(crate) timeout: Duration,
    ensemble: ZooKeeper,
}

impl Granted<'_> {
    pub(crate) fn server(&self) -> &str {
        without_chroot(self.options, &self.host)
    }

    /// The last step: the quorum has answered, and the client is logged in. The session has to know before this what was
    /// granted.
    pub(crate) async fn prove(mut self) -> Result<Attached, Failure> {
        let (options, ensemble) = (self.options, &self.ensemble);
        // The lease is counted from before the write. Both questions are asked together, because no hold gets a new lease
        // before this is done.
        let sent = clock::now();
        let (is_answered, is_logged_in) =
            tokio::join!(ensemble.barrier(), ensemble.is_logged_in(options, false));
        // That the login is refused is certain, while the quorum's answer may only be late.
        if !is_logged_in {
            return Err(Failure::Refused(not_logged_in(options, &self.host)));
        }
        if !is_answered {
            return Err(Failure::TryAgain("the quorum does not answer".to_owned()));
        }
        // Only now may a drop of the connection close the session again.
        self.unless_answered.0 = None;
        Ok(Attached { ensemble: self.ensemble, sent })
    }
}

/// Attaches a connection to the session of a dead process. The host at `turn` is tried first. Dropping the connection closes
/// the session.
///
/// Nobody waits for anything else on it. So it does not matter how much of its past the server knows, nor whether the server
/// has logged in the client, unless the server refuses clients that are not logged in.
pub(crate) async fn take(
    options: &ClientOptions,
    info: SessionInfo,
    timeout: Duration,
    turn: usize,
) -> Result<ZooKeeper, Failure> {
    let SessionInfo { library, servers } = info;
    let number = library.id();
    let (host, _) = accepting(&options.hosts, turn).await.map_err(Failure::TryAgain)?;
    let connector = logging_in(options, &host).await?;
    let connector = encryption::with_tls(options, connector).await.map_err(Failure::Refused)?;
    // If it gets no further than this, the session is over no later than it would be by itself.
    let connector = connector.with_session(library).with_session_timeout(timeout);
    let failed = |error| not_attached(options, &host, &error);
    let ensemble = connect(options, connector.with_fail_eagerly(), &host, servers, failed).await?;
    if ensemble.connection.client.session_id() != number {
        return Err(Failure::GivenUp(ANOTHER_SESSION.to_owned()));
    }
    Ok(ensemble)
}

/// Returns what an error of the library means for a session that it was asked to take up again.
fn not_attached(options: &ClientOptions, host: &str, error: &Error) -> Failure {
    match error {
        Error::SessionExpired => Failure::SessionOver,
        error => not_connected(options, host, error),
    }
}

/// Returns what an error of the library means, whatever it was asked for.
fn not_connected(options: &ClientOptions, host: &str, error: &Error) -> Failure {
    match error {
        Error::AuthFailed => Failure::Refused(not_let_in(options)),
        // It was given one, which had just accepted a connection.
        Error::NoHosts => Failure::TryAgain(format!("{host} accepts connections but opens no session")),
        error => Failure::TryAgain(fails(without_chroot(options, host), error)),
    }
}

/// Returns which server did not open a session, and why.
fn fails(server: &str, error: &Error) -> String {
    match error {
        Error::ConnectionLoss => format!("{server} broke off the connection before there was a session"),
        Error::Timeout => format!("{server} did not answer in time"),
        error => format!("{server} opened no session: {error}"),
    }
}

/// Returns the meaning of a connection that was ended because of a breach of the protocol.
fn not_zookeeper(breach: &str) -> String {
    format!(
        "sends what is not ZooKeeper's protocol ({breach}): is it a ZooKeeper server, and is there a proxy \
         in between?"
    )
}

/// Returns the server, without the chroot that the library was given with it.
fn without_chroot<'a>(options: &ClientOptions, host: &'a str) -> &'a str {
    host.strip_suffix(&options.hosts.chroot).unwrap_or(host)
}

/// Describes what is wrong with a granted session timeout, if anything. With a very short one, the heartbeat would never
/// pause.
fn absurd(granted: Duration, asked: Duration) -> Option<String> {
    let is_absurd = granted < SHORTEST_SESSION_TIMEOUT || granted > LONGEST_GRANT.max(asked);
    is_absurd.then(|| {
        format!(
            "the server grants a session timeout of {granted:?}, but {asked:?} was asked for: no lock can rely on that"
        )
    })
}

/// Gives a connection up when this is dropped.
struct GivenUp(Option<Arc<Serving>>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(serving) = &self.0 {
            serving.give_up();
        }
    }
}

/// Asks a server for its version on this connection, if that is necessary. It takes at most a part of the time for opening a
/// session. If there is no answer, the server is taken for a current version; if that is wrong, it shows later.
async fn asked_for_version(options: &ClientOptions, stream: TcpStream) -> String {
    let is_asked = options.server_level().is_none();
    // Only servers from 3.5 on support TLS.
    #[cfg(feature = "tls")]
    let is_asked = is_asked && options.tls.is_none();
    let mut answer = Vec::new();
    if is_asked {
        let bound = times::ATTACH.of(options.session_timeout.min(options.connect_timeout)).min(ANSWER);
        let _ = clock::timeout(bound, asked(&stream, &mut answer)).await;
        tracing::debug!(answer = %String::from_utf8_lossy(&answer).trim_end(), "the server was asked for its version");
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads the first line of the server's answer.
async fn asked(stream: &TcpStream, answer: &mut Vec<u8>) -> std::io::Result<()> {
    stream.writable().await?;
    // The buffer of a new connection has room for a four-letter command.
    stream.try_write(b"srvr")?;
    let mut chunk = [0; LONGEST_ANSWER];
    while answer.len() < LONGEST_ANSWER && !answer.contains(&b'\n') {
        stream.readable().await?;
        match stream.try_read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => answer.extend(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the first host to accept a connection, in the library's form, and that connection. The host at `turn` is tried
/// first, and the next one when that fails or takes too long.
async fn accepting(hosts: &Hosts, turn: usize) -> Result<(String, TcpStream), String> {
    let count = hosts.servers.len();
    let mut left = hosts.servers.iter().cycle().skip(turn % count).take(count);
    let mut tries = JoinSet::new();
    let mut problem = String::new();
    loop {
        let next = left.next();
        let is_last = next.is_none();
        if let Some((host, port)) = next.cloned() {
            tries.spawn(async move {
                sockets::connect((host.as_str(), port)).await.map(|stream| (written(&host, port), stream))
            });
        }
        let accepted = tokio::select! {
            accepted = tries.join_next() => accepted,
            () = clock::sleep(NEXT_HOST), if !is_last => continue,
        };
        match accepted {
            Some(Ok(Ok((host, stream)))) => return Ok((host + &hosts.chroot, stream)),
            Some(Ok(Err(error))) => problem = error.to_string(),
            Some(Err(_)) => {}
            None if is_last => return Err(problem),
            None => {}
        }
    }
}

/// Connects to this host. `failed` says what an error of the library means.
async fn connect(
    options: &ClientOptions,
    mut connector: Connector,
    host: &str,
    servers: Servers,
    failed: impl Fn(Error) -> Failure,
) -> Result<ZooKeeper, Failure> {
    let level = servers.level();
    if level == ServerLevel::V3_4 {
        connector = connector.with_server_version(3, 4, 0);
    }
    let spawned = Spawned::default();
    let connected = spawning(&spawned, encryption::connect(options, connector, host)).await;
    let client = Arc::new(connected.map_err(|error| match (&error, spawned.breach()) {
        // The library has lost its connection to the only host that it was given.
        (Error::NoHosts, Some(breach)) => Failure::NotZooKeeper {
            server: without_chroot(options, host).to_owned(),
            why: not_zookeeper(breach),
        },
        _ => failed(error),
    })?);
    // Nothing has polled the task so far, so `Serving` sees every change of the connection's state.
    let task = spawned.take();
    let library = task.ok_or_else(|| failed(unexpected("no task serves the connection")))?;
    let serving = Serving::start(&client, library, level);
    let access = NodeList::of(&options.access);
    let watches = Watches::of(serving.clone());
    Ok(ZooKeeper { connection: Connection { client, serving, watches, access, level, servers } })
}
