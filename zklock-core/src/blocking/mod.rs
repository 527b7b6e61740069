//! The same API for threads: calls that block. One I/O thread serves the whole process.
//!
//! The thread that waits polls the future itself. So that thread is the owner of the lock. It keeps the deadline by its own
//! clock, even if the I/O thread is late. An [`Interrupt`] from any other thread ends the wait at once.
//!
//! Do not make these calls in an asynchronous task: they would block its thread.
//!
//! # Errors
//!
//! A call fails like the asynchronous call of the same name does. It can also fail with:
//!
//! * [`ErrorKind::Forked`] in a child process, if the parent has used the client;
//! * [`ErrorKind::Closed`] if the program has closed [descriptors](self#descriptors) of this crate;
//! * [`ErrorKind::Interrupted`] when its [`Interrupt`] is triggered;
//! * [`ErrorKind::Deadlock`] in a callback of this crate, which must not wait.
//!
//! # Descriptors
//!
//! Some programs close all descriptors that they did not open, for example when they become daemons. That also closes the
//! descriptors of the I/O thread, and with them all clients of this module: calls on what they made fail with
//! [`ErrorKind::Closed`], and holds are [lost](crate::LossReason::ClientClosed). A new client works. The locks that were held
//! are free for others once the session has timed out. So become a daemon before you connect, or close the client first.
//!
//! The library notices this in the next call. Without a call, it notices in the next heartbeat, or within a third of the
//! session timeout if nothing is held. It checks a descriptor before it uses it, so it does not write to a file of the
//! program that now has the same number. This check does not help if the program closes only a few of the descriptors, or
//! closes them while another thread is in a call or a started call is running.
//!
//! The library leaves the descriptors 0 to 2 free, even if nothing is open there, except for a moment while the first client
//! of a process connects.
//!
//! # Fork
//!
//! After a fork, the child has copies of the parent's clients, locks and holds, but they still belong to the parent. Calls
//! on them fail with [`ErrorKind::Forked`], holds report that they are lost, and dropping them changes nothing. A child
//! that needs locks makes its own client, or uses a [lazy](Client::lazy) one that no process has used yet.
//!
//! A child of a process that has connected can connect only if the program has two things: the feature `fork`, and
//! stand-ins for some crates that zookeeper-client uses. Two of these crates have one thread per process, which does not
//! exist in the child. libzklock and the Python package have both. A Rust program that takes this crate from a registry
//! has neither. There, a child can connect only if its parent never has. Otherwise connecting fails with
//! [`ErrorKind::Forked`], and the child must start a new program (exec).
//!
//! To have both, enable the feature, copy the folder `zklock-core/stand-ins` from the repository, and name its crates in
//! the program's `Cargo.toml`. The last one is for the feature `tls`:
//!
//! ```toml
//! [patch.crates-io]
//! async-io = { path = "stand-ins/async-io" }
//! async-net = { path = "stand-ins/async-net" }
//! zklock-frames = { path = "stand-ins/frames" }
//! futures-rustls = { path = "stand-ins/futures-rustls" }
//! ```
//!
//! This section is about programs with several threads, for which this module is made. Do not fork a program
//! that uses the asynchronous [`Client`](crate::Client): a tokio runtime does not survive a fork.
//!
//! ```no_run
//! use std::time::Duration;
//! use zklock_core::{ClientOptions, blocking::Client};
//!
//! # fn main() -> Result<(), zklock_core::Error> {
//! let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181")?)?;
//! let lock = client.mutex("/locks/report")?;
//! let hold = lock.acquire_timeout(Duration::from_secs(5))?;
//! println!("held with token {}", hold.token());
//! hold.release()?;
//! # Ok(())
//! # }
//! ```

mod barrier;
mod client;
mod double_barrier;
mod hold;
mod home;
mod lazy;
mod lock;
mod loss;
mod member;
mod observer;
mod once;
mod run;
mod wanted;
mod watch;

#[cfg(doc)]
use crate::ErrorKind;

pub use self::{
    barrier::Barrier, client::Client, double_barrier::DoubleBarrier, hold::Hold, lazy::Lazy, lock::Lock,
    loss::Loss, member::Member, observer::Observer, once::Once, run::Run, wanted::Wanted, watch::Watch,
};
pub use crate::threads::{call::Call, interrupt::Interrupt, started::Started};
