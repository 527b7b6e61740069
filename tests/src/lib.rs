//! The infrastructure on which zklock is tested.
//!
//! - [`Ensemble`]: real ZooKeeper servers on loopback, one or three, that can be killed, paused and restarted.
//! - [`Proxy`]: a connection that fails on demand, even at a chosen message, and that can record what goes through it.
//! - [`wire::Admin`]: an operator with a separate client, independent of the one under test.
//!
//! Everything is blocking and uses threads. So tests of asynchronous code, of C and of Python use the same
//! infrastructure, and it cannot share a bug with a runtime under test. The program `src/bin/ground.rs` makes it
//! available to other languages over stdin and stdout.

mod certificates;
mod dice;
mod embedded;
mod ensemble;
mod install;
pub mod kerberos;
mod port;
mod process;
mod proxy;
mod punctual;
mod release;
mod sasl;
pub mod secured;
mod server;
mod snapshot;
mod talk;
mod wait;
pub mod wire;

pub use certificates::Certificates;
pub use dice::Dice;
pub use embedded::embedded_program;
pub use ensemble::{Builder, Ensemble, connect_string};
pub use process::Process;
pub use proxy::{Action, Counts, Direction, Gate, Hook, Kind, Message, Proxy, Rewriter, Side, Trigger};
pub use punctual::{not_later, or_once_more};
pub use server::Server;
pub use talk::Talk;
pub use wait::until;

use std::sync::OnceLock;
use std::time::Duration;

/// One standalone server with ticks of 200 ms (so sessions of 400 ms to 4 s), started on first use, for all tests of
/// this process that do not disturb it. It ends with the process.
///
/// # Panics
///
/// If it does not start.
pub fn shared() -> &'static Ensemble {
    static SHARED: OnceLock<Ensemble> = OnceLock::new();
    SHARED.get_or_init(|| Ensemble::builder().tick(Duration::from_millis(200)).start())
}
