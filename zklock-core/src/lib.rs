//! Distributed locks on Apache ZooKeeper, for programs that must be told when a lock is lost.
//!
//! ```no_run
//! use std::time::Duration;
//! use zklock_core::{Client, ClientOptions};
//!
//! # async fn example() -> Result<(), zklock_core::Error> {
//! let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181,zk3:2181")?).await?;
//! let lock = client.mutex("/locks/report")?;
//!
//! let hold = lock.acquire_timeout(Duration::from_secs(5)).await?;
//! tokio::select! {
//!     () = write_the_report(hold.token()) => {}
//!     reason = hold.lost() => eprintln!("stop: {reason:?}"),
//! }
//! hold.release().await?;
//! # Ok(())
//! # }
//! # async fn write_the_report(_: zklock_core::Token) {}
//! ```
//!
//! Threads that have no runtime find the same in [`blocking`].
//!
//! # Kinds of lock
//!
//! | kind | made by | stands in one queue with |
//! |---|---|---|
//! | mutex | [`Client::mutex`] | Curator's `InterProcessMutex` and `LeaderSelector`, go-zookeeper; kazoo, `WriteLock` |
//! | read/write lock | [`Client::read`], [`Client::write`] | Curator's `InterProcessReadWriteLock`; kazoo |
//! | semaphore | [`Client::semaphore`] | Curator's `InterProcessSemaphoreV2`; of one permit: `InterProcessSemaphoreMutex` |
//! | set of locks | [`Client::all`] | whatever its locks do |
//! | election | [`Client::election`] | Curator's `LeaderLatch` |
//! | exclusive | [`Client::exclusive`] | whoever creates the node `lock` |
//! | barrier | [`Client::barrier`] | Curator's `DistributedBarrier` |
//! | double barrier | [`Client::double_barrier`] | Curator's `DistributedDoubleBarrier` |
//!
//! To acquire any of the locks gives a [`Hold`]. Which library sees which is a matter of the [`Dialect`]; a contender that
//! cannot see ours is [refused](ErrorKind::ForeignContender), since both could hold at once.
//!
//! # What a hold promises
//!
//! While [`Hold::valid_for`] is greater than zero, nobody else holds the lock. That is a lease, not a
//! hope: it is counted from the sending of the last write that a quorum committed, on a clock that
//! runs on through suspend, and it ends before the ensemble can give the lock to another.
//!
//! It cannot promise that the process will not be paused just after it looked. Where that matters, let
//! what the lock guards refuse a smaller [token](Hold::token) than it has seen, or write to ZooKeeper
//! itself with [`Hold::guarded`].
//!
//! The lease assumes that the servers' tick is at most half of the session timeout, which they insist
//! on unless `minSessionTimeout` was lowered, that no server grants less than a fifth of the timeout that
//! another one granted, and that clocks run equally fast within two percent.
//!
//! # Layers
//!
//! Data flows one way; a room knows those below it.
//!
//! ```text
//!  face                                        what faces for other languages need, such as C and Python
//!  blocking                                    the same for threads
//!  threads                                     our threads, and how others wait for them
//!  mutex   rwlock   semaphore   all            the kinds of lock: each no more than what it claims
//!  election   exclusive   barrier
//!  client   spec   lock   hold   guarded       the public face
//!  connection                                  how a client is connected
//!  contenders   observe   set                  who else is there, and whether a set of locks holds
//!  line   place                                one process's queue in front of a lock, and what it holds
//!  acquisition   guard                         one attempt to hold a lock; looks out for strangers
//!  double_barrier::membership                  one member of a double barrier
//!  driver                                      runs any machine, owns its nodes
//!  pool    heartbeat                           sessions that follow one another, connected and kept alive
//!  session                                     one session: its lease, its holds
//!  zookeeper -> ensemble                       the client library, behind a narrow trait
//!  zklock_machine                              the algorithm, pure: a crate of its own
//! ```

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod acquisition;
mod all;
mod ask;
mod barrier;
pub mod blocking;
mod client;
mod clock;
mod connection;
mod contenders;
#[allow(clippy::disallowed_methods, reason = "it looks at hosts, which take real time")]
mod diagnose;
mod double_barrier;
mod driver;
mod election;
mod ensemble;
mod error;
mod exclusive;
#[doc(hidden)]
pub mod face;
#[cfg(test)]
mod fake;
mod guard;
mod guarded;
#[cfg(feature = "tls")]
#[allow(clippy::disallowed_methods, reason = "it looks at hosts, which take real time")]
mod handshake;
mod heartbeat;
mod hold;
mod line;
mod lock;
mod mutex;
mod observe;
mod options;
mod owner;
mod path;
mod place;
mod platform;
mod pool;
mod rwlock;
mod semaphore;
mod session;
mod set;
mod spec;
mod stats;
mod sync;
#[allow(clippy::disallowed_methods, reason = "its deadlines are those of threads outside of the runtime")]
mod threads;
#[cfg(feature = "tls")]
mod tls;
mod token;
#[allow(clippy::disallowed_methods, reason = "its deadlines are the callers'")]
mod wait;
mod zookeeper;

#[cfg(feature = "tls")]
pub use self::tls::Tls;
pub use self::{
    barrier::Barrier,
    client::Client,
    connection::{Connection, ConnectionState},
    contenders::QueuedContender,
    double_barrier::{DoubleBarrier, Member},
    ensemble::NodeData,
    error::{Conflict, Error, ErrorKind},
    guarded::{Committed, Guarded},
    hold::{Hold, HoldState},
    lock::Lock,
    observe::Observer,
    options::ClientOptions,
    owner::Owner,
    path::check_lock_path,
    semaphore::check_permits,
    spec::LockSpec,
    stats::Stats,
    token::Token,
    wait::{Deadline, Wait},
};
#[doc(inline)]
pub use zklock_machine::{
    claim::{Foreign, Watching},
    name::{Dialect, Role},
    status::LossReason,
};

use zklock_machine as machine;

/// The examples in the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
