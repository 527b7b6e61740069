//! Distributed locks on Apache ZooKeeper, for programs that must find out when they lose a lock.
//!
//! # Start here
//!
//! ```no_run
//! use std::time::Duration;
//! use zklock::{Client, ClientOptions};
//!
//! # async fn example() -> Result<(), zklock::Error> {
//! let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181,zk3:2181")).await?;
//! let lock = client.mutex("/locks/report")?;
//!
//! let hold = lock.acquire_timeout(Duration::from_secs(5)).await?;
//! if let Err(reason) = hold.run(write_the_report(hold.token())).await {
//!     eprintln!("stopped: {reason}");
//! }
//! hold.release().await?;
//! # Ok(())
//! # }
//! # async fn write_the_report(_: zklock::Token) {}
//! ```
//!
//! | to | there are |
//! |---|---|
//! | connect, and end | [`Client::connect`], [`Client::close`] |
//! | make a lock | [`Client::mutex`], [`Client::semaphore`], [`Client::election`], [`Client::job`] |
//! | acquire it, and release it | [`Lock::acquire`], [`Lock::acquire_timeout`], [`Lock::try_acquire`], [`Hold::release`] |
//! | rely on a hold | [`Hold::token`], [`Hold::valid_for`], [`Hold::ensure`], [`Hold::lost`] |
//! | see who holds and waits | [`Lock::contenders`] |
//! | know what went wrong | [`Error::kind`], [`ErrorKind`] |
//!
//! # Further
//!
//! The module [`further`] has other kinds of locks and their options, logging in, figures and what looks on. The module
//! [`fence`] has resources that refuse late writes.
//!
//! ## Tasks and threads
//!
//! What waits gives a [`Call`]. A task awaits it; a thread waits for it, and an event loop [detaches](Call::detach) it:
//!
//! ```no_run
//! use zklock::{Client, ClientOptions};
//!
//! # fn main() -> Result<(), zklock::Error> {
//! let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181")).wait()?;
//! let hold = client.mutex("/locks/report")?.acquire().wait()?;
//! println!("held with token {}", hold.token());
//! hold.release().wait()?;
//! # Ok(())
//! # }
//! ```
//!
//! A client that is made in a tokio runtime runs there. All others share one I/O thread. A thread that waits is the owner of its
//! locks, polls the call itself, and keeps the deadline by its own clock.
//!
//! ## Kinds of lock
//!
//! | kind | made by | shares its queue with |
//! |---|---|---|
//! | mutex | [`Client::mutex`] | Curator's `InterProcessMutex` and `LeaderSelector`, go-zookeeper; kazoo, `WriteLock` |
//! | read/write lock | [`Client::read_lock`], [`Client::write_lock`] | Curator's `InterProcessReadWriteLock`; kazoo |
//! | semaphore | [`Client::semaphore`] | Curator's `InterProcessSemaphoreV2`; with one permit, `InterProcessSemaphoreMutex` |
//! | set of locks | [`Client::all`] | whatever its locks do |
//! | any one of several | [`Client::any`] | whatever its locks do |
//! | election | [`Client::election`] | Curator's `LeaderLatch` |
//! | exclusive | [`Client::single_node`] | any client that creates the node `lock` |
//! | barrier | [`Client::barrier`] | Curator's `DistributedBarrier` |
//! | double barrier | [`Client::double_barrier`] | Curator's `DistributedDoubleBarrier` |
//!
//! A [job](Client::job) runs on one host in each period. It is a mutex with a record of the last run.
//!
//! Acquiring any of these locks gives a [`Hold`]. The [`Naming`](further::Naming) decides which library sees which contenders. A contender that
//! cannot see ours is [refused](ErrorKind::ForeignContender), because both could hold the lock at once.
//!
//! ## What a hold promises
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
//! ## Servers
//!
//! ZooKeeper 3.4 or later. Servers before 3.5 cannot create a node in one transaction with other operations. With these
//! servers, the client [refuses](ErrorKind::Refused) the following before it sends anything: sets of locks, several permits at
//! once, the read side on top of the write side, double barriers, and guarded writes that create a node. The client asks the
//! servers for their version, unless [`ClientOptions::server_version`] gives it.
//!
//! ## Descriptors
//!
//! Some programs close all descriptors that they did not open, for example when they become daemons. That also closes the
//! descriptors of the I/O thread, and with them all clients that were made outside of a runtime: calls on what they made fail with
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
//! ## Fork
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
//! All this is for clients that are made outside of a runtime. Do not fork a program whose clients run in its own tokio runtime,
//! which does not survive a fork.

// The layers: a module imports from lower lines, or from its own, and never in a circle. `tests/layers.py` checks that.
//
// ```text
// .          face                                       what the C and Python layers need
//            further                                    what a newcomer does not need
// fence      files                                      resources refuse late writes
//            stamp database
// operator   observe                                    who holds and waits; the counters as text
//            contenders prometheus
// client     client                                     what a program calls
//            job                                        jobs that run once in each period
//            run job_spec                              one run; how a job is described
//            record                                     what is kept of the last run
//            lock double_barrier                        the locks; what they need of a client is made late
//            lazy membership
//            member
//            barrier
//            home                                       the process in which a client is needed
//            registry spec                              what its locks share; how a lock is described
//            all any semaphore                          rules about the claims of some kinds
// attempt    local_queue                                one process's queue in front of a lock, and its attempts
//            strangers set members entry                foreign contenders; sets; members of barriers
//            refused shared                             why it was refused; what the handles of a client share
// hold       guarded                                    what a holder has
//            hold
//            grant wanted
//            loss token
//            released
// session    guardian connection ensemble_id            ends the session of a dead process; how a client is connected; to what
//            ask                                        questions to the servers, repeated until they answer
//            pool                                       sessions that follow one another
//            session_keeper attachment heartbeat diagnose
//            slot
//            session                                    one session: its lease, its holds
//            session_key lateness refusals
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
//            named kerberos path level
// threads    fork_safe log watch                        the I/O thread, and how other threads wait for it
//            call
//            started wait
//            io interrupt
//            descriptors thread fork park
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
mod client;
mod connect;
#[doc(hidden)]
pub mod face;
pub mod fence;
pub mod further;
mod hold;
mod operator;
mod session;
#[allow(clippy::disallowed_methods, reason = "its deadlines are those of threads outside of the runtime")]
mod threads;
mod zookeeper;

pub use self::{
    base::error::{Error, ErrorKind},
    client::client::Client,
    client::job::Job,
    client::job_spec::JobSpec,
    client::lock::Lock,
    client::run::{Begun, Run},
    client::spec::LockSpec,
    connect::options::ClientOptions,
    hold::hold::{Hold, HoldState},
    hold::token::Token,
    operator::contenders::QueuedContender,
    threads::call::Call,
};
#[doc(inline)]
pub use zklock_machine::status::LossReason;

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
