//! One logical connection to an ensemble.

use crate::connection::{self, Connection, ConnectionState};
use crate::diagnose;
use crate::error::{Error, ErrorKind};
use crate::line::{Line, Shared};
use crate::lock::Lock;
use crate::machine::claim::Claim;
use crate::options::ClientOptions;
use crate::place::Place;
use crate::pool::{Pool, Slot, Stage};
use crate::spec::LockSpec;
use crate::stats::{Counters, Stats};
use crate::sync::lock_ignoring_poison;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::runtime::Handle;

/// One logical connection to an ensemble. It is cheap to clone, and outlives sessions: when one
/// expires it opens the next.
///
/// Its work is done by tasks of the runtime in which it was connected. When the last client, lock and
/// hold is dropped, the session is closed in the background.
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
    shared: Arc<Shared>,
    registry: Arc<Mutex<Registry>>,
}

impl Client {
    /// Opens a session.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if no server answers within the connect timeout, or none of the
    ///   hosts is known;
    /// * [`ErrorKind::Refused`] if the chroot does not exist;
    /// * [`ErrorKind::InvalidInput`] if it is called outside of a tokio runtime, or with TLS and a host
    ///   that no certificate can name.
    pub async fn connect(options: ClientOptions) -> Result<Self, Error> {
        let Ok(runtime) = Handle::try_current() else {
            let message =
                "a client is connected within a tokio runtime; without one, use zklock_core::blocking";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        };
        #[cfg(feature = "tls")]
        if let Some(tls) = &options.tls {
            tls.check_names(&options.hosts)?;
        }
        let shared = Arc::new(Shared { pool: Pool::new(options, runtime), counters: Arc::default() });
        let slot = shared.pool.slot();
        let options = shared.pool.options();
        tokio::select! {
            biased;
            opened = slot.session() => match opened {
                Ok(_) => Ok(Self { shared, registry: Arc::default() }),
                Err(error) => Err(explained(slot, &options.hosts.chroot, error)),
            },
            error = diagnose::hosts(options) => Err(error),
        }
    }

    /// What this client has done, and what it still owes.
    pub fn stats(&self) -> Stats {
        self.shared.counters.read(self.shared.pool.opened())
    }

    /// The timeout of the session, as the servers granted it, if there is one now.
    ///
    /// It becomes shorter when the session moves to a server that grants less, and not longer again.
    pub fn session_timeout(&self) -> Option<Duration> {
        self.shared.pool.slot().current().map(|session| session.timeout())
    }

    /// The number of the session, if there is one now.
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::Client) {
    /// println!("session {:#x}", client.session_id().unwrap_or_default());
    /// # }
    /// ```
    pub fn session_id(&self) -> Option<i64> {
        self.shared.pool.slot().current().map(|session| session.id())
    }

    /// How the client is connected now. It costs no request.
    pub fn connection_state(&self) -> ConnectionState {
        connection::state_at(&self.shared.pool.slot().stage())
    }

    /// Follows how the client is connected: to pause work during an outage, or to forget what a session stood for.
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
    ///
    /// What a hold guards is better watched by that hold: [`Hold::lost`](crate::Hold::lost) also tells of a deleted node, and
    /// [`Hold::valid_for`](crate::Hold::valid_for) how long it may be relied upon.
    pub fn connection(&self) -> Connection {
        Connection::of(self.shared.pool.slot())
    }

    /// Closes the session, which frees every lock that this client and its clones hold, and waits
    /// until the ensemble has confirmed it, or a second has passed.
    ///
    /// Holds are lost then, waits end with [`ErrorKind::Closed`]. Closing twice is no mistake.
    pub async fn close(&self) {
        // There is nothing that it could fail for.
        let _ = self.begin_close().await;
    }

    /// Closes the session, and gives what is to be waited for.
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

    /// The lock of this description. It costs no request: nodes are created by the first acquire.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if a lock of this kind cannot have these options, or has too many permits for one
    /// request.
    pub fn lock(&self, spec: &LockSpec) -> Result<Lock, Error> {
        let claims = spec.claims_of(self.shared.pool.options())?;
        let mut registry = lock_ignoring_poison(&self.registry);
        let line = registry.line(&claims).unwrap_or_else(|| {
            let places = claims.iter().map(|claim| registry.place(&claim.directory)).collect();
            let line = Arc::new(Line::new(spec.path().into(), claims.clone(), places, self.shared.clone()));
            registry.lines.insert(claims, Arc::downgrade(&line));
            line
        });
        Ok(Lock::new(line, spec.clone()))
    }

    pub(crate) fn has_made(&self, lock: &Lock) -> bool {
        Arc::ptr_eq(&self.shared, lock.shared())
    }

    /// What is known of this path.
    pub(crate) fn place(&self, path: &Arc<str>) -> Arc<Place> {
        lock_ignoring_poison(&self.registry).place(path)
    }
}

/// What is shared by all locks of a client that are the same, and by those of one path.
#[derive(Default)]
struct Registry {
    lines: HashMap<Vec<Claim>, Weak<Line>>,
    places: HashMap<Arc<str>, Weak<Place>>,
}

impl Registry {
    fn line(&mut self, claims: &[Claim]) -> Option<Arc<Line>> {
        let line = self.lines.get(claims).and_then(Weak::upgrade);
        if line.is_none() && self.lines.len() == self.lines.capacity() {
            self.lines.retain(|_, line| line.strong_count() > 0);
        }
        line
    }

    fn place(&mut self, directory: &Arc<str>) -> Arc<Place> {
        if let Some(place) = self.places.get(directory).and_then(Weak::upgrade) {
            return place;
        }
        if self.places.len() == self.places.capacity() {
            self.places.retain(|_, place| place.strong_count() > 0);
        }
        let place = Arc::default();
        self.places.insert(directory.clone(), Arc::downgrade(&place));
        place
    }
}

fn explained(slot: &Slot, chroot: &str, error: Error) -> Error {
    match slot.stage() {
        Stage::NoRoot => {
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
