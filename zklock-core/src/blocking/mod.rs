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
//! [`ErrorKind::Deadlock`] in a callback of ours, which must not wait.
//!
//! # Fork
//!
//! A child has a copy of what its parent made, which stays the parent's: calls on it end with
//! [`ErrorKind::Forked`], holds say that they are lost, and dropping them changes nothing. A child that needs locks
//! makes a client of its own, or uses a [lazy](Client::lazy) one that no process has used yet.
//!
//! That takes the feature `fork`, and stand-ins for crates of which zookeeper-client is made: the one thread for a process
//! of two of them is missing in a child. libzklock and the Python package have both. A Rust program that takes this crate
//! from a registry has neither, and there a child can connect only if its parent has not: later it is refused
//! with [`ErrorKind::Forked`], and has to be started anew (exec). To have both, name the feature, take the folder
//! `zklock-core/stand-ins` from the repository, and name what is in it in the program's `Cargo.toml`. The last is for the
//! feature `tls`:
//!
//! ```toml
//! [patch.crates-io]
//! async-io = { path = "stand-ins/async-io" }
//! async-net = { path = "stand-ins/async-net" }
//! zklock-frames = { path = "stand-ins/frames" }
//! futures-rustls = { path = "stand-ins/futures-rustls" }
//! ```
//!
//! This is about `fork` in a program of several threads, for which this module is made. The asynchronous
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
mod lazy;
mod lock;
mod observer;
mod wanted;

use self::connector::{Connected, Connector};
#[cfg(doc)]
use crate::ErrorKind;
use crate::connection::ConnectionState;
use crate::error::Error;
use crate::guardian::Guardian;
use crate::options::ClientOptions;
use crate::spec::LockSpec;
use crate::stats::Stats;
use crate::threads::call::Call;
use crate::wait::Wait;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

pub use self::{
    barrier::{Barrier, DoubleBarrier, Member},
    hold::{Hold, Loss, Watch},
    lazy::Lazy,
    lock::{Lock, Ticket},
    observer::Observer,
    wanted::Wanted,
};
pub use crate::threads::interrupt::Interrupt;

/// A [`Client`](crate::Client) for threads.
#[derive(Clone, Debug)]
pub struct Client {
    connector: Connector,
}

impl Client {
    /// Opens a session. See [`Client::connect`](crate::Client::connect).
    ///
    /// # Errors
    ///
    /// Those of the asynchronous call; [`ErrorKind::Refused`] if the system gives no threads or
    /// descriptors; [`ErrorKind::Deadlock`] in a callback;
    /// [`ErrorKind::Forked`].
    pub fn connect(options: ClientOptions) -> Result<Self, Error> {
        let client = Self::lazy(options);
        client.connect_within(Wait::Forever)?;
        Ok(client)
    }

    /// A client that connects when it is first needed. Until then it does nothing, so a program may make one and its locks,
    /// fork, and use them in its children, each of which then connects for itself.
    ///
    /// The first call connects, in the time that the caller is willing to wait, but never for longer than the
    /// [connect timeout](ClientOptions::connect_timeout). A try that connects may take that long, and the
    /// [try timeout](ClientOptions::try_timeout) after it. If many threads need the client at the same time, it connects
    /// once. A failure is reported to all of them, and the next call tries again.
    ///
    /// ```no_run
    /// use zklock_core::{ClientOptions, blocking::Client};
    ///
    /// # fn main() -> Result<(), zklock_core::Error> {
    /// let client = Client::lazy(ClientOptions::new("zk1:2181,zk2:2181")?);
    /// let lock = client.mutex("/locks/report")?;
    /// // ... fork ...
    /// let hold = lock.acquire()?;
    /// # hold.release()
    /// # }
    /// ```
    pub fn lazy(options: ClientOptions) -> Self {
        Self { connector: Connector::new(options, None) }
    }

