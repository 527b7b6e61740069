//! The set of locks: all of them, or none.
//!
//! One transaction joins all the queues. So of any two sets, the same one is ahead in every queue that they share, and
//! no order of arrival can make two sets wait for each other. Acquiring the locks one by one would need an order that
//! everybody follows.

use crate::base::error::{Error, ErrorKind};
use crate::client::client::Client;
use crate::client::lock::Lock;
use crate::client::spec::{Kind, LockSpec};
use crate::connect::options::ClientOptions;
use crate::machine::claim::Claim;
use crate::zookeeper::node_data;

/// The most bytes that the nodes of a set may take in one request: a quarter of what servers take by default.
const BYTES_AT_MOST: usize = 256 * 1024;
/// An upper bound for the bytes of a node besides its path.
const BYTES_OF_A_NODE: usize = 256;

impl Client {
    /// Makes the set of these locks, which are acquired and released together. Mutexes, read and write sides,
    /// semaphores and elections may be mixed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are no locks, one belongs to another client or has no queue, two have the
    /// same path, or there are too many for one request.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let (from, to) = (client.mutex("/accounts/1")?, client.mutex("/accounts/2")?);
    /// let both = client.all(&[from, to])?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn all(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.lock(&self.all_of(locks)?)
    }

    /// Like [`all`](Self::all), but returns a description, which can be given options.
    ///
    /// # Errors
    ///
    /// Fails like [`all`](Self::all) does.
    pub fn all_of(&self, locks: &[Lock]) -> Result<LockSpec, Error> {
        let specs: Vec<_> = locks.iter().map(|lock| lock.spec().clone()).collect();
        if !locks.iter().all(|lock| self.has_made(lock)) {
            return Err(LockSpec::of_another_client(&specs));
        }
        LockSpec::all(specs)
    }
}

impl LockSpec {
    /// Describes the [set](Client::all) of these locks. They keep their own options, except that only the set as a
    /// whole is reentrant or not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are no locks, one has no queue, two have the same path, or there are too
    /// many for one request.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::LockSpec;
    ///
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let both = LockSpec::all([LockSpec::mutex("/accounts/1")?, LockSpec::mutex("/accounts/2")?])?;
    /// let hold = client.lock(&both)?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn all(specs: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let members: Vec<_> = specs.into_iter().collect();
        let path = joined(&members);
        set_claims(&path, &members)?;
        Ok(Self::new(path, Kind::All(members)))
    }

    /// Returns the error for a set of locks that do not all belong to the client that makes it.
    #[doc(hidden)]
    pub fn of_another_client(specs: &[Self]) -> Error {
        invalid(&joined(specs), "all of them must come from the client that makes the set")
    }
}

/// Returns the claims of a set of these locks.
pub(crate) fn set_claims(path: &str, members: &[LockSpec]) -> Result<Vec<Claim>, Error> {
    if members.is_empty() {
        return Err(invalid(path, "name one lock at least"));
    }
    if members.iter().any(|member| member.alternatives().is_some()) {
        return Err(invalid(path, "one of them is any of several: acquire that by itself"));
    }
    let claims = members.iter().map(LockSpec::claims).collect::<Result<Vec<_>, _>>()?;
    let mut claims: Vec<Claim> = claims.into_iter().flatten().collect();
    // Sorted, so that the same locks make the same set, in whatever order they were named.
    claims.sort_by(|left, right| left.directory.cmp(&right.directory));
    if claims.windows(2).any(|two| two[0].directory == two[1].directory) {
        return Err(invalid(path, "two of them are of one path: leave one out"));
    }
    if claims.len() > 1 && claims.iter().any(|claim| !claim.has_queue()) {
        return Err(invalid(path, "an exclusive lock has no queue: use a mutex instead"));
    }
    if bytes_of(&claims, 0) > BYTES_AT_MOST {
        return Err(invalid(path, "they are too many for one request: take fewer, or shorter paths"));
    }
    Ok(claims)
}

/// Checks whether a client with these options can create the nodes of these claims in one request.
pub(crate) fn check_set_fits(path: &str, claims: &[Claim], client: &ClientOptions) -> Result<(), Error> {
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
fn joined(specs: &[LockSpec]) -> String {
    let mut paths: Vec<_> = specs.iter().map(LockSpec::path).collect();
    paths.sort_unstable();
    paths.join(", ")
}

fn invalid(path: &str, problem: &str) -> Error {
    let shown: String = path.chars().take(200).collect();
    Error::new(ErrorKind::InvalidInput, format!("the set of the locks {shown}: {problem}"))
}
