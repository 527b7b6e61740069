//! A wait for a lock that nobody sits through.

use super::{Call, Hold, Lock};
use crate::error::Error;
use crate::lock::deadline_in;
use crate::owner::Owner;
use std::time::Duration;

/// A wait for a lock that goes on by itself. See [`Lock::start`].
///
/// Dropping it leaves the queue, and releases the lock if it was granted and not fetched.
#[derive(Debug)]
#[must_use = "dropping it ends the wait"]
pub struct Ticket(Call<Hold>);

impl Ticket {
    pub(super) fn start(
        lock: &Lock,
        owner: Owner,
        timeout: Option<Duration>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        let timeout = timeout.unwrap_or(Duration::MAX);
        let deadline = deadline_in(timeout);
        let (inner, io) = (lock.inner.clone(), lock.io.clone());
        let wait = async move {
            let granted = if timeout.is_zero() {
                inner.acquire_as(owner, timeout).await
            } else {
                inner.acquire_before(owner, deadline, timeout).await
            };
            granted.map(|hold| Hold::new(hold, io))
        };
        Call::start(&lock.io, wait, ready).map(Self)
    }

    /// The result, once: `None` as long as the wait goes on.
    ///
    /// # Errors
    ///
    /// * As [`Lock::acquire_timeout`];
    /// * [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the lock was granted, and lost before it was
    ///   fetched;
    /// * as [`Call::fetch`].
    pub fn fetch(&self) -> Option<Result<Hold, Error>> {
        self.0.fetch().map(|result| result.and_then(Hold::refuse_dead))
    }

    /// Ends the wait. See [`Call::cancel`].
    pub fn cancel(&self) {
        self.0.cancel();
    }
}
