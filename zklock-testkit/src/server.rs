//! The server as its users see it.

mod builder;

pub use builder::Builder;

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::fault::{Fault, Injected};
use crate::hub::{Hub, State};
use crate::state::node::{Lifetime, Node};
use crate::state::settings::Settings;
use crate::wire::profile::{Profile, SPECIAL};
use crate::wire::{access, path};

/// How long a server waits for its threads when it ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// A ZooKeeper server in this process, **for development and tests**. It keeps everything in memory, and loses it when it
/// is dropped.
///
/// It listens on loopback, on its own port, and any ZooKeeper client can use it.
///
/// # Examples
///
/// ```
/// let server = zklock_testkit::Server::start()?;
/// // Any client, such as zklock::Client::connect(ClientOptions::new(&server.connect_string()))
/// println!("connect to {}", server.connect_string());
/// # Ok::<(), zklock_testkit::StartError>(())
/// ```
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Server {
    address: SocketAddr,
    hub: Arc<Hub>,
    /// A second handle of the listener, to shut it down. After that, even a forked child that has inherited the listener
    /// accepts no connections.
    listening: TcpStream,
    threads: Vec<JoinHandle<()>>,
}

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the embedded ZooKeeper server cannot listen on {address}: {reason}. Port 0 takes any that is free")]
pub struct StartError {
    address: String,
    #[source]
    reason: io::Error,
}

/// An open session on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Session {
    /// The number of the session, as its client knows it.
    pub id: i64,
    /// How long it lives after the server last heard from its client.
    pub timeout: Duration,
    /// Whether it has a connection now.
    pub is_connected: bool,
    /// Its ephemeral nodes, which are deleted when it ends.
    pub nodes: Vec<String>,
}

impl Server {
    /// Starts a server on a free port of 127.0.0.1, with ZooKeeper's own ticks of 2 s: sessions of 4 to 40 s.
    ///
    /// # Errors
    ///
    /// If no port or no thread is available.
    pub fn start() -> Result<Self, StartError> {
        Self::builder().start()
    }

    /// Starts to configure a server.
    pub fn builder() -> Builder {
        Builder { address: None, manual_clock: false, session_timeouts: None, settings: Settings::default() }
    }

    /// The address at which clients reach the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same address as a connect string for clients: `127.0.0.1:PORT`.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    // The clock, and sessions.

    /// Puts the server's clock forward. Sessions that are not connected, or that are frozen, end when their time is over,
    /// and delayed messages are sent. Sessions that are connected stay, because the server would have heard from them
    /// meanwhile.
    ///
    /// The clients' clocks do not move. So a holder that was frozen still believes in its lease when the server has already
    /// given the lock to the next holder. Use this to test what fencing tokens are for.
    pub fn advance(&self, by: Duration) {
        self.hub.change(|state| state.advance(by));
    }

    /// Sets the date that the server gives to what is written from now on, as the time since 1970. It runs on from there.
    /// Sessions do not notice. The date may go back, as it does when another server becomes the leader whose clock is slow.
    pub fn set_date(&self, since_1970: Duration) {
        self.hub.change(|state| state.clock.set_date(since_1970));
    }

    /// The open sessions, oldest first.
    pub fn sessions(&self) -> Vec<Session> {
        let state = self.hub.lock();
        let session = |(&id, session): (&i64, &crate::state::world::Session)| Session {
            id,
            timeout: session.timeout,
            is_connected: session.connection.is_some(),
            nodes: state.world.tree.ephemerals(id).cloned().collect(),
        };
        state.world.sessions.iter().map(session).collect()
    }

    /// Ends a session at once and deletes its ephemeral nodes, as if it had timed out; `false` if there is no session with
    /// this number.
    pub fn expire(&self, session: i64) -> bool {
        self.hub.change(|state| {
            let now = state.clock.now();
            state.world.expire(now, session)
        })
    }

    // Faults.

    /// Sets a fault for a future message.
    pub fn inject(&self, fault: Fault) -> Injected {
        self.hub.change(|state| state.script.add(fault))
    }

    /// Removes all faults that have not struck yet.
    pub fn clear_faults(&self) {
        self.hub.change(|state| state.script.clear());
    }

