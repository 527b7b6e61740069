//! The ground on which zklock is tested.
//!
//! - [`Ensemble`]: real ZooKeeper servers on loopback, one or three, that can be killed, paused and restarted.
//! - [`Etcd`]: three etcd servers that can take the same.
//! - [`Proxy`]: a connection that fails on demand, also at a chosen message, and that can tell what went through it.
//! - [`wire::Admin`]: an operator with a client of its own, independent of the one under test.
//!
//! Everything is blocking and made of threads, so that a test of asynchronous code, of C or of Python finds the same
//! ground, and no bug of a runtime under test can make the ground agree with it. `src/bin/ground.rs` offers it to
//! other languages over stdin and stdout.

mod certificates;
mod dice;
mod embedded;
mod ensemble;
mod etcd;
mod install;
mod jvm;
pub mod kerberos;
mod port;
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
pub use etcd::{Etcd, Key, Member};
pub use proxy::{
    Action, Counts, Direction, Gate, Hook, Kind, Message, Proxy, Rewriter, Side, Trigger, one_flight,
};
pub use punctual::{not_later, or_once_more};
pub use server::Server;
pub use talk::Talk;
pub use wait::until;

use std::sync::OnceLock;
use std::time::Duration;

/// One standalone server with ticks of 200 ms (so sessions of 400 ms to 4 s), started at first use, for all tests of
/// this process that do no harm to it. It ends with the process.
///
/// # Panics
///
/// When it does not start.
pub fn shared() -> &'static Ensemble {
    static SHARED: OnceLock<Ensemble> = OnceLock::new();
    SHARED.get_or_init(|| Ensemble::builder().tick(Duration::from_millis(200)).start())
}
