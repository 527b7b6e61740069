//! `zklock testing`: a ZooKeeper server in memory.

use std::thread;
use std::time::Duration;

use clap::Args;
use zklock_testkit::Server;

use crate::duration;
use crate::failure::Failure;
use crate::output::print;

/// Start a ZooKeeper server in memory, for tests and to try things out
///
/// It prints its connect string and runs until Ctrl-C. Any ZooKeeper client can use it. It keeps its data in memory only.
/// Without --tick it grants sessions of 4 s to 40 s. The program `zklock-testkit` is the same server with orders to make it
/// fail.
#[derive(Args, Debug)]
pub(crate) struct Testing {
    /// Where to listen; port 0 takes any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:2181")]
    listen: String,

    /// ZooKeeper's unit of time: sessions last 2 to 20 ticks
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    tick: Option<Duration>,
}

impl Testing {
    pub(crate) fn execute(&self) -> Result<(), Failure> {
        let mut builder = Server::builder().address(&self.listen);
        if let Some(tick) = self.tick {
            builder = builder.tick(tick);
        }
        let server = builder.start().map_err(|error| {
            Failure::other(format!("{error}; --listen 127.0.0.1:0 takes any port that is free"))
        })?;
        print(&format!("{}\n", server.connect_string()))?;
        loop {
            thread::park();
        }
    }
}
