//! One ZooKeeper server of an ensemble: how a test controls and queries it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use crate::port::Port;
use crate::process::Process;
use crate::sasl;
use crate::snapshot;
use crate::wait::until;

/// How long a server may take to serve, on a machine that is also doing other work.
pub(crate) const STARTED: Duration = Duration::from_secs(40);

const WORD: Duration = Duration::from_secs(2);

/// A ZooKeeper server, and its [`Process`]. All methods can be called from any thread.
#[derive(Debug)]
pub struct Server {
    number: usize,
    port: Port,
    secure_port: Option<Port>,
    process: Process,
}

impl Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Server {
    pub(crate) fn new(
        number: usize,
        port: Port,
        secure_port: Option<Port>,
        home: &Path,
        command: &[String],
    ) -> io::Result<Self> {
        Ok(Self { number, port, secure_port, process: Process::new(home, command)? })
    }

    /// Its number in the ensemble, from 1: ZooKeeper's `myid`.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The address for clients that use TLS.
    ///
    /// # Panics
    ///
    /// If the ensemble was built without [`Builder::tls`](crate::Builder::tls).
    #[track_caller]
    pub fn tls_address(&self) -> SocketAddr {
        self.secure_port.as_ref().expect("an ensemble built with tls(true)").address()
    }

    /// Ends it if it runs, starts it again on its data, and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it does not serve in time. In an ensemble it cannot while a majority is down: see [`Process::start`].
    #[track_caller]
    pub fn restart(&self) {
        self.stop();
        self.start();
        self.wait_until_serving(STARTED);
    }

    /// Sets the number that the next sequential child of a node gets. An operator could only do that by creating so
    /// many children. Instead, the snapshot that the server writes on start is patched, and the server starts from
    /// that. So it is started twice.
    ///
    /// Only for a single server: others of an ensemble would go on with their own number.
    ///
    /// # Panics
    ///
    /// If there is no such node, or the server is an embedded one, which keeps nothing: see
    /// [`Builder::real`](crate::Builder::real), and `zklock_testkit::Server::set_sequence`.
    #[track_caller]
    pub fn set_sequence(&self, path: &str, number: i32) {
        self.restart();
        self.stop();
        let set = snapshot::set_sequence(&self.home().join("data"), path, number);
        self.start();
        self.wait_until_serving(STARTED);
        set.unwrap_or_else(|reason| panic!("server {}: the sequence of {path}: {reason}", self.number));
    }

    /// Like [`restart`](Self::restart), with one more line in its `zoo.cfg`. If a line is given twice, the last one
    /// counts.
    ///
    /// # Panics
    ///
    /// If it does not serve in time.
    #[track_caller]
    pub fn restart_with(&self, line: &str) {
        self.stop();
        let mut file =
            OpenOptions::new().append(true).open(self.home().join("zoo.cfg")).expect("its zoo.cfg");
        writeln!(file, "{line}").expect("its zoo.cfg can be written");
        self.start();
        self.wait_until_serving(STARTED);
    }

    /// Like [`restart`](Self::restart), with these users and passwords instead of those of
    /// [`Builder::sasl`](crate::Builder::sasl).
    ///
    /// # Panics
    ///
    /// If it does not serve in time.
    #[track_caller]
    pub fn set_sasl_users(&self, users: &[(&str, &str)]) {
        sasl::write(self.home(), users).expect("its JAAS file can be written");
        self.restart();
    }

    /// Waits until it serves.
    ///
    /// # Panics
    ///
    /// If it does not by `bound`. The message has the end of its log.
    #[track_caller]
    pub fn wait_until_serving(&self, bound: Duration) {
        self.await_serving(bound).unwrap_or_else(|reason| panic!("{reason}"));
    }

    pub(crate) fn await_serving(&self, bound: Duration) -> Result<(), String> {
        let fine = until(bound, || self.is_serving() || self.pid().is_none()) && self.is_serving();
        let reason = || format!("server {} does not serve. Its log:\n{}", self.number, self.log_tail());
        if fine { Ok(()) } else { Err(reason()) }
    }

    /// Whether it answers, and is in contact with its quorum.
    pub fn is_serving(&self) -> bool {
        self.mode().is_some()
    }

    /// `leader`, `follower`, `standalone`, or `None` if it does not serve.
    pub fn mode(&self) -> Option<String> {
        let answer = self.word("srvr").ok()?;
        answer.lines().find_map(|line| line.strip_prefix("Mode: ").map(str::to_owned))
    }

    /// Sends a four-letter word and returns the answer.
    pub fn word(&self, word: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address(), WORD)?;
        stream.set_read_timeout(Some(WORD))?;
        stream.write_all(word.as_bytes())?;
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "the server is silent"),
            _ => error,
        })?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// The server's own figures; empty if it does not answer.
    pub fn mntr(&self) -> BTreeMap<String, String> {
        let answer = self.word("mntr").unwrap_or_default();
        let pairs = answer.lines().filter_map(|line| line.split_once('\t'));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}
