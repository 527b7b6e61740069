//! One logical connection to an ensemble.

use crate::attempt::held_at::HeldAt;
use crate::attempt::local_queue::{Handle, LocalQueue, Shared};
use crate::base::error::{Error, ErrorKind};
use crate::base::stats::{Counters, Stats};
use crate::base::sync::lock_ignoring_poison;
use crate::client::lock::Lock;
use crate::client::spec::LockSpec;
use crate::connect::options::ClientOptions;
use crate::machine::claim::Claim;
use crate::machine::turns::Passing;
use crate::session::connection::{self, Connection, ConnectionState};
use crate::session::diagnose;
use crate::session::guardian::Guardian;
use crate::session::pool::Pool;
use crate::session::session_key::SessionKey;
use crate::session::slot::{Slot, SlotState};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::runtime;
use tokio::sync::watch;

/// One logical connection to an ensemble. It is cheap to clone, and it outlives sessions: when one expires, it
/// opens the next.
///
/// Its work is done by tasks on the runtime in which it was connected. When the last client, lock and hold is
/// dropped, the session is closed in the background.
///
/// # Examples
///
/// ```no_run
/// use zklock_core::{Client, ClientOptions};
///
/// # async fn example() -> Result<(), zklock_core::Error> {
/// let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181,zk3:2181")?).await?;
/// let hold = client.mutex("/locks/report")?.acquire().await?;
/// hold.release().await?;
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    handle: Handle,
    shared: Arc<Shared>,
    registry: Arc<Mutex<Registry>>,
}

impl Client {
    /// Connects, and opens a session.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if no server answers within the connect timeout, or none of the host names can
    ///   be resolved;
    /// * [`ErrorKind::Refused`] if the chroot does not exist, the servers reject the client's
    ///   [credentials](ClientOptions::credentials) or demand some, or a credentials or TLS file can no longer be
    ///   read;
    /// * [`ErrorKind::InvalidInput`] if it is called outside a tokio runtime, or the options [contradict each
    ///   other](ClientOptions::check).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up. A session that is already open is closed in the background.
    pub async fn connect(options: ClientOptions) -> Result<Self, Error> {
        let Ok(runtime) = runtime::Handle::try_current() else {
            let message =
                "a client is connected within a tokio runtime; without one, use zklock_core::blocking";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        };
        options.check()?;
        let (handle, handles) = watch::channel(());
        let counters = Arc::<Counters>::default();
        let pool = Pool::new(options, runtime, counters.clone());
        let shared = Arc::new(Shared { pool, counters, handles });
        let slot = shared.pool.slot();
        let options = shared.pool.options();
        tokio::select! {
            biased;
            opened = slot.session() => match opened {
                Ok(_) => Ok(Self { handle: handle.into(), shared, registry: Arc::default() }),
                Err(error) => Err(explained(slot, &options.hosts.chroot, error)),
            },
            error = diagnose::hosts(options, slot) => Err(error),
        }
    }

    /// Returns the counters of this client: what it has done, and what it still has to clean up.
    pub fn stats(&self) -> Stats {
        self.shared.counters.read()
    }

    /// Returns the session timeout that the servers granted; `None` while there is no session.
    ///
    /// It shrinks when the session moves to a server that grants less. It never grows again.
    pub fn session_timeout(&self) -> Option<Duration> {
        self.shared.pool.slot().current().map(|session| session.timeout())
    }

    /// Returns the session's number; `None` while there is no session.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::Client) {
    /// println!("session {:#x}", client.session_id().unwrap_or_default());
    /// # }
    /// ```
    pub fn session_id(&self) -> Option<i64> {
        self.shared.pool.slot().current().map(|session| session.id())
    }