    /// Cuts all connections. Sessions live on, and new connections are accepted.
    pub fn cut(&self) {
        self.hub.change(State::cut_all);
    }

    /// Cuts the connection of a session; `false` if it has none.
    pub fn cut_session(&self, session: i64) -> bool {
        self.hub.change(|state| state.link_of(session).map(|link| state.cut(link)).is_some())
    }

    /// With `true`, closes each new connection at once. Existing connections stay.
    pub fn refuse(&self, refused: bool) {
        self.hub.change(|state| state.is_refusing = refused);
    }

    /// Stops answering. Connections stay open, and new ones are accepted, but nothing is carried out and nothing is
    /// answered. The clock runs on, so sessions end. A client that hangs up is only noticed after [`Server::thaw`].
    pub fn freeze(&self) {
        self.hub.change(|state| state.are_all_frozen = true);
    }

    /// Stops answering one session, on this connection and on later ones, as a broken network would; `false` if there is no
    /// session with this number.
    pub fn freeze_session(&self, session: i64) -> bool {
        self.hub.change(|state| {
            let is_there = state.world.sessions.contains_key(&session);
            state.frozen_sessions.extend(is_there.then_some(session));
            is_there
        })
    }

    /// Ends every freeze. Messages that have waited are handled now.
    pub fn thaw(&self) {
        self.hub.change(|state| {
            state.are_all_frozen = false;
            state.frozen_sessions.clear();
            state.wake_all();
        });
    }

    // The tree, as an operator at the console sees it.

    /// The names of a node's children, sorted; `None` if there is no such node.
    pub fn children(&self, path: &str) -> Option<Vec<String>> {
        let state = self.hub.lock();
        state.world.tree.node(path).map(|node| node.children.iter().cloned().collect())
    }

    /// The data of a node; `None` if there is no such node.
    pub fn data(&self, path: &str) -> Option<Vec<u8>> {
        self.hub.lock().world.tree.node(path).map(|node| node.data.clone().unwrap_or_default())
    }

    /// The session that owns an ephemeral node; `None` if there is no such node, or it is not ephemeral.
    pub fn owner(&self, path: &str) -> Option<i64> {
        self.hub.lock().world.tree.node(path)?.lifetime.owner()
    }

    /// Waits until a node has this many children, and returns their names, sorted; `None` if it does not have them by
    /// `bound`. A node that does not exist has no children. With this, a test can wait for a queue without sleeping.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let server = zklock_testkit::Server::start()?;
    /// assert_eq!(server.wait_for_children("/locks/report", 0, Duration::from_secs(1)), Some(vec![]));
    /// # Ok::<(), zklock_testkit::StartError>(())
    /// ```
    #[must_use = "there may not be so many"]
    pub fn wait_for_children(&self, path: &str, count: usize, bound: Duration) -> Option<Vec<String>> {
        self.hub.wait_for(bound, |state| match state.world.tree.node(path) {
            None => (count == 0).then(Vec::new),
            Some(node) => (node.children.len() == count).then(|| node.children.iter().cloned().collect()),
        })
    }

    /// Creates a persistent node, and its parents. If the node exists, replaces its data.
    ///
    /// # Errors
    ///
    /// If no node can have this path, or an ephemeral node is above it.
    pub fn put(&self, path: &str, data: impl AsRef<[u8]>) -> Result<(), BadPath> {
        path::validate(Profile::default(), path).map_err(|_| {
            BadPath::of(
                path,
                "it begins with '/', does not end with it, and has no empty part, '.' or '..' in it",
            )
        })?;
        self.hub.change(|state| {
            let now = state.clock.now();
            let is_missing = |path: &&str| state.world.tree.node(path).is_none();
            let missing: Vec<_> = path::upwards(path).take_while(is_missing).collect();
            let top = path::upwards(path)
                .find(|path| !is_missing(path))
                .and_then(|path| state.world.tree.node(path));
            if !missing.is_empty() && top.is_some_and(|top| top.lifetime.owner().is_some()) {
                return Err(BadPath::of(path, "an ephemeral node has no children"));
            }
            for path in missing.into_iter().rev() {
                let access = [access::Entry::anyone(access::right::ALL)].into();
                state.world.transaction(now, 0, |transaction| transaction.place(path, access));
            }
            state.world.transaction(now, 0, |transaction| transaction.replace(path, data.as_ref()));
            Ok(())
        })
    }

