//! Any one of several locks, whichever is free first.
//!
//! Other clients may contend for one of its locks alone: each lock keeps its own queue, options and rules.
//! [`choice`](crate::client::lock) acquires them.

use crate::base::error::{Error, ErrorKind};
use crate::client::client::Client;
use crate::client::lock::Lock;
use crate::client::spec::{Kind, LockSpec};
use crate::machine::claim::Claim;
use std::collections::HashSet;

/// The most bytes that the paths watched by one waiter may take. When a client library reconnects, it names all watches of
/// the session in one request. Servers take no more than 1 MiB, and zookeeper-client stops at 128 KiB.
const WATCHED_AT_MOST: usize = 64 * 1024;
/// An upper bound for the bytes of a node's name, besides its directory.
const BYTES_OF_A_NAME: usize = 80;

impl Client {
    /// Makes a lock that stands for any one of these locks: an acquire holds whichever is free first, and leaves the queues of
    /// the rest. Mutexes, read and write sides, semaphores, elections and sets may be mixed.
    ///
    /// It is for a worker that takes any free job out of many. The [path](crate::Hold::path) of the hold says which of the
    /// locks it got.
    ///
    /// An acquire first looks at all queues, in one round trip that changes nothing. It then acquires the first lock that is
    /// free. If several are, that is the one that is named first; if another client is faster, it is another one at random. So
    /// a try takes two round trips, unless others take the same locks at that moment, and a failed try gets in nobody's way. If
    /// no lock is free, an acquire queues for all of them. If several are granted at the same time, it keeps the one that is
    /// named first. The nodes of the others are deleted in the background, and counted as [owed](crate::Stats::owed) until
    /// then.
    ///
    /// A lock that [lingers](LockSpec::linger) at another client looks held, so a try leaves it there for its time. An acquire
    /// that queues makes it free.
    ///
    /// A waiting acquire watches every lock, and when the client reconnects, servers accept a session's watches only up to a
    /// certain size. So a choice is limited to some 700 locks. If several large choices wait at the same time, give each its
    /// own client.
    ///
    /// Each lock is acquired as it would be alone, with its own options. So a lock that the caller already holds is busy,
    /// unless it is reentrant: then the caller gets it once more. A lock that only the caller itself can release is not waited
    /// for, if there are others. If one lock fails, for example because an access list forbids it, the whole acquire fails.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are no locks, one belongs to another client, has no queue or is itself a choice,
    /// two have the same path, or there are too many for one session to watch.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let jobs = [client.mutex("/jobs/1")?, client.mutex("/jobs/2")?, client.mutex("/jobs/3")?];
    /// if let Some(hold) = client.any(&jobs)?.try_acquire().await? {
    ///     println!("do what {} stands for", hold.path());
    ///     hold.release().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn any(&self, locks: &[Lock]) -> Result<Lock, Error> {
        let specs: Vec<_> = locks.iter().map(|lock| lock.spec().clone()).collect();
        if !locks.iter().all(|lock| self.has_made(lock)) {
            return Err(LockSpec::choice_of_another_client(&specs));
        }
        self.lock(&LockSpec::any(specs)?)
    }
}

impl LockSpec {
    /// Describes a lock that stands for [any one](Client::any) of these. They keep their own options; the choice has none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are no locks, one has no queue or is itself a choice, two have the same path, or
    /// there are too many for one session to watch.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::LockSpec;
    ///
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let either = LockSpec::any([LockSpec::mutex("/jobs/1")?, LockSpec::mutex("/jobs/2")?])?;
    /// let hold = client.lock(&either)?.acquire().await?;
    /// println!("{}", hold.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn any(specs: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let members: Vec<_> = specs.into_iter().collect();
        let paths: Vec<_> = members.iter().map(Self::path).collect();
        let path = paths.join(", ");
        let claims = members.iter().map(Self::claims).collect::<Result<Vec<_>, _>>()?.concat();
        check_choice(&path, &members, &claims, 0)?;
        Ok(Self::new(path, Kind::Any(members)))
    }

    /// Returns the error for a choice of locks that do not all belong to the client that makes it.
    #[doc(hidden)]
    pub fn choice_of_another_client(specs: &[Self]) -> Error {
        let paths: Vec<_> = specs.iter().map(Self::path).collect();
        invalid(&paths.join(", "), "all of them must come from the client that makes the choice")
    }
}

/// Checks whether a client with a chroot of this length can wait for these locks, with these claims, together.
pub(crate) fn check_choice(
    path: &str,
    members: &[LockSpec],
    claims: &[Claim],
    chroot: usize,
) -> Result<(), Error> {
    if members.is_empty() {
        return Err(invalid(path, "name one lock at least"));
    }
    if members.iter().any(|member| member.alternatives().is_some()) {
        return Err(invalid(path, "one of them is such a choice itself: name its locks instead"));
    }
    let mut directories = HashSet::new();
    // Two nodes of one waiter in one queue would wait for each other.
    if !claims.iter().all(|claim| directories.insert(&claim.directory)) {
        return Err(invalid(path, "two of them are of one path: leave one out"));
    }
    if claims.iter().any(|claim| !claim.has_queue()) {
        return Err(invalid(path, "an exclusive lock has no queue: use a mutex instead"));
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

fn invalid(path: &str, problem: &str) -> Error {
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
