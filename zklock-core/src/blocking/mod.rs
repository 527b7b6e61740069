//! The same for threads: calls that block, on one I/O thread for the whole process.
//!
//! The futures are polled by the thread that waits. So the owner of a lock is that thread, its
//! deadline is kept by its own clock even if the I/O thread should be late, and an [`Interrupt`]
//! from any other thread ends the wait at once.
//!
//! These calls must not be made within an asynchronous task: they would block its thread.
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
mod call;
mod connector;
mod fork;
mod hold;
mod interrupt;
mod kinds;
mod log;
mod park;
mod queued;
mod threads;
mod ticket;
mod wait;

use crate::connection::{Connection, ConnectionState};
use crate::error::{Error, ErrorKind};
use crate::options::ClientOptions;
use crate::owner::Owner;
use crate::stats::Stats;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};
use threads::{Io, check_room, refuse_to_block};
use tokio::sync::oneshot;
use wait::{patience, wait};

pub use self::{
    barrier::{Barrier, DoubleBarrier, Member},
    call::Call,
    connector::Connector,
    fork::{OfProcess, Process, has_forked, mark_processes},
    hold::{Hold, Loss, Watch},
    interrupt::Interrupt,
    log::{TakeLine, log_to},
    park::{Park, Parked, park_by},
    queued::Observer,
    threads::call_later,
    ticket::Ticket,
};

/// A [`Client`](crate::Client) for threads.
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
    io: Io,
}

/// A [`Lock`](crate::Lock) for threads.
#[derive(Clone, Debug)]
pub struct Lock {
    inner: crate::Lock,
    io: Io,
}

impl Client {
    /// As [`Client::connect`](crate::Client::connect).
    ///
    /// # Errors
    ///
    /// As there; [`ErrorKind::Refused`] if the system gives no threads or
    /// descriptors; [`ErrorKind::Deadlock`] in a callback;
    /// [`ErrorKind::Forked`].
    pub fn connect(options: ClientOptions) -> Result<Self, Error> {
        let io = Io::start()?;
        check_room()?;
        let (hosts, within) = (options.hosts.connect_string(), options.connect_timeout);
        let opening = Self::open(io.clone(), options);
        match wait(&io, opening, patience(within), None) {
            Err(error) if error.kind() == ErrorKind::Timeout => Err(io.unconnected(&hosts, within)),
            outcome => outcome?,
        }
    }

    fn open(io: Io, options: ClientOptions) -> impl Future<Output = Result<Self, Error>> + Send {
        let (answer, connected) = oneshot::channel();
        // Threads that it needs (such as the resolver's) are to be children of the I/O thread.
        io.spawn(async move {
            let _ = answer.send(crate::Client::connect(options).await);
        });
        async move {
            match connected.await {
                Ok(Ok(inner)) => Ok(Self { inner, io }),
                // One that is new is not closed: its task has panicked, for want of something.
                Ok(Err(error)) if error.kind() != ErrorKind::Closed => Err(error),
                _ => Err(Self::wanting()),
            }
        }
    }

    fn wanting() -> Error {
        Error::new(ErrorKind::Refused, "the system gives no threads or descriptors: raise the limits")
    }

    /// As [`Client::stats`](crate::Client::stats).
    pub fn stats(&self) -> Stats {
        if self.io.is_forked() { Stats::default() } else { self.inner.stats() }
    }

    /// As [`Client::session_id`](crate::Client::session_id).
    pub fn session_id(&self) -> Option<i64> {
        if self.io.is_forked() { None } else { self.inner.session_id() }
    }

    /// As [`Client::session_timeout`](crate::Client::session_timeout).
    pub fn session_timeout(&self) -> Option<Duration> {
        if self.io.is_forked() { None } else { self.inner.session_timeout() }
    }

    /// As [`Client::connection_state`](crate::Client::connection_state); in a forked child always
    /// [`Closed`](ConnectionState::Closed).
    pub fn connection_state(&self) -> ConnectionState {
        if self.io.is_forked() { ConnectionState::Closed } else { self.inner.connection_state() }
    }