    /// Deletes a node and everything below it, as an operator would, except for ZooKeeper's own nodes: with `/`, the nodes
    /// of a new server remain. `false` if there was nothing to delete.
    pub fn delete(&self, path: &str) -> bool {
        if path::validate(Profile::default(), path).is_err() {
            return false;
        }
        self.hub.change(|state| {
            let now = state.clock.now();
            let all = crate::state::tree::listing(&state.world.tree, path);
            let doomed = || all.keys().rev().filter(|path| !SPECIAL.contains(&path.as_str()));
            for path in doomed() {
                state.world.transaction(now, 0, |transaction| transaction.end_node(path));
            }
            doomed().next().is_some()
        })
    }

    /// Puts back the node that was deleted last at this path, exactly as it was (its creation number too), and notifies
    /// nobody. So its deletion was confirmed but is lost, as when an ensemble loses transactions at a change of its leader.
    /// (At such a change all connections end too: [`Server::cut`].) `false` if there is a node again, if none was deleted,
    /// or if its session or its parent is gone. The last 4,096 deleted nodes can be put back.
    ///
    /// # Examples
    ///
    /// A node that was released blocks a lock:
    ///
    /// ```
    /// # use zklock::{Client, ClientOptions};
    /// # use zklock_testkit::Server;
    /// let server = Server::start()?;
    /// let zk = Client::connect(ClientOptions::new(&server.connect_string())).wait()?;
    /// let hold = zk.mutex("/locks/report")?.acquire().wait()?;
    /// let node = hold.node().to_owned();
    /// assert!(!server.bring_back(&node), "it is there");
    /// hold.release().wait()?;
    /// assert!(server.bring_back(&node));
    /// assert!(server.owner(&node).is_some(), "its session is still open");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bring_back(&self, path: &str) -> bool {
        self.hub.change(|state| state.world.bring_back(path))
    }

    /// Sets the number that the next sequential child of a node gets; `false` if there is no such node.
    ///
    /// ZooKeeper counts with signed 32-bit integers, and since 3.6 its counter sticks: every child after the one with
    /// 2147483647 gets that number again. Only a create that arrives while another is still being processed gets the number
    /// after it, which is negative. This server never processes two at once, except within one transaction.
    pub fn set_sequence(&self, path: &str, number: i32) -> bool {
        self.hub.change(|state| state.world.tree.set_created(path, number))
    }

    /// The tree below a node as text for people, one node per line.
    pub fn dump(&self, path: &str) -> String {
        let state = self.hub.lock();
        crate::state::tree::listing(&state.world.tree, path)
            .iter()
            .map(|(path, node)| line(path, node))
            .collect()
    }
}

fn line(path: &str, node: &Node) -> String {
    let lifetime = match node.lifetime {
        Lifetime::Persistent => String::new(),
        Lifetime::Ephemeral(session) => format!(" ephemeral, session {session:#x}"),
        Lifetime::Container => " container".to_owned(),
        Lifetime::Ttl(millis) => format!(" for {millis} ms"),
    };
    let data = node.data.as_deref().unwrap_or_default();
    let data = if data.is_empty() { String::new() } else { format!(" {:?}", String::from_utf8_lossy(data)) };
    format!("{path}{lifetime}{data}\n")
}

/// No node can have this path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a path of a node: {reason}")]
pub struct BadPath {
    path: String,
    reason: &'static str,
}

impl BadPath {
    fn of(path: &str, reason: &'static str) -> Self {
        Self { path: path.to_owned(), reason }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.hub.end();
        let _ = self.listening.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.hub.wait_for(FAREWELL, |state| (state.threads == 0).then_some(()));
    }
}

impl fmt::Display for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_connected { "connected" } else { "not connected" };
        write!(out, "{:#x} {state}, timeout {:?}, {} nodes", self.id, self.timeout, self.nodes.len())
    }
}
