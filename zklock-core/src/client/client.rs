//! One logical connection to an ensemble.

use crate::base::error::{Error, ErrorKind};
use crate::base::stats::Stats;
use crate::base::wait::Wait;
use crate::client::barrier::Barrier;
use crate::client::double_barrier::DoubleBarrier;
use crate::client::home::Home;
use crate::client::job::Job;
use crate::client::job_spec::JobSpec;
use crate::client::lock::Lock;
use crate::client::spec::LockSpec;
use crate::client::{all, any, semaphore};
use crate::connect::options::ClientOptions;
use crate::connect::path::{check_lock_path, check_path};
use crate::machine::protocol::{Operation, Outcome};
use crate::session::ask::{ask, catch_up, request};
use crate::session::connection::{Connection, ConnectionState};
use crate::session::ensemble_id;
use crate::session::guardian::Guardian;
use crate::session::session_key::SessionKey;
use crate::threads::call::{Beginning, Call};
use crate::threads::watch::Watch;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// One logical connection to an ensemble. It is cheap to clone, and it outlives sessions: when one expires, it
/// opens the next.
///
/// Its tasks run on the tokio runtime in which it was made or, without one, on a thread for all clients of the process. When
/// the last client, lock and hold is dropped, the session is closed in the background.
///
/// # Examples
///
/// ```no_run
/// use zklock::{Client, ClientOptions};
///
/// # async fn example() -> Result<(), zklock::Error> {
/// let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181,zk3:2181")).await?;
/// let hold = client.mutex("/locks/report")?.acquire().await?;
/// hold.release().await?;
/// client.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    home: Home,
}