    /// Calls `told` with how the client is connected now, and then with each change, until the [`Watch`] is dropped or the
    /// client closed: on the I/O thread, so it must only pass it on. See [`Connection`](crate::Connection).
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let _watch = client.on_connection(|state| eprintln!("the client is {state}"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`].
    pub fn on_connection(&self, told: impl FnMut(ConnectionState) + Send + 'static) -> Result<Watch, Error> {
        self.io.refuse_forked()?;
        let task = self.io.spawn(follow(self.inner.connection(), told));
        Ok(Watch::new(task, self.io.process()))
    }

    /// As [`Client::close`](crate::Client::close).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Deadlock`] in a callback,
    /// [`ErrorKind::Forked`].
    pub fn close(&self) -> Result<(), Error> {
        wait(&self.io, self.inner.close(), None, None)
    }

    /// As [`close`](Self::close), and returns at once. `ready` is called when it is done: on the I/O
    /// thread, so it must only pass it on. Dropping the call ends the waiting, not the closing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`].
    pub fn start_close(&self, ready: impl FnOnce() + Send + 'static) -> Result<Call<()>, Error> {
        self.io.refuse_forked()?;
        self.inner.begin_close();
        let inner = self.inner.clone();
        let closed = async move {
            inner.close().await;
            Ok(())
        };
        Call::start(&self.io, closed, ready)
    }
}

/// Tells of the connection until the client is closed.
async fn follow(mut connection: Connection, mut told: impl FnMut(ConnectionState)) {
    while let Some(state) = connection.next().await {
        told(state);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.io.is_forked() {
            std::mem::forget(self.inner.clone());
        }
    }
}

impl Lock {
    /// The path of the lock.
    pub fn path(&self) -> &str {
        self.inner.path()
    }

    /// As [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn acquire(&self) -> Result<Hold, Error> {
        self.acquire_until(None, None)
    }

    /// As [`Lock::acquire_timeout`](crate::Lock::acquire_timeout).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        self.acquire_until(Some(timeout), None)
    }

    /// As [`acquire`](Self::acquire) or [`acquire_timeout`](Self::acquire_timeout), until `interrupt`
    /// is triggered.
    ///
    /// # Errors
    ///
    /// As there, and [`ErrorKind::Interrupted`].
    pub fn acquire_interruptible(
        &self,
        timeout: Option<Duration>,
        interrupt: &Interrupt,
    ) -> Result<Hold, Error> {
        self.acquire_until(timeout, Some(interrupt))
    }

    fn acquire_until(&self, timeout: Option<Duration>, interrupt: Option<&Interrupt>) -> Result<Hold, Error> {
        self.io.refuse_forked()?;
        refuse_to_block()?;
        let owner = Owner::current();
        if let Some(inner) = self.inner.again(owner)? {
            return Ok(Hold::new(inner, self.io.clone()));
        }
        let timeout = timeout.unwrap_or(Duration::MAX);
        let inner = if timeout.is_zero() {
            wait(&self.io, self.inner.acquire_as(owner, timeout), None, interrupt)??
        } else {
            let deadline = Instant::now().checked_add(timeout);
            // The clock of this thread, not a timer of the I/O thread.
            let over = poll_fn(|_| match deadline {
                Some(deadline) if Instant::now() >= deadline => Poll::Ready(()),
                _ => Poll::Pending,
            });
            wait(&self.io, self.inner.acquire_before(owner, over, timeout), deadline, interrupt)??
        };
        Ok(Hold::new(inner, self.io.clone()))
    }

    /// Begins to wait for the lock, for `timeout` at most, and returns at once. `ready` is called when
    /// the [ticket](Ticket::fetch) has the result: on the I/O thread, so it must only pass it on.
    ///
    /// Such a wait belongs to no thread: one that holds the lock may begin another, and the hold may
    /// be released from anywhere, also if the lock is reentrant.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock_core::blocking::Lock;
    ///
    /// # fn example(lock: &Lock) -> Result<(), zklock_core::Error> {
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let ticket = lock.start(Some(Duration::from_secs(5)), move || sender.send(()).unwrap())?;
    /// receiver.recv().unwrap();
    /// if let Some(result) = ticket.fetch() {
    ///     let hold = result?;
    ///     hold.release()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`]; all others come with the result.
    pub fn start(
        &self,
        timeout: Option<Duration>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Ticket, Error> {
        Ticket::start(self, Owner::ticket(), timeout, ready)
    }

    /// As [`start`](Self::start), for an owner that may come again: for [reentrant](crate::LockSpec::reentrant)
    /// locks, and to be told of a [`Deadlock`](ErrorKind::Deadlock).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn start_as(
        &self,
        owner: Owner,
        timeout: Option<Duration>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Ticket, Error> {
        Ticket::start(self, owner, timeout, ready)
    }

    /// One more hold of an owner that has one, if the lock is reentrant: without a request or a wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] if the outer hold is lost, [`ErrorKind::Unreachable`] if its lease has lapsed;
    /// [`ErrorKind::Closed`], [`ErrorKind::Forked`].
    pub fn again(&self, owner: Owner) -> Result<Option<Hold>, Error> {
        self.io.refuse_forked()?;
        Ok(self.inner.again(owner)?.map(|inner| Hold::new(inner, self.io.clone())))
    }

    /// As [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        let inner = wait(&self.io, self.inner.try_acquire_as(Owner::current()), None, None)??;
        Ok(inner.map(|inner| Hold::new(inner, self.io.clone())))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.io.is_forked() {
            std::mem::forget(self.inner.clone());
        }
    }
}
