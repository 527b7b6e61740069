//! `zklock quickstart`: four workers share a lock, and two of them come to grief.
//!
//! ```text
//!  play -> stage    the processes of the workers, and the one pipe by which they report
//!       -> ledger   the resource that the lock is for
//!       -> screen   lines, and on a terminal a picture of the queue
//!  worker           what each of those processes does
//! ```

mod ledger;
mod play;
mod screen;
mod stage;
mod worker;

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::Args;
use zklock_core::ClientOptions;
use zklock_testkit::Server;

use crate::connect::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;
use play::Play;
use stage::Stage;

const LOCK: &str = "/zklock-quickstart";

/// Short, so that nobody waits long for the lock of a worker that was killed. A real server may grant more.
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to look for a server, unless an option or a variable says it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// See four workers share a lock, on a server in memory
///
/// Four workers, each a process of its own, share the lock /zklock-quickstart and write to one ledger. One is killed while it holds
/// the lock: the next one gets it. One is stopped while it holds the lock, and wakes when another has it: the ledger refuses its late
/// write. It needs nothing installed. ZKLOCK_HOSTS is not used: to see it on an ensemble of yours, name that with --connect.
#[derive(Args, Debug)]
pub(crate) struct Quickstart {
    /// Use these servers, host:port,host:port; a /chroot may follow. The other options of the connection apply to them
    #[arg(long, value_name = "HOSTS")]
    connect: Option<String>,
}

/// The first word of a worker's command line, by which `main` knows it. The worker's name follows, and then the words of
/// our command line.
pub(crate) const WORD: &str = "__worker";

impl Quickstart {
    /// Runs the quickstart. The workers get the words of the command line, too.
    pub(crate) fn execute(&self, connection: &Connection, words: &[OsString]) -> Result<(), Failure> {
        match self.on_ensemble(connection) {
            Some(connection) => {
                Play::new(connection.options()?)?.perform(|count| Stage::on_ensemble(count, words))
            }
            None => in_memory(),
        }
    }

    /// Does the work of the worker with this name.
    pub(crate) fn work(&self, connection: &Connection, name: &OsStr) -> Result<(), Failure> {
        let connection = self.on_ensemble(connection);
        let connection = connection.ok_or_else(|| Failure::usage("a worker needs servers"))?;
        worker::work(&connection, &name.to_string_lossy())
    }

    fn on_ensemble(&self, connection: &Connection) -> Option<Connection> {
        let mut connection = connection.clone();
        connection.hosts = Some(self.connect.as_ref().or(connection.hosts_given())?.clone());
        connection.session_timeout.get_or_insert(SESSION_TIMEOUT);
        connection.connect_timeout.get_or_insert(CONNECT_TIMEOUT);
        Some(connection)
    }
}

/// Runs it on a server in memory. Nothing that the environment says about an ensemble applies.
fn in_memory() -> Result<(), Failure> {
    // The ticks are short enough for sessions of 2 s.
    let server = Server::builder().tick(Duration::from_millis(500)).start();
    let server = server.map_err(|error| Failure::new(Exit::Other, error.to_string()))?;
    let hosts = server.connect_string();
    print(&format!("A ZooKeeper server in memory, for this run alone: {hosts}\n"))?;
    Play::new(ClientOptions::new(&hosts)?)?.perform(|count| Stage::in_memory(count, &hosts))
}
