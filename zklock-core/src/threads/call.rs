//! A call: awaited by a task, waited for by a thread, or detached.

use super::interrupt::Interrupt;
use super::io::Io;
use super::started::Started;
use super::thread::refuse_to_block;
use super::wait::{Future, wait};
use crate::base::error::{Error, ErrorKind};
use crate::base::wait::Wait;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A call that has not begun: a future. To begin it, await it in a task, [wait](Self::wait) for it in a thread, or
/// [detach](Self::detach) it, so that it goes on in the background. Nothing happens before, so you may also drop it. Its time, if
/// it has one, counts from when it was made.
///
/// # Errors
///
/// Besides what its method says, a call fails with:
///
/// * [`Forked`](ErrorKind::Forked) in a child process, if the parent has used the client;
/// * [`Closed`](ErrorKind::Closed) if the client is closed, or the program has closed [descriptors](crate#descriptors) of this
///   crate.
///
/// If the client has not connected yet, it also fails like [`Client::connect`](crate::Client::connect) does.
///
/// # Examples
///
/// ```no_run
/// use zklock::Lock;
///
/// async fn in_a_task(lock: &Lock) -> Result<(), zklock::Error> {
///     let hold = lock.acquire().await?;
///     hold.release().await
/// }
///
/// fn in_a_thread(lock: &Lock) -> Result<(), zklock::Error> {
///     let hold = lock.acquire().wait()?;
///     hold.release().wait()
/// }
/// ```
#[must_use = "a call does nothing unless it is awaited, waited for or detached"]
pub struct Call<T> {
    stage: Stage<T>,
    wait: Wait,
    accept: fn(T) -> Result<T, Error>,
}

enum Stage<T> {
    New(Box<dyn FnOnce() -> Result<Beginning<T>, Error> + Send>),
    Pending(Pending<T>),
    Over(Result<T, Error>),
    /// It belongs to another process, or the program has closed our descriptors.
    Refused(Error),
    Taken,
}

/// How a call has begun.
pub(crate) enum Beginning<T> {
    Over(Result<T, Error>),
    GoesOn(Pending<T>),
}

/// The future of a call, which belongs to the process in which the call has begun.
pub(crate) struct Pending<T> {
    io: Io,
    future: Option<Future<T>>,
}

impl<T> Beginning<T> {
    pub(crate) fn goes_on(
        io: &Io,
        future: impl std::future::Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Self {
        Self::GoesOn(Pending { io: io.clone(), future: Some(Box::pin(future)) })
    }

    /// Goes on as a part of another call of the same process.
    pub(crate) async fn run(self) -> Result<T, Error> {
        match self {
            Self::Over(result) => result,
            Self::GoesOn(pending) => pending.run().await,
        }
    }
}

impl<T: Send + 'static> Call<T> {
    /// Makes a call that `begin` begins, unless that must be refused.
    pub(crate) fn new(begin: impl FnOnce() -> Result<Beginning<T>, Error> + Send + 'static) -> Self {
        Self { stage: Stage::New(Box::new(begin)), wait: Wait::Forever, accept: Ok }
    }

    /// Gives it a deadline, which its future keeps too. After that it has [a moment](crate::base::wait::GRACE) to end.
    pub(crate) fn until(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// Looks at the result again when it is fetched, which may be long after it came.
    pub(crate) fn accepted(mut self, accept: fn(T) -> Result<T, Error>) -> Self {
        self.accept = accept;
        self
    }

    /// Begins the call, and returns its result if there is nothing to wait for. It neither blocks nor takes long.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(lock: zklock::Lock) -> Result<(), zklock::Error> {
    /// let mut call = lock.acquire();
    /// // A reentrant lock that this thread already has is granted without a wait.
    /// let hold = match call.at_once() {
    ///     Some(result) => result?,
    ///     None => call.wait()?,
    /// };
    /// # Ok(())
    /// # }
    /// ```
    pub fn at_once(&mut self) -> Option<Result<T, Error>> {
        match self.begin() {
            Stage::Over(result) => Some(result),
            Stage::Refused(error) => Some(Err(error)),
            goes_on => {
                self.stage = goes_on;
                None
            }
        }
    }

    /// Waits for the call. This thread polls it. So this thread's clock keeps the deadline.
    ///
    /// # Errors
    ///
    /// Fails like the call does; with [`Timeout`](ErrorKind::Timeout) at its deadline; and with [`Deadlock`](ErrorKind::Deadlock),
    /// before it begins, in a callback and on a thread of a tokio runtime, where it would stop other tasks.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(lock: &zklock::Lock) -> Result<(), zklock::Error> {
    /// let hold = lock.acquire_timeout(Duration::from_secs(5)).wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(self) -> Result<T, Error> {
        self.wait_by(None)
    }

    /// Like [`wait`](Self::wait), but waits no longer than this. To acquire a lock,
    /// [`acquire_timeout`](crate::Lock::acquire_timeout) is better: its error says what was in the way.
    ///
    /// # Errors
    ///
    /// Fails like [`wait`](Self::wait) does; and with [`Timeout`](ErrorKind::Timeout) when the time is up.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(hold: &zklock::Hold) {
    /// if let Ok(Some(reason)) = hold.lost().wait_timeout(Duration::from_secs(1)) {
    ///     println!("stop: {reason}");
    /// }
    /// # }
    /// ```
    pub fn wait_timeout(self, timeout: Duration) -> Result<T, Error> {
        self.within(Wait::at_most(Some(timeout))).wait()
    }

