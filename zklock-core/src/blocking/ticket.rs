//! A wait that nobody sits through: for event loops.

use super::{Hold, Lock, fork};
use crate::error::{Error, ErrorKind};
use crate::lock::deadline_in;
use crate::locks::locked;
use crate::owner::Owner;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::AbortHandle;

/// A wait for a lock that goes on by itself. See [`Lock::start`].
///
/// Dropping it leaves the queue, and releases the lock if it was granted and not fetched.
#[must_use = "dropping it ends the wait"]
pub struct Ticket {
    stage: Arc<Mutex<Stage>>,
    task: AbortHandle,
}

enum Stage {
    /// It is kept here and not in the task, so that a cancel drops it at once: what it owes is counted
    /// from then on.
    Waits(Pin<Box<dyn Future<Output = Result<Hold, Error>> + Send>>),
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
        let timeout = timeout.unwrap_or(Duration::MAX);
        let (owner, deadline) = (Owner::ticket(), deadline_in(timeout));
        let io = lock.io.clone();
        let wait = async move {
            let granted = if timeout.is_zero() {
                lock.inner.acquire_as(owner, timeout).await
            } else {
                lock.inner.acquire_before(owner, deadline, timeout).await
            };
            granted.map(|inner| Hold::new(inner, lock.io.clone()))
        };
        let stage = Arc::new(Mutex::new(Stage::Waits(Box::pin(wait))));
        let waits = stage.clone();
        let task = io.spawn(async move {
            if poll_fn(|context| poll(&waits, context)).await {
                ready();
            }
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
            Stage::Waits(wait) => {
                *stage = Stage::Waits(wait);
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
        let cancelled = Error::new(ErrorKind::Interrupted, "the wait was cancelled");
        let mut stage = locked(&self.stage);
        if let Stage::Waits(_) = *stage {
            *stage = Stage::Ready(Err(cancelled));
        }
        drop(stage);
        self.task.abort();
    }
}

/// Whether there is a result now; `false` if nobody waits any more.
fn poll(stage: &Mutex<Stage>, context: &mut Context<'_>) -> Poll<bool> {
    let mut stage = locked(stage);
    let Stage::Waits(wait) = &mut *stage else { return Poll::Ready(false) };
    wait.as_mut().poll(context).map(|result| {
        *stage = Stage::Ready(result);
        true
    })
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

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &*locked(&self.stage) {
            Stage::Waits(_) => "waits",
            Stage::Ready(_) => "ready",
            Stage::Fetched => "fetched",
        };
        f.debug_struct("Ticket").field("stage", &stage).finish_non_exhaustive()
    }
}
