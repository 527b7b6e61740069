//! One etcd server of a cluster: how a test controls and queries it.

use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use super::gateway::{ask, texts};
use crate::port::Port;
use crate::process::Process;

/// How long one answer may take.
const WORD: Duration = Duration::from_secs(2);

/// A real etcd server, and its [`Process`]. All methods can be called from any thread.
#[derive(Debug)]
pub struct Member {
    index: usize,
    port: Port,
    /// Held while it is in use.
    _peers: Port,
    process: Process,
}

impl Deref for Member {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
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
        home: &Path,
        command: &[String],
    ) -> io::Result<Self> {
        Ok(Self { index, port, _peers: peers, process: Process::new(home, command)? })
    }

    /// Its number in the cluster, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
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
}
