//! One logical connection to an ensemble.

use crate::attempt::local_queue::{HeldAt, LocalQueue};
use crate::attempt::members::Members;
use crate::attempt::shared::Handle;
use crate::base::error::{Error, ErrorKind};
use crate::base::stats::Stats;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::base::wait::Wait;
use crate::client::barrier::Barrier;
use crate::client::double_barrier::DoubleBarrier;
use crate::client::lock::Lock;
use crate::client::semaphore;
use crate::client::spec::LockSpec;
use crate::connect::options::ClientOptions;
use crate::connect::path::{check_lock_path, check_path};
use crate::machine::claim::Claim;
use crate::machine::protocol::{Operation, Outcome};
use crate::machine::turns::Passing;
use crate::session::ask::{ask, catch_up, request};
use crate::session::connection::{self, Connection, ConnectionState};
use crate::session::ensemble_id;
use crate::session::guardian::Guardian;
use crate::session::pool::Pool;
use crate::session::session_key::SessionKey;
use crate::threads::io::Io;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// One logical connection to an ensemble. It is cheap to clone, and it outlives sessions: when one expires, it
/// opens the next.
#[derive(Clone)]
pub(crate) struct Client {
    handle: Handle,
    registry: Arc<Mutex<Registry>>,
}

impl Client {
    /// Makes a client that opens its first session when that is [needed](Self::opened), in this runtime.
    pub(crate) fn unopened(options: ClientOptions, io: Io) -> Result<Self, Error> {
        options.check()?;
        let counters = Arc::default();
        let handle = Handle::new(Pool::new(options, io, Arc::clone(&counters)), counters);
        Ok(Self { handle, registry: Arc::default() })
    }

    /// Returns when the first session is open, or has been.
    pub(crate) async fn opened(&self, wait: Wait) -> Result<(), Error> {
        self.pool().opened(wait).await
    }

    pub(crate) fn has_opened(&self) -> bool {
        self.pool().has_opened()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pool().is_closed()
    }

    /// Returns the state of the connection; `None` before there was one.
    pub(crate) fn state_since_opened(&self) -> Option<ConnectionState> {
        connection::state_at(&self.handle.pool.slot().state())
    }

    /// Returns the counters of this client: its work so far, and the nodes that it still has to
    /// clean up.
    pub(crate) fn stats(&self) -> Stats {
        self.handle.counters.read()
    }

    /// Returns the session timeout that the servers granted; `None` while there is no session.
    pub(crate) fn session_timeout(&self) -> Option<Duration> {
        self.handle.pool.slot().current().map(|session| session.timeout())
    }

    /// Returns the session's number; `None` while there is no session.
    pub(crate) fn session_id(&self) -> Option<i64> {
        self.handle.pool.slot().current().map(|session| session.id())
    }

    /// Returns a key to the current session. With it, another process can end the session once this process is
    /// dead, so that its locks are free before the session times out. This call sends no request.
    pub(crate) async fn session_key(&self) -> Result<SessionKey, Error> {
        let Some(session) = self.handle.pool.slot().current() else {
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
    }

    /// Starts a guardian: a process that ends the session at the servers as soon as this process is dead. Its
    /// locks are then free at once. Without a guardian, which is the default, they are free when the session times
    /// out.
    pub(crate) async fn guard(&self, command: std::process::Command) -> Result<Guardian, Error> {
        Guardian::start(command, &self.handle.pool).await
    }

    /// Follows the state of the connection. Use it to pause work during an outage, or to drop what belonged
    /// to a lost session.
    pub(crate) fn connection(&self) -> Connection {
        Connection::of(self.handle.pool.slot())
    }

    /// Closes the session, and returns a future that waits until it is closed.
    pub(crate) fn begin_close(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.handle.pool.close();
        let shared = self.handle.shared().clone();
        async move {
            shared.pool.closed().await;
            Ok(())
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.handle.pool
    }

    /// Makes the lock that `spec` describes. This call sends no request: the first acquire creates the
    /// nodes.
    pub(crate) fn lock(&self, spec: &LockSpec) -> Result<Lock, Error> {
        let wanted = (spec.claims_of(self.pool().options(), self.pool().identity())?, spec.passing);
        if let Some(members) = spec.alternatives() {
            let locks = members.iter().map(|member| self.lock(member)).collect::<Result<Vec<_>, _>>()?;
            let mut registry = lock_ignoring_poison(&self.registry);
            let held_at = wanted.0.iter().map(|claim| registry.held_at(&claim.place())).collect();
            drop(registry);
            let (path, shared) = (spec.path().into(), self.handle.shared().clone());
            let queue = LocalQueue::new(path, wanted.0, wanted.1, held_at, shared);
            return Ok(Lock::new(queue, spec.clone(), self.handle.clone()).any(locks));
        }
        let mut registry = lock_ignoring_poison(&self.registry);
        let queue = registry.queue(&wanted).unwrap_or_else(|| {
            let (claims, passing) = wanted.clone();
            let held_at = claims.iter().map(|claim| registry.held_at(&claim.place())).collect();
            let (path, shared) = (spec.path().into(), self.handle.shared().clone());
            let queue = LocalQueue::new(path, claims, passing, held_at, shared);
            registry.queues.insert(wanted, Arc::downgrade(&queue));
            queue
        });
        Ok(Lock::new(queue, spec.clone(), self.handle.clone()))
    }

    /// Writes the number of permits to the node that semaphores name with [`limit_at`](LockSpec::limit_at), and creates
    /// the node if it does not exist. It has the format of Curator's `SharedCount`.
    pub(crate) async fn set_limit(&self, path: &str, limit: u32) -> Result<(), Error> {
        check_lock_path(path)?;
        let count = i32::try_from(limit).map_err(|_| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("the limit {limit} of {path} is too large for a shared count"),
            )
        })?;
        let data = count.to_be_bytes().to_vec();
        let data = &data;
        let problem = || format!("the limit at {path} was not written");
        ask(self.pool(), problem, |session| async move { semaphore::write_limit(&session, path, data).await })
            .await
    }

