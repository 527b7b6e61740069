//! Any one of several locks: whichever comes first.
//!
//! Its locks may be contended by clients that want only one of them: each keeps its own queue, its options and its rules. How
//! they are acquired is in [`choice`](crate::lock).

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::lock::Lock;
use crate::machine::claim::Claim;
use crate::spec::{Kind, LockSpec};
use std::collections::HashSet;

/// What the paths that one waiter watches may take. A client library names all of a session's watches in one request when
/// it connects again, and servers take no more than 1 MiB there; this one no more than 128 KiB.
const WATCHED_AT_MOST: usize = 64 * 1024;
/// What the name of a node takes beside its directory, or more.
const BYTES_OF_A_NAME: usize = 80;

impl Client {
    /// Any one of these locks: an acquire holds whichever comes first, and leaves the queues of the rest. Mutexes, read and
    /// write sides, semaphores, elections and sets may be mixed.
    ///
    /// It is for a worker that takes any free job out of many. The [path](crate::Hold::path) of the hold says which of the
    /// locks it is:
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
    ///
    /// All queues are looked at first, in one round trip that changes nothing, and then the first lock that is free is
    /// acquired: of several the one that is named first, or if another client is faster, another one at random. So a try takes
    /// two round trips, unless others take the same locks at that moment, and one in vain is in nobody's way. If none is free,
    /// an acquire queues for all of them. If several come at the same time, it keeps the one that is named first. What it
    /// does not keep is deleted in the background, and counted as [owed](crate::Stats::owed) until then.
    ///
    /// A lock that [lingers](LockSpec::linger) at another client looks held, so a try leaves it there for its time. An acquire
    /// that queues makes it free.
    ///
    /// While it waits it has a watch for each lock, and the servers take the watches of one session only up to a length, when its
    /// client connects again. So a choice has a limit, of some 700 locks; if several large ones wait at the same time, give them
    /// clients of their own.
    ///
    /// Each lock is acquired as it is alone, with its own options. So one that the caller holds already is busy, unless it is
    /// reentrant: then it is given once more. One that only the caller itself can release is not waited for, if there are
    /// others. What is wrong with one lock ends the acquire, such as an access list that forbids it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are none, one is of another client, has no queue or is such a choice itself, two are
    /// of one path, or they are too many to be watched by one session.
    pub fn any(&self, locks: &[Lock]) -> Result<Lock, Error> {
        let specs: Vec<_> = locks.iter().map(|lock| lock.spec().clone()).collect();
        if !locks.iter().all(|lock| self.has_made(lock)) {
            return Err(LockSpec::choice_of_another_client(&specs));
        }
        self.lock(&LockSpec::any(specs)?)
    }
}

impl LockSpec {
    /// [Any one](Client::any) of these locks. Their own options stay; the choice has none.
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
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are none, one has no queue or is such a choice itself, two are of one path, or they
    /// are too many to be watched by one session.
    pub fn any(specs: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let members: Vec<_> = specs.into_iter().collect();
        let paths: Vec<_> = members.iter().map(Self::path).collect();
        let path = paths.join(", ");
        let claims = members.iter().map(Self::claims).collect::<Result<Vec<_>, _>>()?.concat();
        check_choice(&path, &members, &claims, 0)?;
        Ok(Self::new(path, Kind::Any(members)))
    }

    /// What is wrong with a choice of locks that are not all of the client that makes it.
    #[doc(hidden)]
    pub fn choice_of_another_client(specs: &[Self]) -> Error {
        let paths: Vec<_> = specs.iter().map(Self::path).collect();
        invalid(&paths.join(", "), "all of them must come from the client that makes the choice")
    }
}

/// Whether these locks, with these claims, can be waited for together by a client with a chroot of that length.
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
    // Nodes of one waiter in one queue would wait for each other.
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

/// The paths as messages name them: there may be hundreds.
pub(crate) fn shortened(path: &str) -> String {
    match path.char_indices().nth(200) {
        Some((end, _)) => format!("{} …", &path[..end]),
        None => path.to_owned(),
    }
}
