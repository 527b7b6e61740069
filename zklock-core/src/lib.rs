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
//! if let Err(reason) = hold.run(write_the_report(hold.token())).await {
//!     eprintln!("stopped: {reason}");
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
//! | read/write lock | [`Client::read_lock`], [`Client::write_lock`] | Curator's `InterProcessReadWriteLock`; kazoo |
//! | semaphore | [`Client::semaphore`] | Curator's `InterProcessSemaphoreV2`; with one permit, `InterProcessSemaphoreMutex` |
//! | set of locks | [`Client::all`] | whatever its locks do |
//! | any one of several | [`Client::any`] | whatever its locks do |
//! | election | [`Client::election`] | Curator's `LeaderLatch` |
//! | exclusive | [`Client::exclusive`] | any client that creates the node `lock` |
//! | barrier | [`Client::barrier`] | Curator's `DistributedBarrier` |
//! | double barrier | [`Client::double_barrier`] | Curator's `DistributedDoubleBarrier` |
//!
//! A [job](Client::once) runs on one host in each period. It is a mutex with a record of the last run.
//!
//! Acquiring any of these locks gives a [`Hold`]. The [`Dialect`] decides which library sees which contenders. A contender that
//! cannot see ours is [refused](ErrorKind::ForeignContender), because both could hold the lock at once.
//!
//! # What a hold promises
//!
//! While [`Hold::valid_for`] is greater than zero, the lock is held, and no conflicting hold exists. This is a lease, not a
//! guess. It starts when the client sends the last write that a quorum committed. It is measured on a clock that keeps running
//! while the machine is suspended. It ends before the ensemble can give the lock to another client. An answer is a promise
//! until its end: if you ask once, and work for no longer than the answer says, you work alone.
//!
//! A lease cannot keep your process from being paused right after it asked. If that matters, put a [`fence`] around the
//! resource that the lock guards: a fence refuses any [token](Hold::token) smaller than the largest it has seen. Or write to
//! ZooKeeper itself with [`Hold::guarded`].
//!
//! The lease rests on three assumptions:
//!
//! * The servers' tick is at most half of the session timeout. Servers enforce this unless `minSessionTimeout` was lowered.
//! * No server grants less than half of the session timeout that another one granted.
//! * Clocks run equally fast, within two percent.
//!
//! # Servers
//!
//! ZooKeeper 3.4 or later. Servers before 3.5 cannot create a node in one transaction with other operations. With these
//! servers, the client [refuses](ErrorKind::Refused) the following before it sends anything: sets of locks, several permits at
//! once, the read side on top of the write side, double barriers, and guarded writes that create a node. The client asks the
//! servers for their version, unless [`ClientOptions::server_version`] gives it.

// The layers: a module imports from lower lines, or from its own, and never in a circle. `tests/layers.py` checks that.
//
// ```text
// .          face                                       what the C and Python layers need
// blocking   client                                     the public API for threads
//            once
//            run
//            lock observer barrier double_barrier member
//            hold loss wanted lazy
//            home
//            watch
// threads    fork_safe log                              the I/O thread, and how other threads wait for it
//            call
//            started wait
//            io interrupt
//            descriptors thread fork park
// fence      files                                      resources refuse late writes
//            stamp database
// operator   observe                                    who holds and waits; the counters as text
//            contenders prometheus
// client     client                                     the public API: a client makes locks, jobs and barriers
//            once                                       jobs that run once in each period
//            run once_spec                              one run; how a job is described
//            record                                     what is kept of the last run
//            lock barrier double_barrier member membership
//            spec                                       how a lock is described
//            all any semaphore                          rules about the claims of some kinds
// attempt    local_queue                                one process's queue in front of a lock, and its attempts
//            driver strangers set members entry         runs any machine; foreign contenders; sets; members of barriers
//            refused shared                             why it was refused; what the handles of a client share
// hold       hold                                       what a holder has
//            guarded wanted
//            grant
//            loss released token
// session    guardian connection ensemble_id            ends the session of a dead process; how a client is connected; to what
//            ask                                        questions to the servers, repeated until they answer
//            pool                                       sessions that follow one another
//            session_keeper attachment heartbeat diagnose
//            slot
//            session                                    one session: its lease, its holds
//            session_key lateness refusals seeing
//            attempt_marks nodes
// zookeeper  handshake probe                            why a server opens no session
//            connecting                                 the client library, one connection at a time
//            zookeeper password login spawning
//            operations servers connection encryption
//            checks doubts serving silence
//            answers paths rights
//            node_data                                  the data of our nodes
//            ensemble                                   the narrow trait in front of the client library
// connect    options                                    how and where to connect, checked
//            tls credentials access
//            kerberos path level
// base       leaving files                              what all others may use
//            debt
//            stats
//            lock_figures                               what is counted of the locks of one name
//            tally
//            histogram attempts outcome
//            clock duration error failure message owner platform sockets sync wait
// ```

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod attempt;
mod base;
pub mod blocking;
mod client;
mod connect;
#[doc(hidden)]
pub mod face;
pub mod fence;
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
    base::lock_figures::LockStats,
    base::outcome::AcquireOutcome,
    base::owner::Owner,
    base::stats::Stats,
    base::wait::{Deadline, Wait},
    client::barrier::Barrier,
    client::client::Client,
    client::double_barrier::DoubleBarrier,
    client::lock::Lock,
    client::member::Member,
    client::once::Once,
    client::once_spec::{AfterFailure, OnceSpec},
    client::record::{Record, RunOutcome},
    client::run::{Begun, Run, RunEntry},
    client::semaphore::check_permits,
    client::spec::{LockSpec, check_figures, check_local_turns},
    connect::access::{Access, AccessEntry, AccessList, Rights},
    connect::credentials::Credentials,
    connect::options::ClientOptions,
    connect::path::check_lock_path,
    hold::guarded::{Committed, Guarded},
    hold::hold::{Hold, HoldState},
    hold::token::Token,
    operator::contenders::QueuedContender,
    operator::observe::Observer,
    operator::prometheus::prometheus_text,
    session::connection::{Connection, ConnectionState},
    session::guardian::Guardian,
    session::session_key::{SessionEnd, SessionKey},
    zookeeper::ensemble::NodeData,
};
#[doc(inline)]
pub use zklock_machine::{
    claim::{Foreign, Watching},
    layout::InvalidPattern,
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
    #[doc = include_str!("../../docs/monitoring.md")]
    struct Monitoring;
    #[doc = include_str!("../../docs/securing.md")]
    struct Securing;
    #[doc = include_str!("../../docs/testing.md")]
    struct Testing;
}
