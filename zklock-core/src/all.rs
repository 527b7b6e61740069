//! The set of locks: all of these, or none.
//!
//! One transaction queues everywhere, so of any two sets the same one is before the other in all the queues that they
//! share: no order of arrival can make two sets wait for each other. To acquire the locks one after the other instead
//! needs an order to which everybody keeps.

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::lock::Lock;
use crate::lock_options::LockOptions;
use crate::machine::claim::Claim;
use crate::set;

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
        self.all_with(locks, LockOptions::new())
    }

    /// As [`all`](Self::all), with options. Those of the locks stay, but whether one is reentrant is said of the set.
    ///
    /// # Errors
    ///
    /// As [`all`](Self::all).
    pub fn all_with(&self, locks: &[Lock], options: LockOptions) -> Result<Lock, Error> {
        let path = locks.iter().map(Lock::path).collect::<Vec<_>>().join(", ");
        let wrong = |problem: &str| {
            let shown: String = path.chars().take(200).collect();
            Err(Error::new(ErrorKind::InvalidInput, format!("the set of the locks {shown}: {problem}")))
        };
        options.refuse_permits(&path)?;
        options.refuse_dialect(&path, "a set of locks")?;
        if locks.is_empty() {
            return wrong("name one lock at least");
        }
        if !locks.iter().all(|lock| lock.is_of(self)) {
            return wrong("all of them must come from the client that makes the set");
        }
        // In one order, so that the same set is the same, whatever the order in which it was named.
        let mut claims: Vec<Claim> = locks.iter().flat_map(|lock| lock.claims().iter().cloned()).collect();
        claims.sort_by(|left, right| left.directory.cmp(&right.directory));
        if claims.windows(2).any(|two| two[0].directory == two[1].directory) {
            return wrong("two of them are of one path: leave one out");
        }
        if claims.len() > 1 && claims.iter().any(|claim| !claim.has_queue()) {
            return wrong("an exclusive lock has no queue: use a mutex instead");
        }
        let bytes = |claim: &Claim| {
            let permits = claim.permits.as_ref().map_or(0, |permits| permits.count as usize);
            (claim.directory.len() + BYTES_OF_A_NODE) * (1 + permits)
        };
        if claims.iter().map(bytes).sum::<usize>() + set::bytes_of(&claims) > BYTES_AT_MOST {
            return wrong("they are too many for one request: take fewer, or shorter paths");
        }
        Ok(self.lock(&path, claims, options))
    }
}
