//! The semaphore: it has as many holders as permits, in the order of arrival.
//!
//! It has the layout of Curator's `InterProcessSemaphoreV2`, and with one permit that of `InterProcessSemaphoreMutex`.
//! The contender at the head of the queue `locks` takes its permits in `leases` as soon as there are enough, and then
//! leaves the queue. Only the head watches the permits. If each contender watched only the n-th one before it instead,
//! it would miss any other that returns its permit.

use crate::base::error::{Error, ErrorKind};
use crate::base::failure::Failure;
use crate::connect::options::ClientOptions;
use crate::connect::path::check_lock_path;
use crate::machine::claim::Permits;
use crate::machine::protocol::Operation;
use crate::session::ask::while_refused;
use crate::session::session::Session;
use crate::zookeeper::ensemble::{Versions, Write};
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

/// Returns the permits that a contender of the semaphore at `path` takes.
pub(crate) fn permits(path: &str, count: u32, limit: u32, limit_at: Option<&str>) -> Result<Permits, Error> {
    check_permits(count).map_err(|error| error.within(&of(path)))?;
    match limit_at {
        Some(limit_at) => check_lock_path(limit_at)?,
        None if count > limit => {
            let problem =
                format!("{count} permits of {limit} can never be free: raise the limit, or ask for fewer");
            return Err(invalid(path, &problem));
        }
        None => {}
    }
    let directory = format!("{path}{PERMITS}").into();
    Ok(Permits { directory, count, limit, limit_at: limit_at.map(Into::into), data: Arc::default() })
}

/// Returns the directory in which its contenders queue.
pub(crate) fn queue(path: &str) -> String {
    format!("{path}/locks")
}

pub(crate) fn not_reentrant(path: &str) -> Error {
    invalid(path, "a permit does not belong to a thread or task, so a semaphore is not reentrant")
}

/// Checks whether a client with these options can take these permits, with their data, in one request.
pub(crate) fn check_fits(permits: &Permits, client: &ClientOptions) -> Result<(), Error> {
    let Permits { directory, count, .. } = permits;
    let path = directory.strip_suffix(PERMITS).unwrap_or(directory);
    let of_list = client.access.bytes();
    let of_permit = client.hosts.chroot.len() + path.len() + permits.data.len() + of_list + BYTES_OF_A_PERMIT;
    if *count as usize * of_permit <= REQUEST_AT_MOST {
        return Ok(());
    }
    let problem = format!(
        "{count} permits at a path of this length are too many for one request: ask for fewer, or shorten \
         the path, the chroot, the identity or the access list"
    );
    Err(invalid(path, &problem))
}

/// Checks whether so many permits can be acquired at once.
pub(crate) fn check_permits(permits: u32) -> Result<(), Error> {
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
pub(crate) async fn write_limit(session: &Arc<Session>, path: &str, data: &[u8]) -> Result<(), Failure> {
    while_refused(ROUNDS_AT_MOST, || async {
        match set_or_create(session, path, data).await {
            Ok(_) => Ok(Ok(())),
            Err(Failure::Conflict { problem, .. }) => Ok(Err(problem)),
            // If the reply was lost, the caller tries again: writing it twice does no harm.
            Err(failure) => Err(failure),
        }
    })
    .await
}

async fn set_or_create(session: &Arc<Session>, path: &str, data: &[u8]) -> Result<Versions, Failure> {
    let (path, data) = (path.to_owned(), data.to_vec());
    let set = Write::SetData { path: path.clone(), data: data.clone(), version: None };
    let refused = match session.commit(Vec::new(), vec![set]).await {
        Err(refused @ Failure::Conflict { .. }) => refused,
        written => return written,
    };
    if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
        session.clone().send(vec![Operation::CreateParents { directory: parent.into() }]).await;
    }
    let create = Write::Create { path: path.clone(), data };
    match session.commit(Vec::new(), vec![create]).await {
        // The node exists, so what matters is why it could not be set.
        Err(Failure::Conflict { .. }) if matches!(session.look(path.into()).await, Ok(Some(_))) => {
            Err(refused)
        }
        created => created,
    }
}
