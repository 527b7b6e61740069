//! The semaphore: it has as many holders as permits, in the order of arrival.
//!
//! It has the layout of Curator's `InterProcessSemaphoreV2`, and with one permit that of `InterProcessSemaphoreMutex`.
//! The contender at the head of the queue `locks` takes its permits in `leases` as soon as there are enough, and then
//! leaves the queue. Only the head watches the permits. If each contender watched only the n-th one before it instead,
//! it would miss any other that returns its permit.

use crate::base::error::{Error, ErrorKind};
use crate::client::client::Client;
use crate::client::lock::Lock;
use crate::client::spec::{Kind, LockSpec};
use crate::connect::options::ClientOptions;
use crate::connect::path::check_lock_path;
use crate::machine::claim::{Claim, Permits};
use crate::machine::name::Scheme;
use crate::machine::protocol::Operation;
use crate::session::ask::{Refused, ask, while_refused};
use crate::session::session::Session;
use crate::zookeeper::ensemble::{ReadFailure, Versions, Write, WriteFailure};
use std::sync::Arc;

/// The directory of the permits, below the path.
const PERMITS: &str = "/leases";
/// How many permits can be taken at once. They are created in one request.
const PERMITS_AT_MOST: u32 = 256;
/// The largest request that a server takes by default (`jute.maxbuffer`), less an allowance for what surrounds the
/// nodes.
const REQUEST_AT_MOST: usize = 1_000_000;
/// An upper bound for the rest of one permit in that request: its name, and its access list unless one is given.
const BYTES_OF_A_PERMIT: usize = 192;
/// How many times the limit is written if others create or delete its node meanwhile.
const ROUNDS_AT_MOST: u32 = 3;

impl Client {
    /// Makes the semaphore at `path`, with `limit` permits. All its users must agree on the limit.
    ///
    /// A permit belongs to nobody: any thread may acquire several, and release any. Among permits that are held
    /// together, the order of their [tokens](crate::Token) means nothing. Tokens work as a fence only if there is one
    /// permit.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does; and with [`ErrorKind::InvalidInput`] for a limit of zero, or if the path
    /// and the identity are so long that a permit does not fit into one request.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
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
    /// If the future is dropped, the limit may or may not be written.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// client.set_limit("/limits/licences", 7).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_limit(&self, path: &str, limit: u32) -> Result<(), Error> {
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
        ask(self.pool(), problem, |session| async move { write_limit(&session, path, data).await }).await
    }
}

impl LockSpec {
    /// Describes a [semaphore](Client::semaphore) with `limit` permits.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::LockSpec;
    ///
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let three = client.lock(&LockSpec::semaphore("/locks/licences", 5)?.permits(3))?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn semaphore(path: &str, limit: u32) -> Result<Self, Error> {
        Self::at(path, Kind::Semaphore { limit })
    }

    /// Sets how many permits of a semaphore to acquire at once. Default: 1.
    #[must_use]
    pub fn permits(mut self, permits: u32) -> Self {
        self.permits = permits;
        self
    }

    /// Sets the node that stores the number of permits, in the format of Curator's `SharedCount`. While it does not
    /// exist, the limit given to [`semaphore`](Self::semaphore) applies. Default: no such node.
    ///
    /// Every waiter notices when the number changes. [`Client::set_limit`] writes it.
    #[must_use]
    pub fn limit_at(mut self, path: &str) -> Self {
        self.limit_at = Some(path.to_owned());
        self
    }

    pub(crate) fn semaphore_claim(&self, limit: u32, scheme: Scheme) -> Result<Claim, Error> {
        let (path, count) = (self.path(), self.permits);
        if self.is_reentrant() {
            return Err(invalid(path, "a permit belongs to nobody, so a semaphore is not reentrant"));
        }
        check_permits(count).map_err(|error| error.within(&of(path)))?;
        match &self.limit_at {
            Some(limit_at) => check_lock_path(limit_at)?,
            None if count > limit => {
                let problem = format!(
                    "{count} permits of {limit} would never be there: raise the limit, or ask for fewer"
                );
                return Err(invalid(path, &problem));
            }
            None => {}
        }
        let permits = Permits {
            directory: format!("{path}{PERMITS}").into(),
            count,
            limit,
            limit_at: self.limit_at.as_deref().map(Into::into),
            data: Arc::default(),
        };
        Ok(Claim { permits: Some(permits), ..self.claim(&format!("{path}/locks"), scheme) })
    }
}

/// Checks whether a client with these options can take these permits, with their data, in one request.
pub(crate) fn check_permits_fit(permits: &Permits, client: &ClientOptions) -> Result<(), Error> {
    let Permits { directory, count, .. } = permits;
    let path = directory.strip_suffix(PERMITS).unwrap_or(directory);
    let of_list = client.access.bytes();
    let of_permit = client.hosts.chroot.len() + path.len() + permits.data.len() + of_list + BYTES_OF_A_PERMIT;
    if *count as usize * of_permit <= REQUEST_AT_MOST {
        return Ok(());
    }
    let problem = format!(
        "{count} permits at a path of this length are too much for one request: ask for fewer, or shorten the path, \
         the chroot, the identity or the access list"
    );
    Err(invalid(path, &problem))
}

/// Checks whether so many permits can be acquired at once.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] if not. The message says how many can.
pub fn check_permits(permits: u32) -> Result<(), Error> {
    if (1..=PERMITS_AT_MOST).contains(&permits) {
        return Ok(());
    }
    let message = format!("{permits} permits cannot be acquired: ask for 1 to {PERMITS_AT_MOST}");
    Err(Error::new(ErrorKind::InvalidInput, message))
}

fn of(path: &str) -> String {
    format!("the semaphore {path}")
}

fn invalid(path: &str, problem: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("{}: {problem}", of(path)))
}

/// Sets the limit, or creates its node.
async fn write_limit(session: &Arc<Session>, path: &str, data: &[u8]) -> Result<(), ReadFailure> {
    while_refused(ROUNDS_AT_MOST, || async {
        match set_or_create(session, path, data).await {
            Ok(_) => Ok(Ok(())),
            Err(WriteFailure::Refused { problem, .. }) => Ok(Err(Refused(problem))),
            // Writing it twice does no harm.
            Err(_) => Err(ReadFailure::Unknown),
        }
    })
    .await
}

async fn set_or_create(session: &Arc<Session>, path: &str, data: &[u8]) -> Result<Versions, WriteFailure> {
    let (path, data) = (path.to_owned(), data.to_vec());
    let set = Write::SetData { path: path.clone(), data: data.clone(), version: None };
    let refused = match session.commit(Vec::new(), vec![set]).await {
        Err(refused @ WriteFailure::Refused { .. }) => refused,
        written => return written,
    };
    if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
        session.clone().send(vec![Operation::CreateParents { directory: parent.into() }]).await;
    }
    let create = Write::Create { path: path.clone(), data };
    match session.commit(Vec::new(), vec![create]).await {
        // The node exists, so what matters is why it could not be set.
        Err(WriteFailure::Refused { .. }) if matches!(session.look(path.into()).await, Ok(Some(_))) => {
            Err(refused)
        }
        created => created,
    }
}
