//! A client, for threads.

use super::barrier::Barrier;
use super::double_barrier::DoubleBarrier;
use super::home::Home;
use super::lock::Lock;
use super::once::Once;
use super::watch::Watch;
#[cfg(doc)]
use crate::ErrorKind;
use crate::base::error::Error;
use crate::base::stats::Stats;
use crate::base::wait::Wait;
use crate::client::once_spec::OnceSpec;
use crate::client::spec::LockSpec;
use crate::connect::options::ClientOptions;
use crate::session::connection::ConnectionState;
use crate::session::guardian::Guardian;
use crate::threads::call::{Begun, Call};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A [`Client`](crate::Client) whose calls block the calling thread.
///
/// # Examples
///
/// ```no_run
/// use zklock_core::{ClientOptions, blocking::Client};
///
/// # fn example() -> Result<(), zklock_core::Error> {
/// let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181")?)?;
/// let hold = client.mutex("/locks/report")?.acquire()?;
/// // ... nobody else writes the report ...
/// hold.release()?;
/// client.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    home: Home,
}

impl Client {
    /// Connects, and returns when a session is open. See [`Client::connect`](crate::Client::connect).
    ///
    /// # Errors
    ///
    /// Fails like [`Client::connect`](crate::Client::connect) does. Also:
    ///
    /// * [`ErrorKind::Refused`] if the system has no more threads or file descriptors;
    /// * [`ErrorKind::Deadlock`] in a callback;
    /// * [`ErrorKind::Forked`] in a child process that can no longer connect.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::{ClientOptions, ErrorKind, blocking::Client};
    ///
    /// # fn example(options: ClientOptions) -> Result<(), zklock_core::Error> {
    /// match Client::connect(options) {
    ///     Ok(client) => println!("session {:#x}", client.session_id().unwrap_or_default()),
    ///     Err(error) if error.kind() == ErrorKind::Unreachable => println!("later, perhaps: {error}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(options: ClientOptions) -> Result<Self, Error> {
        let client = Self::lazy(options);
        client.connect_within(Wait::Forever)?;
        Ok(client)
    }

    /// Makes a client that connects when it is first needed. Until then it does nothing. So a program may make a client and
    /// its locks, fork, and use them in its children: each child that uses them connects on its own.
    ///
    /// The first call that needs a connection connects. It tries for no longer than it may wait, and for no longer than the
    /// [connect timeout](ClientOptions::connect_timeout). A try that has to connect first may take the connect timeout plus
    /// the [try timeout](ClientOptions::try_timeout). If many threads need the client at the same time, it connects once. A
    /// failure is reported to all of them, and the next call tries again.
    ///
    /// # Examples
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
        Self { home: Home::new(options, None) }
    }

    /// Calls `listener` like [`on_connection`](Self::on_connection) does, in the process in which the client is first
    /// needed. If the client is closed before it has connected, the closing thread calls it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_listener(self, listener: impl Fn(ConnectionState) + Send + Sync + 'static) -> Self {
        Self { home: self.home.with_listener(Arc::new(listener)) }
    }

    /// Connects a [lazy](Self::lazy) client now. Returns when it is connected, at once if it already is.
    ///
    /// # Errors
    ///
    /// Fails like [`connect`](Self::connect) does, also if `wait` ends before the [connect
    /// timeout](ClientOptions::connect_timeout); and with [`ErrorKind::Closed`] after [`close`](Self::close).
    ///
    /// # Examples
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
    pub fn connect_within(&self, wait: impl Into<Wait>) -> Result<(), Error> {
        self.connect_call(wait).wait(None).map(drop)
    }

    /// Makes the call of [`connect_within`](Self::connect_within). Its result is a clone of this client.
    #[doc(hidden)]
    pub fn connect_call(&self, wait: impl Into<Wait>) -> Call<Self> {
        let client = self.clone();
        self.home.begin(at_most(wait.into()), |_| Begun::Over(Ok(client)))
    }

    /// Returns whether it has connected, and has not been closed since. A client whose session is lost still counts as
    /// connected.
    #[doc(hidden)]
    pub fn has_connected(&self) -> bool {
        self.home.connected().is_some()
    }

    /// Returns whether it was used by a process from which this one was forked. It is useless here then.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.home.is_forked()
    }

    /// Returns the counters of this client, which are all zero before it has connected. See
    /// [`Client::stats`](crate::Client::stats).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::blocking::Client) {
    /// let stats = client.stats();
    /// println!("{} grants and {} losses", stats.grants, stats.losses);
    /// # }
    /// ```
    pub fn stats(&self) -> Stats {
        self.home.stats()
    }

    /// Returns the session's number; `None` while there is no session, in particular before the client has connected.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::blocking::Client) {
    /// if let Some(session) = client.session_id() {
    ///     println!("session {session:#x}");
    /// }
    /// # }
    /// ```
    pub fn session_id(&self) -> Option<i64> {
        self.home.connected()?.fixed().session_id()
    }

    /// Returns the session timeout that the servers granted; `None` while there is no session, in particular before the
    /// client has connected.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::blocking::Client) {
    /// if let Some(timeout) = client.session_timeout() {
    ///     println!("if this process dies, its locks are free about {timeout:?} later");
    /// }
    /// # }
    /// ```
    pub fn session_timeout(&self) -> Option<Duration> {
        self.home.connected()?.fixed().session_timeout()
    }

    /// Returns how the client is connected now; `None` if it has not connected yet, or belongs to another process. It sends
    /// no request.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::ConnectionState;
    ///
    /// # fn example(client: &zklock_core::blocking::Client) {
    /// // The answer to a health check.
    /// let is_ready = client.connection_state() == Some(ConnectionState::Connected);
    /// # }
    /// ```
    pub fn connection_state(&self) -> Option<ConnectionState> {
        self.home.connection_state()
    }

    /// Calls `listener` with the state of the connection now, and then with each change, until the [`Watch`] is dropped or
    /// the client is closed. The I/O thread calls it, so it must not block. See [`Connection`](crate::Connection).
    ///
    /// If the client has not connected yet, the first call of `listener` comes when it has connected or is closed. After
    /// this call, the client belongs to this process.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`] if the client belongs to the parent process; [`ErrorKind::Refused`] if the
    /// system has no more threads or file descriptors.
    ///
    /// # Examples
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
        self.home.follow(listener)
    }

    /// Closes the client, which frees every lock that it holds. Returns when the ensemble has confirmed that, or after a
    /// second. The client does not connect again. See [`Client::close`](crate::Client::close).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`] if the client belongs to the parent process; [`ErrorKind::Deadlock`] in a callback.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::LossReason;
    ///
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let hold = client.mutex("/locks/report")?.acquire()?;
    /// client.close()?;
    /// assert_eq!(hold.loss().wait(None, None)?, Some(LossReason::ClientClosed));
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(&self) -> Result<(), Error> {
        self.close_call().wait(None)
    }

    /// Makes the call of [`close`](Self::close). It closes the client when it begins.
    #[doc(hidden)]
    pub fn close_call(&self) -> Call<()> {
        self.home.close()
    }

    /// Starts a guardian, a process that ends the session as soon as this process is dead. It stays until the client is
    /// closed. A [lazy](Self::lazy) client connects first. See [`Client::guard`](crate::Client::guard).
    ///
    /// # Errors
    ///
    /// Fails like [`Client::guard`](crate::Client::guard) does, and as [this module](crate::blocking#errors) says. A client
    /// that has not connected yet also fails like [`connect`](Self::connect) does.
    ///
    /// # Examples
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
        self.guard_call(command).wait(None)
    }

    /// Makes the call of [`guard`](Self::guard).
    #[doc(hidden)]
    pub fn guard_call(&self, command: Command) -> Call<()> {
        self.call(|client| async move { client.guard(command).await.map(Guardian::keep) })
    }

    /// Makes the lock that `spec` describes. It sends no request and does not wait.
    ///
    /// # Errors
    ///
    /// Fails like [`Client::lock`](crate::Client::lock) does; and with [`ErrorKind::Forked`] if the client belongs to the
    /// parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::LockSpec;
    ///
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let lock = client.lock(&LockSpec::mutex("/locks/report")?.reentrant(true))?;
    /// let hold = lock.acquire()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self, spec: &LockSpec) -> Result<Lock, Error> {
        Lock::new(&self.home, spec)
    }

    /// Makes the mutex at `path`, without a request. See [`Client::mutex`](crate::Client::mutex).
    ///
    /// # Errors
    ///
    /// Fails like [`lock`](Self::lock) does; and with [`ErrorKind::InvalidInput`] if `path` cannot be the path of a lock.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let hold = client.mutex("/locks/report")?.acquire()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mutex(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::mutex(path)?)
    }

    /// Makes the read side of the read/write lock at `path`, without a request. See [`Client::read_lock`](crate::Client::read_lock).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let hold = client.read_lock("/locks/table")?.acquire()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_lock(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::read_lock(path)?)
    }

    /// Makes the write side of the read/write lock at `path`, without a request. See
    /// [`Client::write_lock`](crate::Client::write_lock).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let hold = client.write_lock("/locks/table")?.acquire()?;
    /// // ... change the table; nobody reads it now ...
    /// hold.release()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_lock(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::write_lock(path)?)
    }

    /// Makes the lock whose holder leads the election at `path`, without a request. See
    /// [`Client::election`](crate::Client::election).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let lead = client.election("/election/scheduler")?.acquire()?;
    /// while !lead.valid_for().is_zero() {
    ///     // ... lead ...
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn election(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::election(path)?)
    }

    /// Makes the exclusive lock at `path`, without a request. See [`Client::exclusive`](crate::Client::exclusive).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// if let Some(hold) = client.exclusive("/jobs/nightly")?.try_acquire()? {
    ///     // ... nobody else does the job ...
    ///     hold.release()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn exclusive(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::exclusive(path)?)
    }

    /// Makes the semaphore at `path` with `limit` permits, without a request. See
    /// [`Client::semaphore`](crate::Client::semaphore).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does; and with [`ErrorKind::InvalidInput`] for a limit of zero.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let permit = client.semaphore("/locks/licences", 5)?.acquire()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn semaphore(&self, path: &str, limit: u32) -> Result<Lock, Error> {
        self.lock(&LockSpec::semaphore(path, limit)?)
    }

    /// Makes the set of these locks, which are acquired and released together, without a request. See
    /// [`Client::all`](crate::Client::all).
    ///
    /// # Errors
    ///
    /// Fails like [`Client::all`](crate::Client::all) does; and with [`ErrorKind::Forked`] if the client belongs to the
    /// parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let (from, to) = (client.mutex("/accounts/1")?, client.mutex("/accounts/2")?);
    /// let both = client.all(&[from, to])?.acquire()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn all(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.lock(&self.all_of(locks)?)
    }

    /// Like [`all`](Self::all), but returns a description, on which you can set options. See
    /// [`Client::all_of`](crate::Client::all_of).
    ///
    /// # Errors
    ///
    /// Fails like [`all`](Self::all) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let tables = [client.write_lock("/locks/orders")?, client.read_lock("/locks/prices")?];
    /// let both = client.lock(&client.all_of(&tables)?.reentrant(true))?;
    /// let hold = both.acquire()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn all_of(&self, locks: &[Lock]) -> Result<LockSpec, Error> {
        let specs = self.specs_of(locks)?;
        specs.map_or_else(|others| Err(LockSpec::of_another_client(&others)), LockSpec::all)
    }

    /// Makes the choice of any one of these locks, without a request. See [`Client::any`](crate::Client::any).
    ///
    /// # Errors
    ///
    /// Fails like [`Client::any`](crate::Client::any) does; and with [`ErrorKind::Forked`] if the client belongs to the
    /// parent process.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let jobs = [client.mutex("/jobs/1")?, client.mutex("/jobs/2")?];
    /// let hold = client.any(&jobs)?.acquire()?;
    /// println!("do what {} stands for", hold.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn any(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.lock(&self.any_of(locks)?)
    }

    /// Like [`any`](Self::any), but returns a description.
    #[doc(hidden)]
    pub fn any_of(&self, locks: &[Lock]) -> Result<LockSpec, Error> {
        let specs = self.specs_of(locks)?;
        specs.map_or_else(|others| Err(LockSpec::choice_of_another_client(&others)), LockSpec::any)
    }

    /// Returns the descriptions of these locks. They come as the inner error if not all of the locks belong to this client.
    fn specs_of(&self, locks: &[Lock]) -> Result<Result<Vec<LockSpec>, Vec<LockSpec>>, Error> {
        self.home.refuse_forked()?;
        let specs = locks.iter().map(|lock| lock.spec().clone()).collect();
        let are_own = locks.iter().all(|lock| lock.core.home().is_same(&self.home));
        Ok(if are_own { Ok(specs) } else { Err(specs) })
    }

    /// Makes the job that `spec` describes, without a request: it runs on one host in each period. See
    /// [`Client::once`](crate::Client::once).
    ///
    /// # Errors
    ///
    /// Fails like [`lock`](Self::lock) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock_core::{Begun, OnceSpec};
    ///
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let daily = OnceSpec::new("/jobs/report", Duration::from_secs(86_400))?;
    /// if let Begun::Run(run) = client.once(&daily)?.begin()? {
    ///     // ... write the report of the day ...
    ///     run.done()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn once(&self, spec: &OnceSpec) -> Result<Once, Error> {
        Once::new(&self.home, spec)
    }

    /// Makes the barrier at `path`, without a request, and does not set it. See
    /// [`Client::barrier`](crate::Client::barrier).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// client.barrier("/barriers/migration")?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn barrier(&self, path: &str) -> Result<Barrier, Error> {
        Barrier::new(&self.home, path)
    }

    /// Makes the double barrier at `path` for that many members, without a request. See
    /// [`Client::double_barrier`](crate::Client::double_barrier).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does; and with [`ErrorKind::InvalidInput`] for zero members.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// let member = client.double_barrier("/barriers/round", 3)?.enter()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn double_barrier(&self, path: &str, members: u32) -> Result<DoubleBarrier, Error> {
        DoubleBarrier::new(&self.home, path, members)
    }

    /// Writes the number of permits to the node that semaphores name with [`limit_at`](LockSpec::limit_at), and returns
    /// when that is done. See [`Client::set_limit`](crate::Client::set_limit).
    ///
    /// # Errors
    ///
    /// Fails like [`Client::set_limit`](crate::Client::set_limit) does, and as [this module](crate::blocking#errors) says. A client
    /// that has not connected yet also fails like [`connect`](Self::connect) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// client.set_limit("/limits/licences", 7)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_limit(&self, path: &str, limit: u32) -> Result<(), Error> {
        self.set_limit_call(path.to_owned(), limit).wait(None)
    }

    /// Makes the call of [`set_limit`](Self::set_limit).
    #[doc(hidden)]
    pub fn set_limit_call(&self, path: String, limit: u32) -> Call<()> {
        self.call(move |client| async move { client.set_limit(&path, limit).await })
    }

    /// Returns the identity of the ensemble, which a fence keeps together with the token. See
    /// [`Client::ensemble_id`](crate::Client::ensemble_id).
    ///
    /// # Errors
    ///
    /// Fails like [`Client::ensemble_id`](crate::Client::ensemble_id) does, and as [this module](crate::blocking#errors) says. A client
    /// that has not connected yet also fails like [`connect`](Self::connect) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
    /// println!("tokens of the ensemble {}", client.ensemble_id()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ensemble_id(&self) -> Result<Arc<str>, Error> {
        self.ensemble_id_call().wait(None)
    }

    /// Makes the call of [`ensemble_id`](Self::ensemble_id).
    #[doc(hidden)]
    pub fn ensemble_id_call(&self) -> Call<Arc<str>> {
        self.call(|client| async move { client.ensemble_id().await })
    }

    fn call<R, F>(&self, call: impl FnOnce(Arc<crate::Client>) -> F + Send + 'static) -> Call<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        self.home.begin(Wait::Forever, |client| Begun::goes_on(client.io(), call(client.value())))
    }
}

fn at_most(wait: Wait) -> Wait {
    if wait == Wait::Once { Wait::at_most(Some(Duration::ZERO)) } else { wait }
}
