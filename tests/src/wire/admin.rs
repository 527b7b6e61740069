//! The operator, which looks at the tree and changes it while the library under test works on it.
//!
//! It has a separate session that a thread keeps alive, and it reconnects by itself, so that a test can keep one
//! `Admin` across kills and pauses of the server.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Connection, Failure, Mode, Stat, code};
use crate::wait::until;

/// How long an operation goes on trying to reach the server.
const BOUND: Duration = Duration::from_secs(15);

/// The session timeout to ask for. A server with small ticks grants less.
const SESSION: Duration = Duration::from_secs(30);

/// An operator with a separate connection to one server. Methods panic if the server cannot be reached or refuses,
/// since a test could do nothing else. The `try_` forms return the failure.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    connection: Arc<Mutex<Option<Connection>>>,
    /// Dropping it ends the thread that pings.
    _pinging: Sender<()>,
}

/// The server's answer to a client that may not read a node.
const NO_AUTH: i32 = -102;

impl Admin {
    /// Connects, and waits for the server if it is not up yet.
    ///
    /// # Panics
    ///
    /// If the server does not answer within 15 s.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap_or_else(|error| panic!("connecting to {address}: {error}"))
    }

    /// Like [`Admin::connect`], but returns the failure.
    pub fn try_connect(address: SocketAddr) -> Result<Self, Failure> {
        let connection = Arc::new(Mutex::new(None));
        let (pinging, ended) = channel();
        let admin = Self { address, connection: Arc::clone(&connection), _pinging: pinging };
        let timeout = admin.run(|connection, _| Ok(connection.timeout()))?;
        thread::spawn(move || {
            while ended.recv_timeout(timeout / 4) == Err(RecvTimeoutError::Timeout) {
                // A busy connection needs no ping.
                let Ok(mut slot) = connection.try_lock() else { continue };
                if slot.as_mut().is_some_and(|connection| connection.ping().is_err()) {
                    *slot = None;
                }
            }
        });
        Ok(admin)
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Creates a persistent node.
    #[track_caller]
    pub fn create(&self, path: &str, data: impl AsRef<[u8]>) {
        self.create_mode(path, data, Mode::Persistent);
    }

    /// Creates a node of any mode and returns its path. An ephemeral node lives as long as this `Admin` stays
    /// connected.
    #[track_caller]
    pub fn create_mode(&self, path: &str, data: impl AsRef<[u8]>, mode: Mode) -> String {
        self.must("create", path, self.try_create(path, data, mode))
    }

    /// Like [`Admin::create_mode`], but returns the failure.
    pub fn try_create(&self, path: &str, data: impl AsRef<[u8]>, mode: Mode) -> Result<String, Failure> {
        self.run(|connection, again| match connection.create(path.as_bytes(), data.as_ref(), mode) {
            // The first try may have been executed, with only its answer lost.
            Err(Failure::Server(code::NODE_EXISTS)) if again => Ok(path.to_owned()),
            other => other,
        })
    }

    /// Tries a path of any bytes, even invalid UTF-8. ZooKeeper refuses that (-8, bad arguments).
    pub fn create_raw(&self, path: &[u8], data: impl AsRef<[u8]>) -> Result<String, Failure> {
        self.run(|connection, _| connection.create(path, data.as_ref(), Mode::Persistent))
    }

    /// Creates a node and its missing persistent parents. A node that already exists is left alone.
    #[track_caller]
    pub fn create_all(&self, path: &str, data: impl AsRef<[u8]>) {
        let slashes = path.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0);
        for end in slashes.chain([path.len()]) {
            let data = if end == path.len() { data.as_ref() } else { &[] };
            match self.try_create(&path[..end], data, Mode::Persistent) {
                Ok(_) | Err(Failure::Server(code::NODE_EXISTS)) => {}
                Err(failure) => panic!("create {}: {failure}", &path[..end]),
            }
        }
    }

    /// Deletes a node.
    #[track_caller]
    pub fn delete(&self, path: &str) {
        self.must("delete", path, self.try_delete(path));
    }

    /// Like [`Admin::delete`], but returns the failure.
    pub fn try_delete(&self, path: &str) -> Result<(), Failure> {
        self.run(|connection, again| match connection.delete(path) {
            Err(Failure::Server(code::NO_NODE)) if again => Ok(()),
            other => other,
        })
    }

    /// Deletes a node and everything below it. It need not exist, and others may create nodes in it meanwhile.
    #[track_caller]
    pub fn delete_tree(&self, path: &str) {
        loop {
            for child in self.children_or_empty(path) {
                self.delete_tree(&format!("{}/{child}", path.trim_end_matches('/')));
            }
            match self.try_delete(path) {
                Err(Failure::Server(code::NOT_EMPTY)) => {}
                Err(Failure::Server(code::NO_NODE)) => return,
                deleted => return self.must("delete_tree", path, deleted),
            }
        }
    }

    /// The names of a node's children, sorted.
    #[track_caller]
    pub fn children(&self, path: &str) -> Vec<String> {
        let children = self.must("children", path, self.try_children(path));
        children.unwrap_or_else(|| panic!("children: no node {path}"))
    }

    /// The names of a node's children, sorted; empty if there is no such node.
    #[track_caller]
    pub fn children_or_empty(&self, path: &str) -> Vec<String> {
        self.must("children", path, self.try_children(path)).unwrap_or_default()
    }

    fn try_children(&self, path: &str) -> Result<Option<Vec<String>>, Failure> {
        self.run(|connection, _| children(connection, path, false))
    }

    /// A node's data.
    #[track_caller]
    pub fn data(&self, path: &str) -> Vec<u8> {
        self.must("data", path, self.run(|connection, _| connection.data(path, false))).0
    }

    /// A node's metadata, or `None` if there is no such node.
    #[track_caller]
    pub fn stat(&self, path: &str) -> Option<Stat> {
        self.must("stat", path, self.try_stat(path))
    }

    /// Like [`Admin::stat`], but returns the failure.
    pub fn try_stat(&self, path: &str) -> Result<Option<Stat>, Failure> {
        self.run(|connection, _| connection.exists(path, false))
    }

    /// Replaces a node's data.
    #[track_caller]
    pub fn set(&self, path: &str, data: impl AsRef<[u8]>) -> Stat {
        self.must("set", path, self.run(|connection, _| connection.set(path, data.as_ref())))
    }

    /// Waits until this server has caught up with the leader.
    #[track_caller]
    pub fn sync(&self, path: &str) {
        self.must("sync", path, self.run(|connection, _| connection.sync(path)));
    }

    /// Waits, with a watch, until the node has exactly `count` children (a missing node has none), and returns their
    /// names, sorted.
    ///
    /// # Panics
    ///
    /// If that is not so by `bound`.
    #[track_caller]
    pub fn wait_for_children(&self, path: &str, count: usize, bound: Duration) -> Vec<String> {
        let end = Instant::now() + bound;
        let waited = self.run(|connection, _| {
            loop {
                let seen = match children(connection, path, true)? {
                    Some(seen) => seen,
                    // It may have been created between the two checks. Then check again.
                    None if connection.exists(path, true)?.is_some() => continue,
                    None => Vec::new(),
                };
                if seen.len() == count || Instant::now() >= end {
                    return Ok(seen);
                }
                // Short waits, so that the session gets its pings. Any event is a reason to check again.
                while Instant::now() < end {
                    let pause = (Instant::now() + connection.timeout() / 4).min(end);
                    if connection.event(pause)?.is_some() {
                        break;
                    }
                    connection.ping()?;
                }
            }
        });
        let seen = self.must("wait_for_children", path, waited);
        assert!(seen.len() == count, "{path} should have {count} children by {bound:?}, and has {seen:?}");
        seen
    }

    /// Waits until a node exists, or until it does not.
    ///
    /// # Panics
    ///
    /// If that is not so by `bound`.
    #[track_caller]
    pub fn wait_for_node(&self, path: &str, there: bool, bound: Duration) {
        let fine = until(bound, || self.stat(path).is_some() == there);
        assert!(fine, "{path} should {} by {bound:?}", if there { "exist" } else { "be gone" });
    }

    /// All paths at and below `path`, sorted: what a test leaves behind.
    #[track_caller]
    pub fn tree(&self, path: &str) -> BTreeSet<String> {
        self.must("tree", path, self.try_tree(path))
    }

    /// The same, unless a listing fails.
    pub fn try_tree(&self, path: &str) -> Result<BTreeSet<String>, Failure> {
        let mut found = BTreeSet::new();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let names = match self.try_children(&path) {
                // Another test may have a node that only it may read.
                Err(Failure::Server(NO_AUTH)) => Some(Vec::new()),
                names => names?,
            };
            let Some(names) = names else { continue };
            open.extend(names.iter().map(|name| format!("{}/{name}", path.trim_end_matches('/'))));
            found.insert(path);
        }
        Ok(found)
    }

    /// Runs an operation on a live connection, and again on a new one if that fails. The operation is told when it runs
    /// again, since its first run may have been executed.
    fn run<T>(
        &self,
        mut operation: impl FnMut(&mut Connection, bool) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let end = Instant::now() + BOUND;
        let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut again = false;
        loop {
            let failure = match slot.take().map_or_else(|| Connection::open(self.address, SESSION), Ok) {
                Ok(mut connection) => match operation(&mut connection, again) {
                    Err(failure) if is_lost(&failure) => {
                        again = true;
                        failure
                    }
                    definite => {
                        *slot = Some(connection);
                        return definite;
                    }
                },
                Err(error) => Failure::Link(error),
            };
            if Instant::now() >= end {
                return Err(failure);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn must<T>(&self, what: &str, path: &str, result: Result<T, Failure>) -> T {
        result.unwrap_or_else(|failure| panic!("{what} {path} on {}: {failure}", self.address))
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Best effort, but without waiting: the server may be paused.
            connection.farewell();
        }
    }
}

fn children(connection: &mut Connection, path: &str, watch: bool) -> Result<Option<Vec<String>>, Failure> {
    match connection.children(path, watch) {
        Ok(mut names) => {
            names.sort();
            Ok(Some(names))
        }
        Err(Failure::Server(code::NO_NODE)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn is_lost(failure: &Failure) -> bool {
    match failure {
        Failure::Link(_) => true,
        Failure::Server(number) => [code::SESSION_EXPIRED, code::SESSION_MOVED, -4].contains(number),
    }
}