impl Client {
    /// Connects, and opens a session.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if no server answers within the connect timeout, or none of the host names can
    ///   be resolved;
    /// * [`ErrorKind::Refused`] if the chroot does not exist, the servers reject the client's
    ///   [credentials](ClientOptions::credentials) or demand some, a credentials or TLS file can no longer be
    ///   read, or the system has no more threads or file descriptors;
    /// * [`ErrorKind::InvalidInput`] if the options [contradict each other](ClientOptions::check);
    /// * [`ErrorKind::Forked`] in a child process that can no longer connect.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call gives up. A session that is already open is closed in the background.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock::{Client, ClientOptions, ErrorKind};
    ///
    /// # fn example() -> Result<(), zklock::Error> {
    /// let options = ClientOptions::new("zk1:2181,zk2:2181,zk3:2181").connect_timeout(Duration::from_secs(3));
    /// match Client::connect(options).wait() {
    ///     Ok(client) => println!("session {:#x}", client.session_id().unwrap_or_default()),
    ///     Err(error) if error.kind() == ErrorKind::Unreachable => println!("later, perhaps: {error}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(options: ClientOptions) -> Call<Self> {
        Self::lazy(options).connect_within(Wait::Forever)
    }

    /// Makes a client that connects when it is first needed. Until then it does nothing. So a program may make a client and
    /// its locks, fork, and use them in its children: each child that uses them connects on its own.
    ///
    /// The first call that needs a connection connects. It tries for no longer than it may wait, and for no longer than the
    /// [connect timeout](ClientOptions::connect_timeout). A try that has to connect first may take the connect timeout plus
    /// the [try timeout](ClientOptions::try_timeout). If many callers need the client at the same time, it connects once. A
    /// failure is reported to all of them, and the next call tries again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::{Client, ClientOptions};
    ///
    /// # fn main() -> Result<(), zklock::Error> {
    /// let client = Client::lazy(ClientOptions::new("zk1:2181,zk2:2181"));
    /// let lock = client.mutex("/locks/report")?;
    /// // ... fork ...
    /// let hold = lock.acquire().wait()?;
    /// # hold.release().wait()
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

    /// Connects a [lazy](Self::lazy) client now, and returns a clone of it, at once if it already is connected.
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
    /// use zklock::{Client, ClientOptions};
    ///
    /// # fn main() -> Result<(), zklock::Error> {
    /// let client = Client::lazy(ClientOptions::new("zk1:2181,zk2:2181"));
    /// client.connect_within(Duration::from_secs(2)).wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_within(&self, wait: impl Into<Wait>) -> Call<Self> {
        let connected = self.clone();
        self.home.begin_open(wait.into().at_least_none(), |_| Beginning::Over(Ok(connected)))
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

    /// Returns the counters of this client: its work so far, and the nodes that it still has to
    /// clean up. They are all zero before it has connected.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock::Client) {
    /// let before = client.stats();
    /// // ... an hour of work ...
    /// let now = client.stats();
    /// println!("{} grants and {} losses", now.grants - before.grants, now.losses - before.losses);
    /// # }
    /// ```
    pub fn stats(&self) -> Stats {
        self.home.stats()
    }

    /// Returns the session timeout that the servers granted; `None` while there is no session.
    ///
    /// It shrinks when the session moves to a server that grants less. It never grows again.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock::Client) {
    /// match client.session_timeout() {
    ///     Some(timeout) => println!("if this process dies, its locks are free about {timeout:?} later"),
    ///     None => println!("there is no session"),
    /// }
    /// # }
    /// ```
    pub fn session_timeout(&self) -> Option<Duration> {
        self.home.session().map(|session| session.timeout())
    }

    /// Returns the session's number; `None` while there is no session.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock::Client) {
    /// println!("session {:#x}", client.session_id().unwrap_or_default());
    /// # }
    /// ```
    pub fn session_id(&self) -> Option<i64> {
        self.home.session().map(|session| session.id())
    }

    /// Returns a key to the current session. With it, another process can end the session once this process is
    /// dead, so that its locks are free before the session times out. This call sends no request.
    ///
    /// Each [session](Self::connection) has its own key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unreachable`] if there is no session now, or the machine has no working loopback interface.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::{io::Write, process::ChildStdin};
    ///
    /// # async fn example(client: &zklock::Client, mut pipe: ChildStdin) -> Result<(), Box<dyn std::error::Error>> {
    /// // To a process that waits for the end of this one, and then ends the session.
    /// pipe.write_all(&client.session_key().await?.to_bytes())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn session_key(&self) -> Call<SessionKey> {
        self.home.call(Wait::Forever, |client| async move {
            let Some(session) = client.fixed().pool().slot().current() else {
                return Err(Error::new(
                    ErrorKind::Unreachable,
                    "there is no session now: ask again when connected",
                ));
            };
            session.key().await.ok_or_else(|| {
                let message = "there is no key of the session: the session has just ended, or the machine has no \
                               working loopback interface";
                Error::new(ErrorKind::Unreachable, message)
            })
        })
    }

    /// Starts a guardian: a process that ends the session at the servers as soon as this process is dead. Its
    /// locks are then free at once. Without a guardian, which is the default, they are free when the session times
    /// out.
    ///
    /// The command is `zklock guardian`, of the same version as this crate. It is a child of this process, in a
    /// process group of its own. The client writes to its standard input: how to connect, with all passwords, and
    /// the key of each session. This call returns when the guardian watches. The guardian ends when the client is
    /// closed or the [`Guardian`] is dropped.
    ///
    /// The guardian waits until this process is dead. It does nothing to one that is stopped, slow, cut off or
    /// replaced (exec). Child processes of this process may still run when the next holder has the lock. To end
    /// them first, use `zklock run`. If the machine or the container dies, if the guardian is killed too, or if
    /// the servers cannot be reached, the session timeout applies.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::InvalidInput`] if the command cannot be started or is another program, if the client has a
    ///   guardian already, or on Linux before 5.3;
    /// * [`ErrorKind::Refused`] if the guardian cannot connect as the client does, for example because it was built
    ///   without Kerberos;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call dismisses the guardian.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let mut command = std::process::Command::new("zklock");
    /// command.arg("guardian");
    /// client.guard(command).await?.keep();
    /// let hold = client.mutex("/locks/report")?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn guard(&self, command: Command) -> Call<Guardian> {
        self.home.call(Wait::Forever, |client| async move {
            Guardian::start(command, client.fixed().pool()).await
        })
    }

    /// Returns how the client is connected now; `None` if it has not connected yet, or belongs to another process. It sends
    /// no request.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::further::ConnectionState;
    ///
    /// # fn example(client: &zklock::Client) {
    /// // The answer to a health check.
    /// let is_ready = client.connection_state() == Some(ConnectionState::Connected);
    /// # }
    /// ```
    pub fn connection_state(&self) -> Option<ConnectionState> {
        self.home.connection_state()
    }

    /// Follows the state of the connection. Use it to pause work during an outage, or to drop what belonged
    /// to a lost session.
    ///
    /// To guard work that needs a hold, watch the hold itself: [`Hold::lost`](crate::Hold::lost) also reports a
    /// deleted node, and [`Hold::valid_for`](crate::Hold::valid_for) says how long you may rely on it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`] if the client belongs to the parent process; [`ErrorKind::Refused`] if the
    /// system has no more threads or file descriptors; [`ErrorKind::Closed`] if it was closed before it had connected.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::Client;
    /// # use zklock::further::ConnectionState;
    /// # async fn example(client: &Client) -> Result<(), zklock::Error> {
    /// let mut connection = client.connection()?;
    /// while let Some(state) = connection.next().await {
    ///     match state {
    ///         ConnectionState::Connected => println!("go on"),
    ///         state => println!("pause: {state}"),
    ///     }
    /// }
    /// println!("the client is closed");
    /// # Ok(())
    /// # }
    /// ```
    pub fn connection(&self) -> Result<Connection, Error> {
        self.home.connection()
    }

    /// Calls `listener` with the state of the connection now, and then with each change, until the [`Watch`] is dropped or
    /// the client is closed. A task of the client calls it, so it must not block. See [`Connection`].
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
    /// # fn example(client: &zklock::Client) -> Result<(), zklock::Error> {
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

    /// Closes the session, which frees every lock that this client and its clones hold. Returns when the ensemble
    /// has confirmed that, or after a second at the latest. The client does not connect again.
    ///
    /// Its holds are then lost, and waits end with [`ErrorKind::Closed`]. Closing twice is not an error.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`] if the client belongs to the parent process.
    ///
    /// # Cancel safety
    ///
    /// The client is closed when the call begins. Dropping the call then only stops the waiting.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LossReason;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let hold = client.mutex("/locks/report")?.acquire().await?;
    /// client.close().await?;
    /// assert_eq!(hold.lost().await?, Some(LossReason::ClientClosed));
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(&self) -> Call<()> {
        self.home.close()
    }

    /// Makes the lock that `spec` describes. This call sends no request: the first acquire creates the
    /// nodes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if a lock of this kind does not support these options, or wants more permits
    /// than fit into one request.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let lock = client.lock(&LockSpec::mutex("/locks/report")?.reentrant(true))?;
    /// let hold = lock.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self, spec: &LockSpec) -> Result<Lock, Error> {
        Lock::new(&self.home, spec)
    }

    /// Makes the mutex at `path`. This call sends no request: the first acquire creates the node.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `path` cannot be the path of
    /// a lock.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let hold = client.mutex("/locks/report")?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mutex(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::mutex(path)?)
    }

    /// Makes the read side of the read/write lock at `path`. Any number of readers can hold it
    /// together.
    ///
    /// A reader's [token](crate::Token) is greater than that of every writer before it, and smaller than that of every
    /// writer after it. Among readers that hold the lock together, the order of tokens means nothing.
    ///
    /// A reader that acquires the write side waits until its hold of the read side is released, by any task or thread.
    /// If that hold is of a reentrant lock, only the reader itself can release it, so acquiring the write side fails
    /// with [`Deadlock`](crate::ErrorKind::Deadlock).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let hold = client.read_lock("/locks/table")?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_lock(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::read_lock(path)?)
    }

    /// Makes the write side of the read/write lock at `path`: one writer holds it, and no reader at
    /// the same time.
    ///
    /// A task or thread that holds the write side through a [reentrant](LockSpec::reentrant) lock may also acquire the
    /// read side at once, and keep it after it releases the write side. No other writer comes in between. The hold of
    /// the read side has the token of the write side. The lock of the read side may be reentrant or not.
    ///
    /// If the lock of the write side is not reentrant, any task or thread may release its hold, so another task may be
    /// using it to write. Then even the task or thread that acquired the write side waits for its release before it
    /// gets the read side. The log has a warning about this wait.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// use zklock::LockSpec;
    ///
    /// let write = client.lock(&LockSpec::write_lock("/locks/table")?.reentrant(true))?.acquire().await?;
    /// // ... change the table ...
    /// let read = client.read_lock("/locks/table")?.acquire().await?;
    /// write.release().await?;
    /// // ... other readers read it too, and no writer has changed it since ...
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_lock(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::write_lock(path)?)
    }

    /// Makes the semaphore at `path`, with `limit` permits. Every program that uses it must give
    /// the same limit.
    ///
    /// A permit does not belong to a task or thread: each may acquire several, and release any. Among permits that
    /// are held together, the order of their [tokens](crate::Token) means nothing. Tokens work as a fence only if
    /// there is one permit.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does; and with [`ErrorKind::InvalidInput`] for a limit of zero, or if the path
    /// and the identity are so long that a permit does not fit into one request.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let permit = client.semaphore("/locks/licences", 5)?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn semaphore(&self, path: &str, limit: u32) -> Result<Lock, Error> {
        self.lock(&LockSpec::semaphore(path, limit)?)
    }

    /// Writes the number of permits to the node that semaphores name with [`limit_at`](LockSpec::limit_at), and creates
    /// the node if it does not exist. It has the format of Curator's `SharedCount`.
    ///
    /// Waiters notice the change. Permits that are held stay held, even if the new limit is lower.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::InvalidInput`] for a bad path, or a limit over 2,147,483,647;
    /// * [`ErrorKind::Unreachable`] if the ensemble does not answer within the connect timeout;
    /// * [`ErrorKind::Refused`] if the access list does not allow it;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// If the call is dropped, the limit may or may not be written.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// client.set_limit("/limits/licences", 7).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_limit(&self, path: &str, limit: u32) -> Call<()> {
        let path = path.to_owned();
        self.home.call(Wait::Forever, move |client| async move {
            check_lock_path(&path)?;
            let count = i32::try_from(limit).map_err(|_| {
                Error::new(
                    ErrorKind::InvalidInput,
                    format!("the limit {limit} of {path} is too large for a shared count"),
                )
            })?;
            let data = count.to_be_bytes().to_vec();
            let (path, data) = (&path, &data);
            let problem = || format!("the limit at {path} was not written");
            ask(client.fixed().pool(), problem, |session| async move {
                semaphore::write_limit(&session, path, data).await
            })
            .await
        })
    }

    /// Returns the identity of the ensemble. A [fence](crate::fence) keeps it together with the token, because tokens of two
    /// ensembles cannot be compared. The identity is the data of the node `/zklock-ensemble`. The first client that asks
    /// creates this node below its chroot, with its access list. A client asks the servers once in each session.
    ///
    /// An ensemble that you restore from a backup keeps its identity, although its tokens start again from earlier ones. In
    /// that case, delete the node once the ensemble's clients have ended.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if the ensemble does not answer within the connect timeout;
    /// * [`ErrorKind::Refused`] if the access list does not allow reading or creating the node, or its data is not
    ///   from zklock;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// If the call is dropped, the node may or may not be created.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// println!("tokens of the ensemble {}", client.ensemble_id().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ensemble_id(&self) -> Call<Arc<str>> {
        self.home.call(Wait::Forever, |client| async move {
            ask(client.fixed().pool(), ensemble_id::problem, |session| async move {
                ensemble_id::of(&session).await
            })
            .await
        })
    }

    /// Makes the lock whose holder leads the election at `path`.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let lead = client.election("/election/scheduler")?.acquire().await?;
    /// tokio::select! {
    ///     _ = async { /* lead */ } => lead.release().await?,
    ///     reason = lead.lost() => eprintln!("not the leader any more: {reason:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn election(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::election(path)?)
    }

    /// Makes the single-node lock at `path`. The client that creates the node `lock` below that path holds it. This call sends
    /// no request.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// if let Some(hold) = client.single_node("/jobs/nightly")?.try_acquire().await? {
    ///     // ... nobody else does the job ...
    ///     hold.release().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn single_node(&self, path: &str) -> Result<Lock, Error> {
        self.lock(&LockSpec::single_node(path)?)
    }

    /// Makes the set of these locks, which are acquired and released together. You can mix mutexes, read and
    /// write sides, semaphores and elections. A lock that you name twice is in the set once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are no locks, one belongs to another client or has no queue, two different
    /// ones have the same path, or there are too many for one request.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let (from, to) = (client.mutex("/accounts/1")?, client.mutex("/accounts/2")?);
    /// let both = client.all(&[from, to])?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn all(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.lock(&self.all_of(locks)?)
    }

    /// Like [`all`](Self::all), but returns a description, on which you can set options.
    ///
    /// # Errors
    ///
    /// Fails like [`all`](Self::all) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let tables = [client.write_lock("/locks/orders")?, client.read_lock("/locks/prices")?];
    /// let both = client.lock(&client.all_of(&tables)?.reentrant(true))?;
    /// let hold = both.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn all_of(&self, locks: &[Lock]) -> Result<LockSpec, Error> {
        LockSpec::all(self.specs_of(locks, all::of_another_client)?)
    }

    /// Makes a choice of these locks: acquiring it gives a hold of whichever is free first, and leaves the queues of the
    /// others. You can mix mutexes, read and write sides, semaphores, elections and sets.
    ///
    /// Use it in a worker that takes any free job out of many. The [path](crate::Hold::path) of the hold says which of the
    /// locks it got.
    ///
    /// An acquire first looks at all queues, in one round trip that changes nothing. If some locks are free, it acquires the
    /// one that you named first. If another client takes that one first, it goes on with another free one at random. So a try
    /// takes two round trips, unless others take the same locks at that moment, and a failed try does not disturb other
    /// contenders. If no lock is free, an acquire queues for all of them. If several are granted at the same time, it keeps the
    /// one that you named first. The nodes of the others are deleted in the background, and counted as
    /// [owed](crate::further::Stats::owed) until then.
    ///
    /// A lock that [lingers](LockSpec::linger) at another client looks held. A try does not end that; an acquire that queues
    /// does.
    ///
    /// A waiting acquire watches every lock. When the client reconnects, it names all watches of its session in one request,
    /// whose size is limited. So a choice can have about 700 locks. If several large choices wait at the same time, give
    /// each its own client.
    ///
    /// Each lock is acquired as it would be alone, with its own options. So a lock that the caller already holds is busy,
    /// unless it is reentrant: then the caller gets another hold of it. If only the caller itself can release a lock, the
    /// acquire waits for the other locks. If one lock fails, for example because an access list forbids it, the whole acquire
    /// fails.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are no locks, one belongs to another client, has no queue or is itself a choice,
    /// two have the same path, or there are too many for one session to watch.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let jobs = [client.mutex("/jobs/1")?, client.mutex("/jobs/2")?, client.mutex("/jobs/3")?];
    /// if let Some(hold) = client.any(&jobs)?.try_acquire().await? {
    ///     println!("do what {} stands for", hold.path());
    ///     hold.release().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn any(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.lock(&self.any_of(locks)?)
    }

    /// Like [`any`](Self::any), but returns a description.
    #[doc(hidden)]
    pub fn any_of(&self, locks: &[Lock]) -> Result<LockSpec, Error> {
        LockSpec::any(self.specs_of(locks, any::of_another_client)?)
    }

    /// Returns the descriptions of these locks; fails with `refusal` if not all of them belong to this client.
    fn specs_of(&self, locks: &[Lock], refusal: fn(&[&str]) -> Error) -> Result<Vec<LockSpec>, Error> {
        self.home.refuse_forked()?;
        if !locks.iter().all(|lock| lock.open.home().is_same(&self.home)) {
            return Err(refusal(&locks.iter().map(Lock::path).collect::<Vec<_>>()));
        }
        Ok(locks.iter().map(|lock| lock.spec().clone()).collect())
    }

    /// Makes the job that `spec` describes: it runs on one host in each period. This call sends no request.
    ///
    /// A job is the [mutex](Self::mutex) at that path, and the node `last-run` below it, with the record of the last run: when
    /// it began and ended, whose it was, and how it ended. The record is written only while the mutex is held. Periods are
    /// counted on the clocks of the servers, so it does not matter if a client's clock is wrong.
    ///
    /// Do not use a job's path with other libraries: some of them wait for any node that is there.
    ///
    /// # Errors
    ///
    /// Fails like [`lock`](Self::lock) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock::{Begun, JobSpec};
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let daily = JobSpec::new("/jobs/report", Duration::from_secs(86_400))?;
    /// match client.job(&daily)?.begin().await? {
    ///     Begun::Run(run) => {
    ///         // ... write the report of the day ...
    ///         run.done().await?;
    ///     }
    ///     Begun::Done(record) => println!("{} has written it", record.identity),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn job(&self, spec: &JobSpec) -> Result<Job, Error> {
        Job::new(self.mutex(spec.path())?, spec.clone())
    }

    /// Makes the barrier at `path`. This call sends no request, and does not set the barrier.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `path` cannot be the path of a lock.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// client.barrier("/barriers/migration")?.wait().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn barrier(&self, path: &str) -> Result<Barrier, Error> {
        Barrier::new(&self.home, path)
    }

    /// Makes the double barrier at `path`, which opens when `members` have come. Every program that uses it must
    /// give the same number. This call sends no request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `path` cannot be the path of a lock, or `members` is zero.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let member = client.double_barrier("/barriers/round", 3)?.enter().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn double_barrier(&self, path: &str, members: u32) -> Result<DoubleBarrier, Error> {
        DoubleBarrier::new(&self.home, path, members)
    }

    /// Lists the names of the nodes directly below this one, in alphabetical order. The list is empty if the node does not
    /// exist. `/` is the root, or the chroot.
    ///
    /// The list includes the nodes of contenders. [`Lock::contenders`](crate::Lock::contenders) shows which these are, and
    /// who created them.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a bad path;
    /// * [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if the ensemble does not answer within the connect
    ///   timeout;
    /// * [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the access list does not allow reading the node;
    /// * [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// for name in client.children("/locks").await? {
    ///     let path = format!("/locks/{name}");
    ///     println!("{path}: {} contenders", client.mutex(&path)?.contenders().await?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(hidden)]
    pub fn children(&self, path: &str) -> Call<Vec<String>> {
        let path = path.to_owned();
        self.home.call(Wait::Forever, move |client| async move {
            check_path(&path)?;
            let directory: &Arc<str> = &path.as_str().into();
            let problem = || format!("the nodes below {path} could not be listed");
            ask(client.fixed().pool(), problem, |session| async move {
                catch_up(&session, directory).await?;
                match request(&session, Operation::List { directory: directory.clone() }).await? {
                    (Outcome::Children(mut names), _) => {
                        names.sort_unstable();
                        Ok(names)
                    }
                    _ => Ok(Vec::new()),
                }
            })
            .await
        })
    }

    #[cfg(test)]
    pub(crate) fn pool(&self) -> &crate::session::pool::Pool {
        self.home.made().unwrap().fixed().pool()
    }
}