    /// Returns the identity of the ensemble. A [fence](crate::fence) keeps it together with the token, because tokens of two
    /// ensembles cannot be compared. The identity is the data of the node `/zklock-ensemble`. The first client that asks
    /// creates this node below its chroot, with its access list. A client asks the servers once in each session.
    pub(crate) async fn ensemble_id(&self) -> Result<Arc<str>, Error> {
        ask(self.pool(), ensemble_id::problem, |session| async move { ensemble_id::of(&session).await }).await
    }

    /// Makes the barrier at `path`. This call sends no request, and does not set the barrier.
    pub(crate) fn barrier(&self, path: &str) -> Result<Barrier, Error> {
        check_lock_path(path)?;
        Ok(Barrier::new(self.handle.clone(), path))
    }

    /// Makes the double barrier at `path`, which opens when `members` have come. Every program that uses it must
    /// give the same number. This call sends no request.
    pub(crate) fn double_barrier(&self, path: &str, members: u32) -> Result<DoubleBarrier, Error> {
        DoubleBarrier::check(path, members)?;
        let known = lock_ignoring_poison(&self.registry).members(&path.into());
        Ok(DoubleBarrier::new(self.handle.clone(), known, path, members))
    }

    /// Lists the names of the nodes directly below this one, in alphabetical order. The list is empty if the node does not
    /// exist. `/` is the root, or the chroot.
    pub(crate) async fn children(&self, path: &str) -> Result<Vec<String>, Error> {
        check_path(path)?;
        let directory: &Arc<str> = &path.into();
        let problem = || format!("the nodes below {path} could not be listed");
        ask(self.pool(), problem, |session| async move {
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
    }
}

/// The local queues, which equal locks share, and the records of holds, which locks at the same path share.
#[derive(Default)]
struct Registry {
    queues: HashMap<(Vec<Claim>, Passing), Weak<LocalQueue>>,
    held_at: HashMap<Arc<str>, Weak<HeldAt>>,
    members: HashMap<Arc<str>, Weak<Members>>,
}

impl Registry {
    fn queue(&mut self, wanted: &(Vec<Claim>, Passing)) -> Option<Arc<LocalQueue>> {
        let queue = self.queues.get(wanted).and_then(Weak::upgrade);
        if queue.is_none() && self.queues.len() == self.queues.capacity() {
            self.queues.retain(|_, queue| queue.strong_count() > 0);
        }
        queue
    }

    fn held_at(&mut self, place: &Arc<str>) -> Arc<HeldAt> {
        shared(&mut self.held_at, place)
    }

    fn members(&mut self, directory: &Arc<str>) -> Arc<Members> {
        shared(&mut self.members, directory)
    }
}

/// Returns what all have in common that want something at this path.
fn shared<T: Default>(known: &mut HashMap<Arc<str>, Weak<T>>, directory: &Arc<str>) -> Arc<T> {
    if let Some(known) = known.get(directory).and_then(Weak::upgrade) {
        return known;
    }
    if known.len() == known.capacity() {
        known.retain(|_, known| known.strong_count() > 0);
    }
    let new = Arc::default();
    known.insert(directory.clone(), Arc::downgrade(&new));
    new
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("hosts", &self.handle.pool.options().hosts.connect_string())
            .field("session", &self.session_id().map(|id| format!("{id:#x}")))
            .field("stats", &self.stats())
            .finish()
    }
}
