//! The semaphore: as many hold it as it has permits, in the order of arrival.
//!
//! It has the layout of Curator's `InterProcessSemaphoreV2`, and with one permit that of its
//! `InterProcessSemaphoreMutex`: whoever is at the head of the queue `locks` takes its permits in `leases` as soon as
//! there are enough, and makes way. Only the head watches the permits. To watch the n-th before one instead would miss
//! the return of any other.

use crate::ask::{Refused, ask, while_refused};
use crate::client::Client;
use crate::ensemble::{ReadFailure, Versions, Write, WriteFailure};
use crate::error::{Error, ErrorKind};
use crate::lock::Lock;
use crate::lock_options::LockOptions;
use crate::machine::claim::{Claim, Permits};
use crate::machine::exchange::Operation;
use crate::machine::name::Scheme;
use crate::path::{check_lock_path, check_path};
use crate::session::Session;
use std::sync::Arc;

/// Of permits that are taken at once: they are created in one request.
const PERMITS_AT_MOST: u32 = 256;
/// What a server takes in one request by default, `jute.maxbuffer`, but for what stands around the nodes.
const REQUEST_AT_MOST: usize = 1_000_000;
/// What one permit takes in it beside its directory and the identity: its name, its access list and the like, or more.
const BYTES_OF_A_PERMIT: usize = 192;
/// How often the limit is written anew where others create or delete its node.
const ROUNDS_AT_MOST: u32 = 3;

impl Client {
    /// The semaphore at `path`, with `limit` permits. All who use it must agree on the limit.
    ///
    /// A permit belongs to nobody: any thread may acquire several and release any. Among permits that are held together
    /// the order of their [tokens](crate::Token) says nothing: as a fence they are of use where there is one permit.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let permit = client.semaphore("/locks/licences", 5)?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex).
    pub fn semaphore(&self, path: &str, limit: u32) -> Result<Lock, Error> {
        self.semaphore_with(path, limit, LockOptions::new())
    }

    /// As [`semaphore`](Self::semaphore), with options: how many [permits](LockOptions::permits) to acquire at once,
    /// and the [node](LockOptions::limit_at) that says how many there are.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// use zklock_core::LockOptions;
    ///
    /// let three = client.semaphore_with("/locks/licences", 5, LockOptions::new().permits(3))?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`mutex`](Self::mutex), and [`ErrorKind::InvalidInput`] for more permits than there are, none, more than
    /// 256 at once, or more than fit into one request with so long a path and identity.
    pub fn semaphore_with(&self, path: &str, limit: u32, options: LockOptions) -> Result<Lock, Error> {
        check_lock_path(path)?;
        options.refuse_dialect(path, "a semaphore")?;
        let wanted = options.permits;
        let client = self.pool().options();
        let of_permit = client.hosts.chroot.len() + path.len() + client.identity.len() + BYTES_OF_A_PERMIT;
        let problem = if options.reentrant {
            Some("a permit belongs to nobody, so a semaphore is not reentrant".to_owned())
        } else if wanted == 0 || wanted > PERMITS_AT_MOST {
            Some(format!("{wanted} permits cannot be acquired: ask for 1 to {PERMITS_AT_MOST}"))
        } else if wanted > limit && options.limit_at.is_none() {
            Some(format!(
                "{wanted} permits of {limit} would never be there: raise the limit, or ask for fewer"
            ))
        } else if wanted as usize * of_permit > REQUEST_AT_MOST {
            Some(format!(
                "{wanted} permits at a path of this length are too much for one request: ask for fewer, or shorten \
                 the path, the chroot or the identity"
            ))
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(Error::new(ErrorKind::InvalidInput, format!("the semaphore {path}: {problem}")));
        }
        if let Some(at) = &options.limit_at {
            check_path(at)?;
        }
        let permits = Permits {
            directory: format!("{path}/leases").into(),
            count: wanted,
            limit,
            limit_at: options.limit_at.as_deref().map(Into::into),
        };
        let queue = Claim::new(&format!("{path}/locks"), Scheme::Mutex);
        let claim = options.apply(Claim { permits: Some(permits), ..queue });
        Ok(self.lock(path, vec![claim], options))
    }

    /// Writes how many permits there are to the node that semaphores were told of with
    /// [`limit_at`](LockOptions::limit_at), and creates it if it is not there: a `SharedCount` of Curator's.
    ///
    /// Whoever waits notices. Permits that are held already stay so, also if there are to be fewer now.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// client.set_limit("/limits/licences", 7).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a bad path or more than 2,147,483,647; [`ErrorKind::Unreachable`] if the
    /// ensemble does not answer within the connect timeout; [`ErrorKind::Refused`] and [`ErrorKind::Closed`] as they
    /// say.
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

/// Sets the limit, or creates it.
async fn write_limit(session: &Arc<Session>, path: &str, data: &[u8]) -> Result<(), ReadFailure> {
    while_refused(ROUNDS_AT_MOST, || async {
        match set_or_create(session, path, data).await {
            Ok(_) => Ok(Ok(())),
            Err(WriteFailure::Refused { problem, .. }) => Ok(Err(Refused(problem))),
            // To write it twice does no harm.
            Err(_) => Err(ReadFailure::Unknown),
        }
    })
    .await
}

async fn set_or_create(session: &Arc<Session>, path: &str, data: &[u8]) -> Result<Versions, WriteFailure> {
    let (path, data) = (path.to_owned(), data.to_vec());
    let set = Write::SetData { path: path.clone(), data: data.clone(), version: None };
    match session.commit(Vec::new(), vec![set]).await {
        Err(WriteFailure::Refused { .. }) => {}
        written => return written,
    }
    if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
        session.clone().send(vec![Operation::CreateParents { directory: parent.into() }]).await;
    }
    session.commit(Vec::new(), vec![Write::Create { path, data }]).await
}