    /// Has `listener` called as [`on_connection`](Self::on_connection) does, in the process in which the client is first needed.
    /// If it is closed before it has connected, the closing thread calls it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_listener(self, listener: impl Fn(ConnectionState) + Send + Sync + 'static) -> Self {
        Self { connector: self.connector.with_listener(Arc::new(listener)) }
    }

    /// Connects a [lazy](Self::lazy) client now, unless that has been done.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock_core::{ClientOptions, blocking::Client};
    ///
    /// # fn main() -> Result<(), zklock_core::Error> {
    /// let client = Client::lazy(ClientOptions::new("zk1:2181,zk2:2181")?);
    /// client.connect_within(Duration::from_secs(2))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect), also if the time is over before the
    /// [connect timeout](ClientOptions::connect_timeout); [`ErrorKind::Closed`] after [`close`](Self::close).
    pub fn connect_within(&self, wait: impl Into<Wait>) -> Result<(), Error> {
        self.connector.connect(at_most(wait.into()), None).map(drop)
    }

    /// Begins what [`connect_within`](Self::connect_within) does. `ready` is called when the call has its result: on the I/O
    /// thread, so it must not block. The call gives a clone of this client.
    #[doc(hidden)]
    pub fn start_connecting(
        &self,
        wait: impl Into<Wait>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Self>, Error> {
        let client = self.clone();
        self.connector.start(ready, at_most(wait.into()), |_| async { Ok(client) })
    }

    /// Whether it has connected, and has not been closed since. A client whose session is lost is connected in this sense.
    #[doc(hidden)]
    pub fn has_connected(&self) -> bool {
        self.connector.connected().is_some()
    }

    /// Whether it was used in a process from which this one was forked, and so is of no use here.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.connector.is_forked()
    }

    /// See [`Client::stats`](crate::Client::stats).
    pub fn stats(&self) -> Stats {
        self.connector.stats()
    }

    /// See [`Client::session_id`](crate::Client::session_id).
    pub fn session_id(&self) -> Option<i64> {
        self.connector.look(crate::Client::session_id)
    }

    /// See [`Client::session_timeout`](crate::Client::session_timeout).
    pub fn session_timeout(&self) -> Option<Duration> {
        self.connector.look(crate::Client::session_timeout)
    }

    /// See [`Client::connection_state`](crate::Client::connection_state); `None` if the client has not connected yet, or
    /// belongs to another process.
    pub fn connection_state(&self) -> Option<ConnectionState> {
        self.connector.connection_state()
    }

    /// Calls `listener` with how the client is connected now, and then with each change, until the [`Watch`] is dropped or the
    /// client closed: on the I/O thread, so it must not block. See [`Connection`](crate::Connection).
    ///
    /// If the client has not connected yet, the first call comes when it has, or is closed. The client belongs to this process
    /// from then on.
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let _watch = client.on_connection(|state| eprintln!("the client is {state}"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_connection(
        &self,
        listener: impl FnMut(ConnectionState) + Send + 'static,
    ) -> Result<Watch, Error> {
        self.connector.follow(listener)
    }

    /// See [`Client::close`](crate::Client::close). From then on the client does not connect again.
    pub fn close(&self) -> Result<(), Error> {
        self.connector.close()
    }

    /// Begins what [`close`](Self::close) does. `ready` is called when it is done: on the I/O thread, so it must not block; or
    /// at once if there is nothing to close.
    #[doc(hidden)]
    pub fn start_close(&self, ready: impl FnOnce() + Send + 'static) -> Result<Call<()>, Error> {
        self.connector.start_close(ready)
    }

    /// Starts a guardian, which stays until the client is closed. See [`Client::guard`](crate::Client::guard). A
    /// [lazy](Self::lazy) client connects first.
    ///
    /// ```no_run
    /// use std::process::Command;
    /// use zklock_core::{ClientOptions, blocking::Client};
    ///
    /// # fn main() -> Result<(), zklock_core::Error> {
    /// let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181")?)?;
    /// let mut command = Command::new("zklock");
    /// command.arg("guardian");
    /// client.guard(command)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn guard(&self, command: Command) -> Result<(), Error> {
        let client = self.connector.connect(Wait::Forever, None)?;
        let guarding = |client: &'_ crate::Client| {
            let client = client.clone();
            async move { client.guard(command).await.map(Guardian::keep) }
        };
        client.wait(Wait::Forever, None, guarding)
    }

    /// Begins what [`guard`](Self::guard) does. `ready` is called when the call has its result: on the I/O thread, so it must
    /// not block.
    #[doc(hidden)]
    pub fn start_guarding(
        &self,
        command: Command,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<()>, Error> {
        let guard =
            |client: Connected| async move { client.value().guard(command).await.map(Guardian::keep) };
        self.connector.start(ready, Wait::Forever, guard)
    }

    /// See [`Client::lock`](crate::Client::lock).
    pub fn lock(&self, spec: &LockSpec) -> Result<Lock, Error> {
        Lock::new(&self.connector, spec)
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
        let specs = self.specs_of(locks)?;
        specs.map_or_else(|others| Err(LockSpec::of_another_client(&others)), LockSpec::all)
    }

    /// See [`Client::any`](crate::Client::any).
    pub fn any(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.lock(&self.any_of(locks)?)
    }

    /// As [`any`](Self::any), as a description.
    #[doc(hidden)]
    pub fn any_of(&self, locks: &[Lock]) -> Result<LockSpec, Error> {
        let specs = self.specs_of(locks)?;
        specs.map_or_else(|others| Err(LockSpec::choice_of_another_client(&others)), LockSpec::any)
    }

    /// Of these locks; as an error if not all of them are of this client.
    fn specs_of(&self, locks: &[Lock]) -> Result<Result<Vec<LockSpec>, Vec<LockSpec>>, Error> {
        self.connector.refuse_forked()?;
        let specs = locks.iter().map(|lock| lock.spec().clone()).collect();
        let are_own = locks.iter().all(|lock| lock.core.connector().is_same(&self.connector));
        Ok(if are_own { Ok(specs) } else { Err(specs) })
    }

    /// See [`Client::barrier`](crate::Client::barrier).
    pub fn barrier(&self, path: &str) -> Result<Barrier, Error> {
        Barrier::new(&self.connector, path)
    }

    /// See [`Client::double_barrier`](crate::Client::double_barrier).
    pub fn double_barrier(&self, path: &str, members: u32) -> Result<DoubleBarrier, Error> {
        DoubleBarrier::new(&self.connector, path, members)
    }

    /// See [`Client::set_limit`](crate::Client::set_limit).
    pub fn set_limit(&self, path: &str, limit: u32) -> Result<(), Error> {
        let client = self.connector.connect(Wait::Forever, None)?;
        client.wait(Wait::Forever, None, |client| client.set_limit(path, limit))
    }

    /// Begins what [`set_limit`](Self::set_limit) does. `ready` is called when the call has its result: on the I/O thread, so
    /// it must not block.
    #[doc(hidden)]
    pub fn start_set_limit(
        &self,
        path: String,
        limit: u32,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<()>, Error> {
        let set = move |client: Connected| async move { client.value().set_limit(&path, limit).await };
        self.connector.start(ready, Wait::Forever, set)
    }
}

/// A time of zero is over at once: there is nothing to try, as there is with a lock.
fn at_most(wait: Wait) -> Wait {
    if wait == Wait::Once { Wait::at_most(Some(Duration::ZERO)) } else { wait }
}
