//! The same for threads: calls that block, on one I/O thread for the whole process.
//!
//! The futures are polled by the thread that waits. So the owner of a lock is that thread, its
//! deadline is kept by its own clock even if the I/O thread should be late, and an [`Interrupt`]
//! from any other thread ends the wait at once.
//!
//! These calls must not be made within an asynchronous task: they would block its thread.
//!
//! # Errors
//!
//! A call has the errors of the asynchronous call of its name. Beside these it ends with [`ErrorKind::Forked`] in a child of
//! the process that made its client, with [`ErrorKind::Interrupted`] when its [`Interrupt`] is triggered, and with
//! [`ErrorKind::Deadlock`] in a callback of ours, where it must not wait.
//!
//! # Fork
//!
//! A child has a copy of what its parent made, which stays the parent's: calls on it end with
//! [`ErrorKind::Forked`], holds say that they are lost, and dropping them changes nothing. A child that needs locks
//! makes a client of its own.
//!
//! That takes the feature `fork`, and stand-ins for two crates of which zookeeper-client is made: their one thread for a
//! process is missing in a child. libzklock and the Python package have both. A Rust program that takes this crate
//! from a registry has neither, and there a child can connect only if its parent has not: later it is refused
//! with [`ErrorKind::Forked`], and has to be started anew (exec). To have both, name the feature, take the two folders
//! `zklock-core/stand-ins/*` from the repository, and name them in the program's `Cargo.toml`:
//!
//! ```toml
//! [patch.crates-io]
//! async-io = { path = "stand-ins/async-io" }
//! async-net = { path = "stand-ins/async-net" }
//! ```
//!
//! What is said here is said of `fork` in a program of several threads; this module is made for that, the asynchronous
//! [`Client`](crate::Client) is not: a tokio runtime does not survive a fork.
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
mod connector;
mod hold;
mod lock;
mod observer;

#[cfg(doc)]
use crate::ErrorKind;
use crate::connection::{Connection, ConnectionState};
use crate::error::Error;
use crate::options::ClientOptions;
use crate::spec::LockSpec;
use crate::stats::Stats;
use crate::threads::fork_safe::ForkSafe;
use crate::wait::Wait;
use std::time::Duration;

pub use self::{
    barrier::{Barrier, DoubleBarrier, Member},
    connector::Connector,
    hold::{Hold, Loss, Watch},
    lock::{Lock, Ticket},
    observer::Observer,
};
pub use crate::threads::interrupt::Interrupt;

/// A [`Client`](crate::Client) for threads.
#[derive(Clone, Debug)]
pub struct Client {
    core: ForkSafe<crate::Client>,
}

impl Client {
    /// See [`Client::connect`](crate::Client::connect).
    ///
    /// # Errors
    ///
    /// As there; [`ErrorKind::Refused`] if the system gives no threads or
    /// descriptors; [`ErrorKind::Deadlock`] in a callback;
    /// [`ErrorKind::Forked`].
    pub fn connect(options: ClientOptions) -> Result<Self, Error> {
        Connector::new(options).connect(Wait::Forever)
    }

    /// The client of the core.
    #[doc(hidden)]
    pub fn core(&self) -> &ForkSafe<crate::Client> {
        &self.core
    }

    /// See [`Client::stats`](crate::Client::stats).
    pub fn stats(&self) -> Stats {
        self.core.look(Stats::default(), crate::Client::stats)
    }

    /// See [`Client::session_id`](crate::Client::session_id).
    pub fn session_id(&self) -> Option<i64> {
        self.core.look(None, crate::Client::session_id)
    }

    /// See [`Client::session_timeout`](crate::Client::session_timeout).
    pub fn session_timeout(&self) -> Option<Duration> {
        self.core.look(None, crate::Client::session_timeout)
    }

    /// See [`Client::connection_state`](crate::Client::connection_state); in a forked child always
    /// [`Closed`](ConnectionState::Closed).
    pub fn connection_state(&self) -> ConnectionState {
        self.core.look(ConnectionState::Closed, crate::Client::connection_state)
    }

    /// Calls `told` with how the client is connected now, and then with each change, until the [`Watch`] is dropped or the
    /// client closed: on the I/O thread, so it must not block. See [`Connection`].
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let _watch = client.on_connection(|state| eprintln!("the client is {state}"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_connection(&self, told: impl FnMut(ConnectionState) + Send + 'static) -> Result<Watch, Error> {
        let following = follow(self.core.get()?.connection(), told);
        let io = self.core.io();
        Ok(Watch::new(io.spawn(following), io.process()))
    }

    /// See [`Client::close`](crate::Client::close).
    pub fn close(&self) -> Result<(), Error> {
        self.core.wait(Wait::Forever, None, crate::Client::begin_close)
    }

    /// See [`Client::lock`](crate::Client::lock).
    pub fn lock(&self, spec: &LockSpec) -> Result<Lock, Error> {
        Ok(Lock { core: self.core.adopt(self.core.get()?.lock(spec)?) })
    }

    /// See [`Client::mutex`](crate::Client::mutex).
    pub fn mutex(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::mutex(path)?)
    }

    /// See [`Client::read`](crate::Client::read).
    pub fn read(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::read(path)?)
    }

    /// See [`Client::write`](crate::Client::write).
    pub fn write(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::write(path)?)
    }

    /// See [`Client::election`](crate::Client::election).
    pub fn election(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::election(path)?)
    }

    /// See [`Client::exclusive`](crate::Client::exclusive).
    pub fn exclusive(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::exclusive(path)?)
    }

    /// See [`Client::semaphore`](crate::Client::semaphore).
    pub fn semaphore(&self, path: &str, limit: u32) -> Result<Lock, Error> {
        self.lock(&LockSpec::semaphore(path, limit)?)
    }

    /// See [`Client::all`](crate::Client::all).
    pub fn all(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.lock(&self.all_of(locks)?)
    }

    /// See [`Client::all_of`](crate::Client::all_of).
    pub fn all_of(&self, locks: &[Lock]) -> Result<LockSpec, Error> {
        let client = self.core.get()?;
        let locks = locks.iter().map(|lock| lock.core.get().cloned()).collect::<Result<Vec<_>, _>>()?;
        client.all_of(&locks)
    }

    /// See [`Client::barrier`](crate::Client::barrier).
    pub fn barrier(&self, path: &str) -> Result<Barrier, Error> {
        Ok(Barrier { core: self.core.adopt(self.core.get()?.barrier(path)?) })
    }

    /// See [`Client::double_barrier`](crate::Client::double_barrier).
    pub fn double_barrier(&self, path: &str, members: u32) -> Result<DoubleBarrier, Error> {
        Ok(DoubleBarrier { core: self.core.adopt(self.core.get()?.double_barrier(path, members)?) })
    }

    /// See [`Client::set_limit`](crate::Client::set_limit).
    pub fn set_limit(&self, path: &str, limit: u32) -> Result<(), Error> {
        self.core.wait(Wait::Forever, None, |client| client.set_limit(path, limit))
    }
}

/// Tells of the connection until the client is closed.
async fn follow(mut connection: Connection, mut told: impl FnMut(ConnectionState)) {
    while let Some(state) = connection.next().await {
        told(state);
    }
}
