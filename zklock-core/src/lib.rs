//! Distributed locks on Apache ZooKeeper, for programs that must find out when they lose a lock.
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
//! For threads without an async runtime, [`blocking`] has the same API.
//!
//! # Kinds of lock
//!
//! | kind | made by | shares its queue with |
//! |---|---|---|
//! | mutex | [`Client::mutex`] | Curator's `InterProcessMutex` and `LeaderSelector`, go-zookeeper; kazoo, `WriteLock` |
//! | read/write lock | [`Client::read`], [`Client::write`] | Curator's `InterProcessReadWriteLock`; kazoo |
//! | semaphore | [`Client::semaphore`] | Curator's `InterProcessSemaphoreV2`; with one permit, `InterProcessSemaphoreMutex` |
//! | set of locks | [`Client::all`] | whatever its locks do |
//! | any one of several | [`Client::any`] | whatever its locks do |
//! | election | [`Client::election`] | Curator's `LeaderLatch` |
//! | exclusive | [`Client::exclusive`] | any client that creates the node `lock` |
//! | barrier | [`Client::barrier`] | Curator's `DistributedBarrier` |
//! | double barrier | [`Client::double_barrier`] | Curator's `DistributedDoubleBarrier` |
//!
//! Acquiring any of these locks gives a [`Hold`]. The [`Dialect`] decides which library sees which contenders. A contender that
//! cannot see ours is [refused](ErrorKind::ForeignContender), because both could hold the lock at once.
//!
//! # What a hold promises
//!
//! While [`Hold::valid_for`] is greater than zero, nobody else holds the lock. This is a lease, not a guess. It is counted from
//! the sending of the last write that a quorum committed, on a clock that keeps running while the machine is suspended, and it
//! ends before the ensemble can give the lock to anybody else. An answer is a promise until its end: who looks once, and works for
//! as long as the answer says, works alone.
//!
//! A lease cannot keep the process from being paused just after it looked. If that matters, let the resource that the lock
//! guards refuse any [token](Hold::token) smaller than the largest it has seen, or write to ZooKeeper itself with
//! [`Hold::guarded`].
//!
//! The lease rests on three assumptions. The servers' tick is at most half of the session timeout, which they enforce unless
//! `minSessionTimeout` was lowered. No server grants less than half of the timeout that another one granted. Clocks run
//! equally fast, within two percent.
//!
//! # Servers
//!
//! Any ZooKeeper from 3.4 on. Servers before 3.5 cannot create a node in one transaction with other operations. There, sets of
//! locks, several permits at once, the read side taken while holding the write side, double barriers, and guarded writes that
//! create a node are [refused](ErrorKind::Refused) before anything is sent. The client asks the servers for their version,
//! unless [`ClientOptions::server_version`] gives it.
//!
//! # Layers
//!
//! Data flows one way. A module knows only those below it.
//!
//! ```text
//!  face                                              what the C and Python layers need
//!  blocking                                          the same for threads
//!  threads                                           the I/O thread, and how other threads wait for it
//!  mutex   rwlock   semaphore   all   any            the kinds of lock; each only makes claims
//!  election   exclusive   barrier   double_barrier   and the two kinds of barrier
//!  client   spec   lock   hold   guarded   token     the public API
//!  diagnose   handshake   probe                      why no session could be opened
//!  connection                                        how a client is connected
//!  session_key   guardian                            ends the session of a dead process; starts the process that does so
//!  contenders   observe   browse                     who holds and waits for locks, and where
//!  local_queue   held_at                             one process's queue in front of a lock, and what it holds
//!  acquisition   guard   remembered                  one attempt to hold a lock; foreign contenders; who was ahead of it
//!  double_barrier::membership                        one member of a double barrier
//!  driver                                            runs any machine, owns its nodes
//!  set                                               whether a set of locks holds
//!  ask                                               questions to the ensemble, repeated until it answers
//!  pool   heartbeat                                  sessions that follow one another, connected and kept alive
//!  session                                           one session: its lease, its holds
//!  node_data                                         the data of our nodes
//!  zookeeper -> ensemble                             the client library, behind a narrow trait; `fake` in tests
//!  options   tls   path                              how and where to connect, checked
//!  credentials   kerberos   access                   who we log in as, and who may use what we create
//!  level                                             what servers of each version can do
//!  prometheus -> stats -> histogram                  the counters, and their text format
//!  leaving                                           what a call that fails leaves at the servers
//!  progress   owner   wait   error                   the progress of attempts, owners of locks, waits and errors
//!  clock   platform   sync   files   parts   sockets time, randomness, mutexes, files that may change, rows of bytes, sockets
//!  zklock_machine                                    the algorithm, pure: a crate of its own
//! ```

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod attempt;
mod base;
pub mod blocking;
mod client;
mod connect;
#[doc(hidden)]
pub mod face;
mod hold;
mod operator;
mod session;
#[allow(clippy::disallowed_methods, reason = "its deadlines are those of threads outside of the runtime")]
mod threads;
mod zookeeper;

#[cfg(feature = "tls")]
pub use self::connect::tls::{PassPhrase, Tls};
pub use self::{
    base::error::{Conflict, Error, ErrorKind},
    base::histogram::Histogram,
    base::owner::Owner,
    base::stats::{AcquireOutcome, Stats},
    base::wait::{Deadline, Wait},
    client::barrier::Barrier,
    client::client::Client,
    client::double_barrier::DoubleBarrier,
    client::lock::Lock,
    client::member::Member,
    client::semaphore::check_permits,
    client::spec::{LockSpec, check_local_turns},
    connect::access::{Access, AccessEntry, AccessList, Rights},
    connect::credentials::Credentials,
    connect::options::ClientOptions,
    connect::path::check_lock_path,
    hold::guarded::{Committed, Guarded},
    hold::hold::{Hold, HoldState},
    hold::token::Token,
    operator::contenders::QueuedContender,
    operator::observe::Observer,
    session::connection::{Connection, ConnectionState},
    session::guardian::Guardian,
    session::session_key::{SessionEnd, SessionKey},
    zookeeper::ensemble::NodeData,
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

/// The examples in the documentation, compiled.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../../docs/getting-started/rust.md")]
    struct GettingStarted;
    #[doc = include_str!("../../docs/operations.md")]
    struct Operations;
    #[doc = include_str!("../../docs/securing.md")]
    struct Securing;
    #[doc = include_str!("../../docs/testing.md")]
    struct Testing;
}
