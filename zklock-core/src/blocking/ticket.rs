//! A wait that nobody sits through: for event loops.

use super::{Hold, Lock, fork};
use crate::error::{Error, ErrorKind};
use crate::lock::deadline_in;
use crate::locks::locked;
use crate::owner::Owner;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::AbortHandle;

/// A wait for a lock that goes on by itself. See [`Lock::start`].
///
/// Dropping it leaves the queue, and releases the lock if it was granted and not fetched.
#[derive(Debug)]
#[must_use = "dropping it ends the wait"]
pub struct Ticket {
    stage: Arc<Mutex<Stage>>,
    task: AbortHandle,
}

#[derive(Debug)]
enum Stage {
    Waits,
    Ready(Result<Hold, Error>),
    Fetched,
}

impl Ticket {
    pub(super) fn start(
        lock: Lock,
        timeout: Option<Duration>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        fork::refuse_forked()?;
        let stage = Arc::new(Mutex::new(Stage::Waits));
        let here = stage.clone();
        let timeout = timeout.unwrap_or(Duration::MAX);
        let (owner, deadline) = (Owner::ticket(), deadline_in(timeout));
        let io = lock.io.clone();
        let task = io.spawn(async move {
            let granted = if timeout.is_zero() {
                lock.inner.acquire_as(owner, timeout).await
            } else {
                lock.inner.acquire_before(owner, deadline, timeout).await
            };
            let result = granted.map(|inner| Hold::new(inner, lock.io.clone()));
            {
                let mut stage = locked(&here);
                // It may have been cancelled meanwhile; then the hold is dropped, after the lock.
                let Stage::Waits = *stage else { return };
                *stage = Stage::Ready(result);
            }
            ready();
        });
        Ok(Self { stage, task })
    }

    /// The result, once: `None` as long as the wait goes on.
    ///
    /// # Errors
    ///
    /// * As [`Lock::acquire_timeout`];
    /// * [`ErrorKind::Lost`] if the lock was granted, and lost before it was fetched;
    /// * [`ErrorKind::Interrupted`] after [`cancel`](Self::cancel);
    /// * [`ErrorKind::NotHeld`] if it was fetched before; [`ErrorKind::Forked`].
    pub fn fetch(&self) -> Option<Result<Hold, Error>> {
        if let Err(forked) = fork::refuse_forked() {
            return Some(Err(forked));
        }
        let mut stage = locked(&self.stage);
        match std::mem::replace(&mut *stage, Stage::Fetched) {
            Stage::Waits => {
                *stage = Stage::Waits;
                None
            }
            Stage::Ready(Ok(hold)) => Some(hold.refuse_dead()),
            Stage::Ready(Err(error)) => Some(Err(error)),
            Stage::Fetched => {
                let message = "the result of this ticket has been fetched before";
                Some(Err(Error::new(ErrorKind::NotHeld, message)))
            }
        }
    }

    /// Ends the wait: from now on [`fetch`](Self::fetch) gives [`ErrorKind::Interrupted`], unless there
    /// was a result already. What was to be called when it is ready is not called then.
    pub fn cancel(&self) {
        if fork::is_forked() {
            return;
        }
        let mut stage = locked(&self.stage);
        if let Stage::Waits = *stage {
            let message = "the wait was cancelled";
            *stage = Stage::Ready(Err(Error::new(ErrorKind::Interrupted, message)));
        }
        drop(stage);
        self.task.abort();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if fork::is_forked() {
            // The wait is the parent's.
            std::mem::forget(self.stage.clone());
            return;
        }
        let unfetched = std::mem::replace(&mut *locked(&self.stage), Stage::Fetched);
        self.task.abort();
        drop(unfetched);
    }
}