    /// Returns the key with which another process can end the current session once this process is dead, so that
    /// its locks are free before the session times out. It costs the servers no request.
    ///
    /// Each [session](Self::connection) has its own key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unreachable`] if there is no session now, or the machine has no working loopback interface.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn session_key(&self) -> Result<SessionKey, Error> {
        let Some(session) = self.shared.pool.slot().current() else {
            return Err(Error::new(
                ErrorKind::Unreachable,
                "there is no session now: ask again when connected",
            ));
        };
        session.key().await.ok_or_else(|| {
            let message = "the key of the session cannot be had: the session has just ended, or the machine has no working \
                           loopback interface";
            Error::new(ErrorKind::Unreachable, message)
        })
    }

    /// Starts a guardian: a process that ends the session at the servers as soon as this process is dead. Its
    /// locks are then free at once. Without a guardian, which is the default, they are free when the session times
    /// out.
    ///
    /// The command is `zklock guardian`, of the same version as this crate. Through its standard input the client
    /// tells it how to connect, with all passwords, and the key of each session. It is a child of this process
    /// with its own process group, and ends when the client is closed or the [`Guardian`] is dropped. This call
    /// returns when the guardian watches.
    ///
    /// The guardian waits until this process is dead. It does nothing to one that is stopped, slow, cut off or
    /// replaced (exec). Child processes of this process may live on beside the next holder; to end them first, use
    /// `zklock run`. If the machine or the container dies, if the guardian is killed too, or if the servers cannot
    /// be reached, the session timeout applies.
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
    /// If the future is dropped, the guardian is dismissed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let mut command = std::process::Command::new("zklock");
    /// command.arg("guardian");
    /// client.guard(command).await?.keep();
    /// let hold = client.mutex("/locks/report")?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn guard(&self, command: std::process::Command) -> Result<Guardian, Error> {
        Guardian::start(command, &self.shared.pool).await
    }

    /// Returns how the client is connected now. It costs no request.
    pub fn connection_state(&self) -> ConnectionState {
        connection::state_at(&self.shared.pool.slot().state())
    }

    /// Follows the state of the connection, for example to pause work during an outage, or to drop whatever
    /// depended on the session.
    ///
    /// To guard work that needs a hold, watch the hold itself: [`Hold::lost`](crate::Hold::lost) also reports a
    /// deleted node, and [`Hold::valid_for`](crate::Hold::valid_for) says how long you may rely on it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock_core::{Client, ConnectionState};
    /// # async fn example(client: &Client) {
    /// let mut connection = client.connection();
    /// while let Some(state) = connection.next().await {
    ///     match state {
    ///         ConnectionState::Connected => println!("go on"),
    ///         state => println!("pause: {state}"),
    ///     }
    /// }
    /// println!("the client is closed");
    /// # }
    /// ```
    pub fn connection(&self) -> Connection {
        Connection::of(self.shared.pool.slot())
    }

    /// Closes the session, which frees every lock that this client and its clones hold. Returns when the ensemble
    /// has confirmed that, or after a second.
    ///
    /// Its holds are then lost, and waits end with [`ErrorKind::Closed`]. Closing twice is not an error.
    ///
    /// # Cancel safety
    ///
    /// The client is closed from the first poll on. Dropping the future only stops the waiting.
    pub async fn close(&self) {
        // It cannot fail.
        let _ = self.begin_close().await;
    }

    /// Closes the session, and returns a future that waits until it is closed.
    #[doc(hidden)]
    pub fn begin_close(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.shared.pool.close();
        let shared = self.shared.clone();
        async move {
            shared.pool.closed().await;
            Ok(())
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.shared.counters
    }

    /// Makes the lock that `spec` describes. It costs no request; the first acquire creates the nodes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if a lock of this kind does not support these options, or wants more permits
    /// than fit into one request.
    pub fn lock(&self, spec: &LockSpec) -> Result<Lock, Error> {
        let wanted = (spec.claims_of(self.pool().options(), self.pool().identity())?, spec.passing);
        if let Some(members) = spec.alternatives() {
            let locks = members.iter().map(|member| self.lock(member)).collect::<Result<Vec<_>, _>>()?;
            let held_at = wanted.0.iter().map(|claim| self.held_at(&claim.directory)).collect();
            let (path, shared) = (spec.path().into(), self.shared.clone());
            let queue = Arc::new(LocalQueue::new(path, wanted.0, wanted.1, held_at, shared));
            return Ok(Lock::new(queue, spec.clone(), self.handle.clone()).any(locks));
        }
        let mut registry = lock_ignoring_poison(&self.registry);
        let queue = registry.queue(&wanted).unwrap_or_else(|| {
            let (claims, passing) = wanted.clone();
            let held_at = claims.iter().map(|claim| registry.held_at(&claim.directory)).collect();
            let (path, shared) = (spec.path().into(), self.shared.clone());
            let queue = Arc::new(LocalQueue::new(path, claims, passing, held_at, shared));
            registry.queues.insert(wanted, Arc::downgrade(&queue));
            queue
        });
        Ok(Lock::new(queue, spec.clone(), self.handle.clone()))
    }

    pub(crate) fn has_made(&self, lock: &Lock) -> bool {
        Arc::ptr_eq(&self.shared, lock.shared())
    }

    /// Returns the record of what this client holds at this path.
    pub(crate) fn held_at(&self, path: &Arc<str>) -> Arc<HeldAt> {
        lock_ignoring_poison(&self.registry).held_at(path)
    }
}

/// The local queues, which equal locks share, and the records of holds, which locks at the same path share.
#[derive(Default)]
struct Registry {
    queues: HashMap<(Vec<Claim>, Passing), Weak<LocalQueue>>,
    held_at: HashMap<Arc<str>, Weak<HeldAt>>,
}

impl Registry {
    fn queue(&mut self, wanted: &(Vec<Claim>, Passing)) -> Option<Arc<LocalQueue>> {
        let queue = self.queues.get(wanted).and_then(Weak::upgrade);
        if queue.is_none() && self.queues.len() == self.queues.capacity() {
            self.queues.retain(|_, queue| queue.strong_count() > 0);
        }
        queue
    }

    fn held_at(&mut self, directory: &Arc<str>) -> Arc<HeldAt> {
        if let Some(held_at) = self.held_at.get(directory).and_then(Weak::upgrade) {
            return held_at;
        }
        if self.held_at.len() == self.held_at.capacity() {
            self.held_at.retain(|_, held_at| held_at.strong_count() > 0);
        }
        let held_at = Arc::default();
        self.held_at.insert(directory.clone(), Arc::downgrade(&held_at));
        held_at
    }
}

fn explained(slot: &Slot, chroot: &str, error: Error) -> Error {
    match slot.state() {
        SlotState::NoRoot => {
            let message =
                format!("the chroot {chroot} does not exist: create it, or leave it out of the hosts");
            Error::new(ErrorKind::Refused, message)
        }
        _ => error,
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("hosts", &self.shared.pool.options().hosts.connect_string())
            .field("session", &self.session_id().map(|id| format!("{id:#x}")))
            .field("stats", &self.stats())
            .finish()
    }
}
