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
//! | any one of several | [`Client::any`] | whatever its locks do |
//! | election | [`Client::election`] | Curator's `LeaderLatch` |
//! | exclusive | [`Client::exclusive`] | any client that creates the node `lock` |
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
//! # Servers
//!
//! Any ZooKeeper from 3.4 on. Servers before 3.5 cannot create a node in one transaction with something else: so sets of locks,
//! several permits at once, the read side within the own write side, double barriers, and guarded writes that create a node are
//! [refused](ErrorKind::Refused) there, before anything is sent. The servers are asked for their version, unless
//! [`ClientOptions::server_version`] says it.
//!
//! # Layers
//!
//! Data flows one way; a room knows those below it.
//!
//! ```text
//!  face                                              what faces for other languages need, such as C and Python
//!  blocking                                          the same for threads
//!  threads                                           our threads, and how others wait for them
//!  mutex   rwlock   semaphore   all   any            the kinds of lock: each no more than what it claims
//!  election   exclusive   barrier   double_barrier   and the two kinds of barrier
//!  client   spec   lock   hold   guarded   token     the public face
//!  diagnose   handshake   probe                      why no session could be opened
//!  connection                                        how a client is connected
//!  session_key   guardian                            ends the session of a process that is dead; starts what does so
//!  contenders   observe   browse                     what others hold and wait for, and where
//!  local_queue   held_at                             one process's queue in front of a lock, and what it holds
//!  acquisition   guard   remembered                  one attempt to hold a lock; looks out for strangers; who was in its way
//!  double_barrier::membership                        one member of a double barrier
//!  driver                                            runs any machine, owns its nodes
//!  set                                               whether a set of locks holds
//!  ask                                               questions to the ensemble, asked until it answers
//!  pool   heartbeat                                  sessions that follow one another, connected and kept alive
//!  session                                           one session: its lease, its holds
//!  node_data                                         what nodes say to those who read them
//!  zookeeper -> ensemble                             the client library, behind a narrow trait; `fake` in tests
//!  options   tls   path                              how to connect, and where; checked
//!  credentials   kerberos   access                   as whom, and who may use what is created
//!  level                                             what servers of a version know
//!  prometheus -> stats -> histogram                  what is counted, and the text of it
//!  progress   owner   wait   error                   how far attempts are, owners of locks, waits and errors, for all of these
//!  clock   platform   sync   files   parts           time, randomness, mutexes, files that are read again, rows of bytes
//!  zklock_machine                                    the algorithm, pure: a crate of its own
//! ```

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod access;
mod acquisition;
mod all;
mod any;
mod ask;
mod barrier;
pub mod blocking;
mod browse;
mod client;
mod clock;
mod connection;
mod contenders;
mod credentials;
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
mod files;
mod guard;
mod guarded;
mod guardian;
#[cfg(feature = "tls")]
#[allow(clippy::disallowed_methods, reason = "it looks at hosts, which take real time")]
mod handshake;
mod heartbeat;
mod held_at;
mod histogram;
mod hold;
#[cfg(feature = "kerberos")]
mod kerberos;
mod level;
mod local_queue;
mod lock;
mod mutex;
mod node_data;
mod observe;
mod options;
mod owner;
mod parts;
mod path;
mod platform;
mod pool;
#[allow(clippy::disallowed_methods, reason = "it looks at hosts, which take real time")]
mod probe;
mod progress;
mod prometheus;
mod remembered;
mod rwlock;
mod semaphore;
mod session;
mod session_key;
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
pub use self::tls::{PassPhrase, Tls};
pub use self::{
    access::{Access, AccessEntry, AccessList, Rights},
    barrier::Barrier,
    client::Client,
    connection::{Connection, ConnectionState},
    contenders::QueuedContender,
    credentials::Credentials,
    double_barrier::{DoubleBarrier, Member},
    ensemble::NodeData,
    error::{Conflict, Error, ErrorKind},
    guarded::{Committed, Guarded},
    guardian::Guardian,
    histogram::Histogram,
    hold::{Hold, HoldState},
    lock::Lock,
    observe::Observer,
    options::ClientOptions,
    owner::Owner,
    path::check_lock_path,
    semaphore::check_permits,
    session_key::{SessionEnd, SessionKey},
    spec::{LockSpec, check_local_turns},
    stats::{AcquireOutcome, Stats},
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

/// The same of the documentation.
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_picture_of_the_layers_has_every_module() {
        let source = include_str!("lib.rs");
        let picture = source.split("```text").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let is_named =
            |module: &str| picture.split(|c: char| c != '_' && !c.is_alphabetic()).any(|word| word == module);
        let declared = source.lines().filter_map(|line| {
            let line = line.strip_prefix("pub ").unwrap_or(line);
            line.strip_prefix("mod ")?.strip_suffix(';')
        });
        let missing: Vec<_> = declared.filter(|module| !is_named(module)).collect();
        assert_eq!(missing, [""; 0]);
    }
}
