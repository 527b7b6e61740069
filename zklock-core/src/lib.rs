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
//!  blocking                                    the same for threads; face: for other languages
//!  threads                                     our threads, and how others wait for them
//!  mutex   rwlock   semaphore   all            the kinds of lock: each no more than what it claims
//!  election   exclusive   barrier
//!  client   lock   hold   token   guarded      the public face
//!  queued   observe   set                      who else is there, and whether a set of locks holds
//!  line   place                                one process's queue in front of a lock, and what it holds
//!  driver   guard                              runs an attempt, owns its nodes; looks out for strangers
//!  pool    heartbeat                           sessions that follow one another, connected and kept alive
//!  session                                     one session: its lease, its holds
//!  zookeeper -> ensemble                       the client library, behind a narrow trait
//!  machine                                     the algorithm, pure
//! ```

#![forbid(unsafe_code)]

#[deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]
pub mod machine;

// Everything that touches the world is left out where only the machine is wanted.
#[cfg(feature = "client")]
mod all;
#[cfg(feature = "client")]
mod ask;
#[cfg(feature = "client")]
mod barrier;
#[cfg(feature = "client")]
pub mod blocking;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod diagnose;
#[cfg(feature = "client")]
mod double_barrier;
#[cfg(feature = "client")]
mod driver;
#[cfg(feature = "client")]
mod election;
#[cfg(feature = "client")]
mod ensemble;
#[cfg(feature = "client")]
mod error;
#[cfg(feature = "client")]
mod exclusive;
#[cfg(feature = "client")]
#[doc(hidden)]
pub mod face;
#[cfg(feature = "client")]
mod guard;
#[cfg(feature = "client")]
mod guarded;
#[cfg(feature = "tls")]
mod handshake;
#[cfg(feature = "client")]
mod heartbeat;
#[cfg(feature = "client")]
mod hold;
#[cfg(feature = "client")]
mod line;
#[cfg(feature = "client")]
mod lock;
#[cfg(feature = "client")]
mod locks;
#[cfg(feature = "client")]
mod mutex;
#[cfg(feature = "client")]
mod observe;
#[cfg(feature = "client")]
mod options;
#[cfg(feature = "client")]
mod owner;
#[cfg(feature = "client")]
mod path;
#[cfg(feature = "client")]
mod place;
#[cfg(feature = "client")]
mod platform;
#[cfg(feature = "client")]
mod pool;
#[cfg(feature = "client")]
mod queued;
#[cfg(feature = "client")]
mod rwlock;
#[cfg(feature = "client")]
mod semaphore;
#[cfg(feature = "client")]
mod session;
#[cfg(feature = "client")]
mod set;
#[cfg(feature = "client")]
mod spec;
#[cfg(feature = "client")]
mod stats;
#[cfg(feature = "client")]
mod threads;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "client")]
mod token;
#[cfg(feature = "client")]
mod wait;
#[cfg(feature = "client")]
mod zookeeper;

#[cfg(feature = "tls")]
pub use self::tls::Tls;
#[cfg(feature = "client")]
pub use self::{
    barrier::Barrier,
    client::Client,
    double_barrier::{DoubleBarrier, Member},
    ensemble::NodeData,
    error::{Conflict, Error, ErrorKind, LossReason},
    guarded::{Committed, Guarded},
    hold::{Hold, HoldState},
    lock::Lock,
    machine::claim::{Foreign, Watching},
    machine::name::{Dialect, Role},
    observe::Observer,
    options::ClientOptions,
    owner::Owner,
    path::check_lock_path,
    queued::QueuedContender,
    semaphore::check_permits,
    spec::LockSpec,
    stats::Stats,
    token::Token,
    wait::{Deadline, Wait},
};

/// The examples in the README, compiled.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../README.md")]
struct Readme;
