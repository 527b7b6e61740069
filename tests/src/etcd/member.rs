//! One etcd server of a cluster: how a test controls and queries it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::gateway::{ask, texts};
use crate::jvm::Jvm;
use crate::port::Port;

/// How long one answer may take.
const WORD: Duration = Duration::from_secs(2);

/// A real etcd server. All methods can be called from any thread.
#[derive(Debug)]
pub struct Member {
    index: usize,
    port: Port,
    /// Held while it is in use.
    _peers: Port,
    home: PathBuf,
    process: Mutex<Jvm>,
    /// For threads that cannot wait while it is being ended.
    pid: AtomicI32,
}

/// The status that a server reports.
#[derive(Debug)]
pub(super) struct Status {
    pub(super) id: u64,
    /// The id of the server that it follows, or its own; 0 if it knows none.
    pub(super) leader: u64,
    pub(super) term: u64,
    pub(super) version: String,
}

impl Member {
    pub(super) fn new(
        index: usize,
        port: Port,
        peers: Port,
        home: PathBuf,
        command: &[String],
    ) -> io::Result<Self> {
        let process = Mutex::new(Jvm::new(&home, command)?);
        Ok(Self { index, port, _peers: peers, home, process, pid: AtomicI32::new(0) })
    }

    /// Its number in the cluster, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The folder with its data and log.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The number of the process that was started last.
    pub(super) fn pid(&self) -> i32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Ends it with SIGKILL, and returns when it is gone.
    pub fn kill(&self) {
        self.process().kill();
    }

    /// Stops it with SIGSTOP: its connections stay open, and nothing answers. Returns when all its threads have stopped.
    pub fn pause(&self) {
        self.process().pause();
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&self) {
        self.process().resume();
    }

    /// Ends it in an orderly way (SIGTERM), and returns when it is gone.
    pub fn stop(&self) {
        self.process().stop();
    }

    /// Starts it on its data, if it does not run, and returns at once: without a quorum it would never serve.
    ///
    /// # Panics
    ///
    /// When the process cannot be started.
    #[track_caller]
    pub fn start(&self) {
        let mut process = self.process();
        process.start().unwrap_or_else(|error| panic!("starting server {}: {error}", self.index));
        self.pid.store(process.pid().unwrap_or(0), Ordering::Relaxed);
    }

    /// Whether it answers a request that needs the quorum.
    pub fn is_serving(&self) -> bool {
        let answer = ask(self.address(), "/health", None, WORD);
        answer.is_ok_and(|answer| texts(&answer, "health").next() == Some("true"))
    }

    /// The status that it reports; `None` if it does not answer.
    pub(super) fn status(&self) -> Option<Status> {
        let answer = ask(self.address(), "/v3/maintenance/status", Some("{}"), WORD).ok()?;
        // A value of 0 may be left out.
        let number = |name| texts(&answer, name).next().map_or(Some(0), |text| text.parse().ok());
        Some(Status {
            id: number("member_id")?,
            leader: number("leader")?,
            term: number("raft_term")?,
            version: texts(&answer, "version").next()?.to_owned(),
        })
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        self.process().log_tail()
    }

    fn process(&self) -> MutexGuard<'_, Jvm> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
