//! A call that goes on in the background, for event loops.

use super::descriptors::{Listener, Opened};
use super::io::{Io, check_descriptors};
use super::wait::{self, Future};
use crate::base::error::{Error, ErrorKind};
use crate::base::sync::{Mutex, MutexGuard, lock_ignoring_poison};
use crate::base::wait::{Wait, too_late};
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// A call that goes on in the background. See [`Call::detach`](super::call::Call::detach).
///
/// Dropping it ends the wait for its result. For an acquire, that is to leave the queue; a lock that was granted and not
/// fetched is released.
///
/// # Examples
///
/// ```no_run
/// use zklock::Lock;
/// use zklock::further::{Owner, Wait};
///
/// # fn example(lock: &Lock) -> Result<(), zklock::Error> {
/// let (sender, ready) = std::sync::mpsc::channel();
/// let acquiring = lock.acquire_as(Owner::once(), Wait::Forever).detach(move || drop(sender.send(())))?;
/// // ... do something else, or drop it to leave the queue ...
/// ready.recv().expect("it is called when there is a result");
/// let hold = acquiring.fetch().expect("there is a result")?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it ends the call"]
pub struct Started<T> {
    shared: Arc<Shared<T>>,
    /// `None` if there was a result from the beginning.
    task: Option<Task>,
    /// What is called when there is a result.
    ready: Option<Arc<Listener<()>>>,
    opened: Opened,
    wait: Wait,
    accept: fn(T) -> Result<T, Error>,
}

/// The task in the client's runtime that polls the call.
struct Task {
    handle: AbortHandle,
    io: Io,
}

enum State<T> {
    Waits(Waits<T>),
    Ready(Result<T, Error>),
    Fetched,
}

struct Waits<T> {
    /// The future is kept here and not in the task, so that a cancel drops it at once. From then on,
    /// what it owes is counted.
    call: Future<T>,
    /// Wakes the task. Before the task has polled the call, that will come anyway.
    waker: Waker,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// For the threads that wait for the result.
    ended: Notify,
}

impl<T> Shared<T> {
    fn new(state: State<T>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(state), ended: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        lock_ignoring_poison(&self.state)
    }

    /// Ends the wait, with this result.
    fn settle(&self, mut state: MutexGuard<'_, State<T>>, result: Result<T, Error>) {
        *state = State::Ready(result);
        drop(state);
        self.ended.notify_waiters();
    }
}

