//! A call that runs in the background, for event loops.

use super::descriptors::{Listener, Opened};
use super::io::{Io, check_descriptors};
use crate::error::{Error, ErrorKind};
use crate::sync::lock_ignoring_poison;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::task::AbortHandle;

/// A call that goes on in the background. See [`ForkSafe::start`](super::fork_safe::ForkSafe::start).
///
/// Dropping it ends the wait for its result.
#[must_use = "dropping it ends the call"]
pub struct Call<T> {
    state: Arc<Mutex<CallState<T>>>,
    /// `None` if there was a result from the beginning.
    task: Option<AbortHandle>,
    /// What is called when there is a result.
    ready: Option<Arc<Listener<()>>>,
    opened: Opened,
}

enum CallState<T> {
    /// The future is kept here and not in the task, so that a cancel drops it at once. From then on,
    /// what it owes is counted.
    Waits(Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>),
    Ready(Result<T, Error>),
    Fetched,
}

impl<T: Send + 'static> Call<T> {
    pub(crate) fn start(
        io: &Io,
        call: impl Future<Output = Result<T, Error>> + Send + 'static,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        io.check()?;
        let state = Arc::new(Mutex::new(CallState::Waits(Box::pin(call))));
        let waits = state.clone();
        let listener = Listener::once((), |()| ready());
        let ready = Arc::downgrade(&listener);
        io.tell(ready.clone());
        let task = io.spawn(async move {
            if poll_fn(|context| poll(&waits, context)).await {
                Listener::call(&ready, ());
            }
        });
        Ok(Self { state, task: Some(task), ready: Some(listener), opened: io.opened() })
    }

    /// Makes a call that failed before it began. It is ready at once.
    pub(crate) fn failed(error: Error, ready: impl FnOnce()) -> Self {
        ready();
        Self::over(Err(error))
    }

    /// Makes a call that has its result from the beginning.
    pub(crate) fn over(result: Result<T, Error>) -> Self {
        let state = Arc::new(Mutex::new(CallState::Ready(result)));
        Self { state, task: None, ready: None, opened: Opened::now() }
    }
}

impl<T> Call<T> {
    /// Returns the result, once. `None` means that the call goes on.
    ///
    /// # Errors
    ///
    /// * Fails like the call does;
    /// * [`ErrorKind::Interrupted`] after [`cancel`](Self::cancel);
    /// * [`ErrorKind::NotHeld`] if the result was already fetched;
    /// * [`ErrorKind::Forked`] if the call belongs to the parent process; [`ErrorKind::Closed`] if the program has closed our
    ///   descriptors.
    pub fn fetch(&self) -> Option<Result<T, Error>> {
        if let Err(lost) = self.opened.check() {
            return Some(Err(lost));
        }
        let mut state = lock_ignoring_poison(&self.state);
        match std::mem::replace(&mut *state, CallState::Fetched) {
            CallState::Waits(call) => {
                *state = CallState::Waits(call);
                None
            }
            CallState::Ready(result) => Some(result),
            CallState::Fetched => {
                Some(Err(Error::new(ErrorKind::NotHeld, "this result has been fetched before")))
            }
        }
    }

    /// Ends the wait. From now on [`fetch`](Self::fetch) gives [`ErrorKind::Interrupted`], unless
    /// there was a result already. The function `ready` is not called any more.
    pub fn cancel(&self) {
        check_descriptors();
        if !self.opened.are_ours() {
            return;
        }
        let cancelled = Error::new(ErrorKind::Interrupted, "the wait was cancelled");
        let mut state = lock_ignoring_poison(&self.state);
        if let CallState::Waits(_) = *state {
            *state = CallState::Ready(Err(cancelled));
        }
        drop(state);
        self.abort();
    }

    /// It wakes the I/O thread, so check its descriptors first.
    fn abort(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Whether the result has just come; `false` if nobody waits any more.
fn poll<T>(state: &Mutex<CallState<T>>, context: &mut Context<'_>) -> Poll<bool> {
    let mut state = lock_ignoring_poison(state);
    let CallState::Waits(call) = &mut *state else { return Poll::Ready(false) };
    call.as_mut().poll(context).map(|result| {
        *state = CallState::Ready(result);
        true
    })
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        check_descriptors();
        if !self.opened.are_ours() {
            // The call belongs to the parent, or would wake the I/O thread.
            std::mem::forget((self.state.clone(), self.ready.clone()));
            return;
        }
        let unfetched = std::mem::replace(&mut *lock_ignoring_poison(&self.state), CallState::Fetched);
        self.abort();
        drop(unfetched);
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.opened.are_ours() {
            return f.write_str("Call(of the parent)");
        }
        f.write_str(match &*lock_ignoring_poison(&self.state) {
            CallState::Waits(_) => "Call(waits)",
            CallState::Ready(_) => "Call(ready)",
            CallState::Fetched => "Call(fetched)",
        })
    }
}
