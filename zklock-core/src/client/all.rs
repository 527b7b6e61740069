//! The set of locks: all of them, or none.
//!
//! One transaction joins all the queues. So of any two sets, the same one is ahead in every queue that they share, and
//! no order of arrival can make two sets wait for each other. Acquiring the locks one by one would need an order that
//! everybody follows.

use crate::base::error::{Error, ErrorKind};
use crate::connect::options::ClientOptions;
use crate::machine::claim::Claim;
use crate::zookeeper::node_data;

/// The most bytes that the nodes of a set may take in one request: a quarter of what servers take by default.
const BYTES_AT_MOST: usize = 256 * 1024;
/// An upper bound for the bytes of a node besides its path.
const BYTES_OF_A_NODE: usize = 256;

/// Joins the claims of its locks, in the order that all its contenders use.
pub(crate) fn join(path: &str, mut claims: Vec<Claim>) -> Result<Vec<Claim>, Error> {
    if claims.is_empty() {
        return Err(invalid(path, "name one lock at least"));
    }
    // Sorted, so that the same locks make the same set, in whatever order they were named.
    claims.sort_by(|left, right| left.directory.cmp(&right.directory));
    if let Some(two) = claims.windows(2).find(|two| two[0].directory == two[1].directory) {
        let problem = if two.iter().all(|claim| claim.permits.is_some()) {
            "two of them are of one path: name a semaphore once, with all the permits that you need"
        } else {
            "two of them are of one path, but not the same lock: leave one out"
        };
        return Err(invalid(path, problem));
    }
    if claims.len() > 1 && claims.iter().any(|claim| !claim.has_queue()) {
        return Err(invalid(path, "a single-node lock has no queue: use a mutex instead"));
    }
    if bytes_of(&claims, 0) > BYTES_AT_MOST {
        return Err(invalid(path, "they are too many for one request: take fewer, or shorter paths"));
    }
    Ok(claims)
}

/// Checks whether a client with these options can create the nodes of these claims in one request.
pub(crate) fn check_fits(path: &str, claims: &[Claim], client: &ClientOptions) -> Result<(), Error> {
    let of_each = client.hosts.chroot.len() + client.access.bytes();
    if claims.len() < 2 || bytes_of(claims, of_each) <= BYTES_AT_MOST {
        return Ok(());
    }
    let problem = "they are too many for one request: take fewer, or shorten their paths, the chroot or the access list";
    Err(invalid(path, problem))
}

/// Returns the bytes that it takes to create the nodes of these claims, each with `of_each` bytes that depend on the
/// client.
fn bytes_of(claims: &[Claim], of_each: usize) -> usize {
    let bytes = |claim: &Claim| {
        let permits = claim.permits.as_ref().map_or(0, |permits| permits.count as usize);
        (claim.directory.len() + of_each + BYTES_OF_A_NODE) * (1 + permits)
    };
    claims.iter().map(bytes).sum::<usize>() + node_data::bytes_of(claims)
}

/// Sorted like the claims, so that the path of a set does not depend on the order of its locks.
pub(crate) fn joined(paths: &[&str]) -> String {
    let mut paths = paths.to_vec();
    paths.sort_unstable();
    paths.join(", ")
}

/// Returns the error for locks at these paths that do not all belong to the client that makes the set.
pub(crate) fn of_another_client(paths: &[&str]) -> Error {
    invalid(&joined(paths), "all of them must come from the client that makes the set")
}

pub(crate) fn invalid(path: &str, problem: &str) -> Error {
    let shown: String = path.chars().take(200).collect();
    Error::new(ErrorKind::InvalidInput, format!("the set of the locks {shown}: {problem}"))
}