impl<T: Send + 'static> Started<T> {
    pub(super) fn start(
        io: &Io,
        call: Future<T>,
        wait: Wait,
        accept: fn(T) -> Result<T, Error>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        io.check()?;
        let shared = Shared::new(State::Waits(Waits { call, waker: Waker::noop().clone() }));
        let waits = shared.clone();
        let listener = Listener::once((), |()| ready());
        let ready = Arc::downgrade(&listener);
        io.tell(ready.clone());
        let handle = io.spawn(async move {
            if poll_fn(|context| poll(&waits, context)).await {
                Listener::call(&ready, ());
            }
        });
        let task = Task { handle, io: io.clone() };
        Ok(Self { shared, task: Some(task), ready: Some(listener), opened: io.opened(), wait, accept })
    }

    /// Waits on this thread until there is a result to [`fetch`](Self::fetch). Another thread may [`cancel`](Self::cancel) it
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Timeout`] when the time is up;
    /// * [`ErrorKind::Deadlock`] in a callback and on a thread of a tokio runtime;
    /// * [`ErrorKind::Forked`] and [`ErrorKind::Closed`] as for [`fetch`](Self::fetch).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::further::Wait;
    /// # fn example(acquiring: zklock::further::Started<zklock::Hold>) -> Result<(), zklock::Error> {
    /// acquiring.wait(Wait::Forever)?;
    /// let hold = acquiring.fetch().expect("there is a result")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self, wait: impl Into<Wait>) -> Result<(), Error> {
        let Some(Task { io, .. }) = &self.task else { return Ok(()) };
        let (shared, wait) = (self.shared.clone(), wait.into().at_least_none());
        let ended = async move {
            let mut ended = pin!(shared.ended.notified());
            ended.as_mut().enable();
            let goes_on = matches!(*shared.state(), State::Waits(_));
            if goes_on {
                ended.await;
            }
            Ok(())
        };
        wait::wait(io, Box::pin(wait.bound(ended)), wait, None)
    }

    /// Makes a call that has its result from the beginning.
    pub(super) fn over(result: Result<T, Error>) -> Self {
        let shared = Shared::new(State::Ready(result));
        Self { shared, task: None, ready: None, opened: Opened::now(), wait: Wait::Forever, accept: Ok }
    }
}

impl<T> Started<T> {
    /// Returns the result, once. `None` means that the call goes on. It does not after its deadline: see [`due`](Self::due).
    ///
    /// # Errors
    ///
    /// * Fails like the call does;
    /// * [`ErrorKind::Lost`] if a lock was granted, but lost before it was fetched;
    /// * [`ErrorKind::Interrupted`] after [`cancel`](Self::cancel);
    /// * [`ErrorKind::NotHeld`] if the result was already fetched;
    /// * [`ErrorKind::Forked`] if the call belongs to the parent process; [`ErrorKind::Closed`] if the program has closed our
    ///   descriptors.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::Hold;
    /// # use zklock::further::Started;
    /// # fn example(acquiring: Started<Hold>) -> Result<(), zklock::Error> {
    /// match acquiring.fetch() {
    ///     Some(hold) => hold?.release().wait()?,
    ///     None => println!("still in the queue"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn fetch(&self) -> Option<Result<T, Error>> {
        if let Err(lost) = self.opened.check() {
            return Some(Err(lost));
        }
        self.keep_deadline();
        let mut state = self.shared.state();
        match std::mem::replace(&mut *state, State::Fetched) {
            State::Waits(waits) => {
                *state = State::Waits(waits);
                None
            }
            State::Ready(result) => Some(result.and_then(self.accept)),
            State::Fetched => Some(Err(Error::new(ErrorKind::NotHeld, "this result was already fetched"))),
        }
    }

    /// Returns when to [`fetch`](Self::fetch), at the latest; `None` if the call has no deadline.
    ///
    /// The I/O thread keeps the deadline too, but it may be busy. A fetch at the deadline does its work, and one a little
    /// later ends the call if that is not done by then. So ask for this time again after each fetch that gave no result.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Instant;
    ///
    /// # fn example(acquiring: zklock::further::Started<zklock::Hold>) {
    /// // The event loop sleeps no longer than this, and then fetches.
    /// let longest = acquiring.due().map(|due| due.saturating_duration_since(Instant::now()));
    /// # }
    /// ```
    pub fn due(&self) -> Option<Instant> {
        self.wait.due()
    }

    /// Gets the result on this thread if it is late. Whatever is granted from then on is released.
    fn keep_deadline(&self) {
        let mut state = self.shared.state();
        let (Some(task), State::Waits(waits)) = (&self.task, &mut *state) else { return };
        if !self.wait.is_over() {
            return;
        }
        // A thread that is ending cannot enter the runtime.
        let is_ending = Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed());
        let _runtime = (!is_ending).then(|| task.io.enter());
        let mut context = Context::from_waker(&waits.waker);
        let result = match waits.call.as_mut().poll(&mut context) {
            Poll::Ready(result) => result,
            Poll::Pending if self.wait.is_long_over() => Err(too_late()),
            Poll::Pending => return,
        };
        self.shared.settle(state, result);
    }

    /// Ends the wait. From now on [`fetch`](Self::fetch) gives [`ErrorKind::Interrupted`], unless
    /// there was a result already. The function `ready` is not called any more.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::Hold;
    /// # use zklock::further::Started;
    /// # fn example(acquiring: Started<Hold>) -> Result<(), zklock::Error> {
    /// acquiring.cancel();
    /// if let Some(Ok(hold)) = acquiring.fetch() {
    ///     // It was granted before.
    ///     hold.release().wait()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel(&self) {
        check_descriptors();
        if !self.opened.are_ours() {
            return;
        }
        let cancelled = Error::new(ErrorKind::Interrupted, "the wait was cancelled");
        let state = self.shared.state();
        if let State::Waits(_) = *state {
            self.shared.settle(state, Err(cancelled));
        } else {
            drop(state);
        }
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
fn poll<T>(shared: &Shared<T>, context: &mut Context<'_>) -> Poll<bool> {
    let mut state = shared.state();
    let State::Waits(waits) = &mut *state else { return Poll::Ready(false) };
    waits.waker.clone_from(context.waker());
    waits.call.as_mut().poll(context).map(|result| {
        shared.settle(state, result);
        true
    })
}

impl<T> Drop for Started<T> {
    fn drop(&mut self) {
        check_descriptors();
        if !self.opened.are_ours() {
            // The call belongs to the parent, or would wake the I/O thread.
            std::mem::forget((self.shared.clone(), self.ready.clone()));
            return;
        }
        let unfetched = std::mem::replace(&mut *self.shared.state(), State::Fetched);
        self.abort();
        drop(unfetched);
    }
}

impl<T> fmt::Debug for Started<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.opened.are_ours() {
            return f.write_str("Started(of the parent)");
        }
        f.write_str(match &*self.shared.state() {
            State::Waits(_) => "Started(waits)",
            State::Ready(_) => "Started(ready)",
            State::Fetched => "Started(fetched)",
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
        let never = || Box::pin(std::future::pending::<Result<(), Error>>());
        let start = |wait| Started::start(&io, never(), wait, Ok, || panic!("it has no result")).unwrap();
        assert_eq!(start(Wait::Forever).due(), None);
        let call = start(Wait::from(Duration::from_millis(5)));
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
