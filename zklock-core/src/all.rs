//! The set of locks: all of these, or none.
//!
//! One transaction queues everywhere, so of any two sets the same one is before the other in all the queues that they
//! share: no order of arrival can make two sets wait for each other. Acquiring the locks one after the other instead
//! needs an order to which everybody keeps.

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::lock::Lock;
use crate::machine::claim::Claim;
use crate::node_data;
use crate::options::ClientOptions;
use crate::spec::{Kind, LockSpec};

/// What the nodes of a set may take in one request: a quarter of what servers take by default.
const BYTES_AT_MOST: usize = 256 * 1024;
/// What a node takes beside its path, or more.
const BYTES_OF_A_NODE: usize = 256;

impl Client {
    /// The set of these locks, which are acquired and released together. Mutexes, read and write sides, semaphores and
    /// elections may be mixed.
    ///
    /// ```no_run
    /// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
    /// let (from, to) = (client.mutex("/accounts/1")?, client.mutex("/accounts/2")?);
    /// let both = client.all(&[from, to])?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are none, one is of another client or has no queue, two are of one path,
    /// or they are too many for one request.
    pub fn all(&self, locks: &[Lock]) -> Result<Lock, Error> {
        self.lock(&self.all_of(locks)?)
    }

    /// As [`all`](Self::all), as a description that can have options.
    ///
    /// # Errors
    ///
    /// As [`all`](Self::all).
    pub fn all_of(&self, locks: &[Lock]) -> Result<LockSpec, Error> {
        let specs: Vec<_> = locks.iter().map(|lock| lock.spec().clone()).collect();
        if !locks.iter().all(|lock| self.has_made(lock)) {
            return Err(LockSpec::of_another_client(&specs));
        }
        LockSpec::all(specs)
    }
}

impl LockSpec {
    /// The [set](Client::all) of these locks. Their own options stay, except that the set as a whole is reentrant or not.
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
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are none, one has no queue, two are of one path, or they are too many for one
    /// request.
    pub fn all(specs: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let members: Vec<_> = specs.into_iter().collect();
        let path = joined(&members);
        set_claims(&path, &members)?;
        Ok(Self::new(path, Kind::All(members)))
    }

    /// What is wrong with a set of locks that are not all of the client that makes it.
    #[doc(hidden)]
    pub fn of_another_client(specs: &[Self]) -> Error {
        invalid(&joined(specs), "all of them must come from the client that makes the set")
    }
}

/// What a set of these locks claims.
pub(crate) fn set_claims(path: &str, members: &[LockSpec]) -> Result<Vec<Claim>, Error> {
    if members.is_empty() {
        return Err(invalid(path, "name one lock at least"));
    }
    if members.iter().any(|member| member.alternatives().is_some()) {
        return Err(invalid(path, "one of them is any of several: acquire that by itself"));
    }
    let claims = members.iter().map(LockSpec::claims).collect::<Result<Vec<_>, _>>()?;
    let mut claims: Vec<Claim> = claims.into_iter().flatten().collect();
    // In one order, so that the same set is the same, whatever the order in which it was named.
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

/// Whether the nodes of these claims can be created in one request by a client with these options.
pub(crate) fn check_set_fits(path: &str, claims: &[Claim], client: &ClientOptions) -> Result<(), Error> {
    let of_each = client.hosts.chroot.len() + client.access.bytes();
    if claims.len() < 2 || bytes_of(claims, of_each) <= BYTES_AT_MOST {
        return Ok(());
    }
    let problem = "they are too many for one request: take fewer, or shorten their paths, the chroot or the access list";
    Err(invalid(path, problem))
}

/// What it takes to create the nodes of these claims, each with so many bytes of its client.
fn bytes_of(claims: &[Claim], of_each: usize) -> usize {
    let bytes = |claim: &Claim| {
        let permits = claim.permits.as_ref().map_or(0, |permits| permits.count as usize);
        (claim.directory.len() + of_each + BYTES_OF_A_NODE) * (1 + permits)
    };
    claims.iter().map(bytes).sum::<usize>() + node_data::bytes_of(claims)
}

/// In one order, as the claims: the holds of a set are named as its locks are, whatever the order.
fn joined(specs: &[LockSpec]) -> String {
    let mut paths: Vec<_> = specs.iter().map(LockSpec::path).collect();
    paths.sort_unstable();
    paths.join(", ")
}

fn invalid(path: &str, problem: &str) -> Error {
    let shown: String = path.chars().take(200).collect();
    Error::new(ErrorKind::InvalidInput, format!("the set of the locks {shown}: {problem}"))
}
