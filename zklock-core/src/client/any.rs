//! Any one of several locks, whichever is free first.
//!
//! Other clients may contend for one of its locks alone: each lock keeps its own queue, options and rules.
//! [`choice`](crate::client::lock) acquires them.

use crate::base::error::{Error, ErrorKind};
use crate::machine::claim::Claim;
use std::collections::HashSet;

/// The most bytes that the paths watched by one waiter may take. When a client library reconnects, it names all watches of
/// the session in one request. Servers take no more than 1 MiB, and zookeeper-client stops at 128 KiB.
const WATCHED_AT_MOST: usize = 64 * 1024;
/// An upper bound for the bytes of a node's name, besides its directory.
const BYTES_OF_A_NAME: usize = 80;

/// Checks whether a client with a chroot of this length can wait for these locks, with these claims, together.
pub(crate) fn check(path: &str, claims: &[Claim], chroot: usize) -> Result<(), Error> {
    if claims.is_empty() {
        return Err(invalid(path, "name one lock at least"));
    }
    let mut directories = HashSet::new();
    // Two nodes of one waiter in one queue would wait for each other.
    if !claims.iter().all(|claim| directories.insert(&claim.directory)) {
        return Err(invalid(path, "two of them are of one path: leave one out"));
    }
    if claims.iter().any(|claim| !claim.has_queue()) {
        return Err(invalid(path, "a single-node lock has no queue: use a mutex instead"));
    }
    let watched = claims.iter().map(|claim| {
        let permits = claim.permits.iter();
        let beside = permits
            .flat_map(|permits| [Some(&permits.directory), permits.limit_at.as_ref()].into_iter().flatten());
        let of_permits: usize = beside.map(|path| chroot + path.len()).sum();
        chroot + claim.directory.len() + BYTES_OF_A_NAME + of_permits
    });
    if watched.sum::<usize>() > WATCHED_AT_MOST {
        return Err(invalid(
            path,
            "they are too many to watch for one session: take fewer, or shorter paths",
        ));
    }
    Ok(())
}

/// Returns the error for locks at these paths that do not all belong to the client that makes the choice.
pub(crate) fn of_another_client(paths: &[&str]) -> Error {
    invalid(&paths.join(", "), "all of them must come from the client that makes the choice")
}

pub(crate) fn invalid(path: &str, problem: &str) -> Error {
    let shown = shortened(path);
    Error::new(ErrorKind::InvalidInput, format!("any of the locks {shown}: {problem}"))
}

/// Returns the paths, shortened for messages, since there may be hundreds.
pub(crate) fn shortened(path: &str) -> String {
    match path.char_indices().nth(200) {
        Some((end, _)) => format!("{} …", &path[..end]),
        None => path.to_owned(),
    }
}