    /// Like [`wait`](Self::wait), but ends at once when the interrupt is triggered. An acquire then leaves the queue, like one whose
    /// time is up.
    ///
    /// # Errors
    ///
    /// Fails like [`wait`](Self::wait) does; and with [`Interrupted`](ErrorKind::Interrupted) if the interrupt is triggered first.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use zklock::Lock;
    /// # use zklock::further::Interrupt;
    /// # fn example(lock: &Lock, interrupt: &Interrupt) -> Result<(), zklock::Error> {
    /// // Until the lock is held, or another thread triggers the interrupt.
    /// let hold = lock.acquire().wait_unless(interrupt)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_unless(self, interrupt: &Interrupt) -> Result<T, Error> {
        self.wait_by(Some(interrupt))
    }

    fn wait_by(mut self, interrupt: Option<&Interrupt>) -> Result<T, Error> {
        // A thread that must not wait must not begin anything.
        refuse_to_block()?;
        match self.begin() {
            Stage::Over(result) => result,
            Stage::Refused(error) => Err(error),
            Stage::Pending(mut pending) => wait(&pending.io.clone(), pending.take()?, self.wait, interrupt),
            Stage::New(_) | Stage::Taken => Err(taken()),
        }
    }

    /// Ends the call when `wait` is over. It is hidden, because only the C and Python layers bound calls that have no time of their
    /// own.
    #[doc(hidden)]
    pub fn within(mut self, wait: impl Into<Wait>) -> Self {
        let wait = wait.into().at_least_none();
        let accept = self.accept;
        let begin = move || match self.begin() {
            Stage::Over(result) => Ok(Beginning::Over(result)),
            Stage::Refused(error) => Err(error),
            Stage::Pending(pending) => Ok(Beginning::goes_on(&pending.io.clone(), wait.bound(pending.run()))),
            Stage::New(_) | Stage::Taken => Err(taken()),
        };
        Self::new(begin).until(wait).accepted(accept)
    }

    /// Lets the call go on in the background. A task of the client calls `ready` when there is a result, so `ready` must not
    /// block. If there already is a result, `ready` is called before this returns.
    ///
    /// Some calls, such as a release, begin their work here. Then dropping the returned value only ends the wait for
    /// it.
    ///
    /// # Errors
    ///
    /// [`Forked`](ErrorKind::Forked) in a child, and [`Closed`](ErrorKind::Closed) if the program has closed our
    /// descriptors. All other errors come with the result.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::further::{Owner, Wait};
    ///
    /// # use zklock::Lock;
    /// # fn example(lock: Lock, wake: std::sync::mpsc::Sender<()>) -> Result<(), zklock::Error> {
    /// let call = lock.acquire_as(Owner::once(), Wait::Forever);
    /// // The event loop fetches the result when it is woken.
    /// let acquiring = call.detach(move || drop(wake.send(())))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn detach(mut self, ready: impl FnOnce() + Send + 'static) -> Result<Started<T>, Error> {
        match self.begin() {
            Stage::Over(result) => {
                ready();
                Ok(Started::over(result))
            }
            Stage::Refused(error) => Err(error),
            Stage::Pending(mut pending) => {
                Started::start(&pending.io.clone(), pending.take()?, self.wait, self.accept, ready)
            }
            Stage::New(_) | Stage::Taken => Err(taken()),
        }
    }

    /// Takes the call, which has begun from now on.
    fn begin(&mut self) -> Stage<T> {
        match std::mem::replace(&mut self.stage, Stage::Taken) {
            Stage::New(begin) => match begin() {
                Ok(Beginning::GoesOn(pending)) => Stage::Pending(pending),
                Ok(Beginning::Over(result)) => Stage::Over(result),
                Err(error) => Stage::Refused(error),
            },
            begun => begun,
        }
    }
}

fn taken() -> Error {
    Error::new(ErrorKind::NotHeld, "the result of this call has been taken")
}

impl<T> Pending<T> {
    /// Goes on as a part of another call of the same process.
    pub(crate) async fn run(mut self) -> Result<T, Error> {
        self.take()?.await
    }

    fn take(&mut self) -> Result<Future<T>, Error> {
        self.future.take().ok_or_else(taken)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        if let Err(error) = self.io.check() {
            return Poll::Ready(Err(error));
        }
        // Its timers belong to the client's runtime, and the task may be of another.
        let _runtime = self.io.enter();
        self.future.as_mut().map_or_else(|| Poll::Ready(Err(taken())), |future| future.as_mut().poll(context))
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else { return };
        if self.io.is_lost() {
            // It belongs to the parent, or would wake the I/O thread.
            std::mem::forget(future);
        } else {
            let _runtime = self.io.enter();
            drop(future);
        }
    }
}

/// Nothing in it is pinned: its future is boxed.
impl<T> Unpin for Call<T> {}

impl<T: Send + 'static> std::future::Future for Call<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::New(_) = self.stage {
            self.stage = self.begin();
        }
        let result = match &mut self.stage {
            Stage::Pending(pending) => ready!(pending.poll(context)),
            _ => match self.begin() {
                Stage::Over(result) => result,
                Stage::Refused(error) => Err(error),
                _ => Err(taken()),
            },
        };
        self.stage = Stage::Taken;
        Poll::Ready(result)
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.stage {
            Stage::New(_) => "Call(new)",
            Stage::Pending(_) => "Call(begun)",
            Stage::Over(_) | Stage::Refused(_) => "Call(over)",
            Stage::Taken => "Call(taken)",
        })
    }
}
