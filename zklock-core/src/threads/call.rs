//! A call that runs in the background, for event loops.

use super::descriptors::{Listener, Opened};
use super::io::{Io, check_descriptors};
use super::wait::too_late;
use crate::base::error::{Error, ErrorKind};
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::base::wait::{GRACE, Wait};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// A call that goes on in the background. See [`ForkSafe::start`](super::fork_safe::ForkSafe::start).
///
/// Dropping it ends the wait for its result.
#[must_use = "dropping it ends the call"]
pub struct Call<T> {
    state: Arc<Mutex<CallState<T>>>,
    /// `None` if there was a result from the beginning.
    task: Option<Task>,
    /// What is called when there is a result.
    ready: Option<Arc<Listener<()>>>,
    opened: Opened,
    deadline: Option<Instant>,
}

/// The task on the I/O thread that polls the call.
struct Task {
    handle: AbortHandle,
    io: Io,
}

enum CallState<T> {
    Waits(Waits<T>),
    Ready(Result<T, Error>),
    Fetched,
}

struct Waits<T> {
    /// The future is kept here and not in the task, so that a cancel drops it at once. From then on,
    /// what it owes is counted.
    call: Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>,
    /// Wakes the task. Before the task has polled the call, that will come anyway.
    waker: Waker,
}

impl<T: Send + 'static> Call<T> {
    pub(crate) fn start(
        io: &Io,
        call: impl Future<Output = Result<T, Error>> + Send + 'static,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        io.check()?;
        let waits = Waits { call: Box::pin(call), waker: Waker::noop().clone() };
        let state = Arc::new(Mutex::new(CallState::Waits(waits)));
        let waits = state.clone();
        let listener = Listener::once((), |()| ready());
        let ready = Arc::downgrade(&listener);
        io.tell(ready.clone());
        let handle = io.spawn(async move {
            if poll_fn(|context| poll(&waits, context)).await {
                Listener::call(&ready, ());
            }
        });
        let task = Task { handle, io: io.clone() };
        Ok(Self { state, task: Some(task), ready: Some(listener), opened: io.opened(), deadline: None })
    }

    /// Gives it a deadline, which is that of the future as well: see [`due`](Self::due).
    pub(crate) fn until(mut self, wait: Wait) -> Self {
        self.deadline = wait.deadline();
        self
    }

    /// Makes a call that failed before it began. It is ready at once.
    pub(crate) fn failed(error: Error, ready: impl FnOnce()) -> Self {
        ready();
        Self::over(Err(error))
    }

    /// Makes a call that has its result from the beginning.
    pub(crate) fn over(result: Result<T, Error>) -> Self {
        let state = Arc::new(Mutex::new(CallState::Ready(result)));
        Self { state, task: None, ready: None, opened: Opened::now(), deadline: None }
    }
}

impl<T> Call<T> {
    /// Returns the result, once. `None` means that the call goes on. It does not after its deadline: see [`due`](Self::due).
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
        self.keep_deadline(&mut state);
        match std::mem::replace(&mut *state, CallState::Fetched) {
            CallState::Waits(waits) => {
                *state = CallState::Waits(waits);
                None
            }
            CallState::Ready(result) => Some(result),
            CallState::Fetched => {
                Some(Err(Error::new(ErrorKind::NotHeld, "this result has been fetched before")))
            }
        }
    }

    /// Returns when to [`fetch`](Self::fetch), at the latest; `None` if the call has no deadline.
    ///
    /// The I/O thread keeps the deadline too, but it may be busy. A fetch at the deadline does its work, and one a little
    /// later ends the call if that is not done by then. So ask for this time again after each fetch that gave no result.
    pub fn due(&self) -> Option<Instant> {
        let deadline = self.deadline?;
        Some(if Instant::now() < deadline { deadline } else { deadline + GRACE })
    }

    /// Gets the result on this thread if it is late. Whatever is granted from then on is released.
    fn keep_deadline(&self, state: &mut CallState<T>) {
        let (Some(deadline), Some(task), CallState::Waits(waits)) = (self.deadline, &self.task, &mut *state)
        else {
            return;
        };
        let now = Instant::now();
        if now < deadline {
            return;
        }
        // A thread that is ending cannot enter the runtime.
        let is_ending = Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed());
        let _runtime = (!is_ending).then(|| task.io.enter());
        let mut context = Context::from_waker(&waits.waker);
        let result = match waits.call.as_mut().poll(&mut context) {
            Poll::Ready(result) => result,
            Poll::Pending if now < deadline + GRACE => return,
            Poll::Pending => Err(too_late()),
        };
        *state = CallState::Ready(result);
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
            task.handle.abort();
        }
    }
}

/// Whether the result has just come; `false` if nobody waits any more.
fn poll<T>(state: &Mutex<CallState<T>>, context: &mut Context<'_>) -> Poll<bool> {
    let mut state = lock_ignoring_poison(state);
    let CallState::Waits(waits) = &mut *state else { return Poll::Ready(false) };
    waits.waker.clone_from(context.waker());
    waits.call.as_mut().poll(context).map(|result| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_call_that_does_not_end_at_its_deadline_is_ended_soon_after() {
        let io = Io::start().unwrap();
        let call = Call::<()>::start(&io, std::future::pending(), || panic!("it has no result")).unwrap();
        assert_eq!(call.due(), None);
        let call = call.until(Wait::from(Duration::from_millis(5)));
        let ended = loop {
            if let Some(result) = call.fetch() {
                break result;
            }
            std::thread::sleep(call.due().unwrap().saturating_duration_since(Instant::now()));
        };
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(call.fetch().unwrap().unwrap_err().kind(), ErrorKind::NotHeld);
    }
}
