//! A call of the asynchronous core, made by a thread.

use super::interrupt::Interrupt;
use super::io::Io;
use super::started::Started;
use super::thread::refuse_to_block;
use super::wait::{Future, wait};
use crate::base::error::{Error, ErrorKind};
use crate::base::wait::Wait;
use std::fmt;

/// A call that has not begun. To begin it, [wait](Self::wait) for it, or [detach](Self::detach) it, so that it goes on
/// in the background. Nothing happens before, so you may also drop it.
///
/// # Examples
///
/// ```no_run
/// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
/// use zklock_core::{Owner, Wait};
///
/// let lock = client.mutex("/locks/report")?;
/// let (sender, ready) = std::sync::mpsc::channel();
/// let acquiring = lock.acquire_call(Owner::once(), Wait::Forever).detach(move || drop(sender.send(())))?;
/// // ... the thread does something else ...
/// if ready.recv().is_ok() {
///     let hold = acquiring.fetch().expect("it is ready")?;
///     hold.release()?;
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a call does nothing unless a thread waits for it, or it is detached"]
pub struct Call<T> {
    stage: Stage<T>,
    wait: Wait,
    accept: fn(T) -> Result<T, Error>,
}

enum Stage<T> {
    New(Box<dyn FnOnce() -> Result<Begun<T>, Error> + Send>),
    Pending(Pending<T>),
    Over(Result<T, Error>),
    /// It belongs to another process, or the program has closed our descriptors.
    Refused(Error),
    Taken,
}

/// How a call has begun.
pub(crate) enum Begun<T> {
    Over(Result<T, Error>),
    GoesOn(Pending<T>),
}

/// The future of a call, which belongs to the process in which the call has begun.
pub(crate) struct Pending<T> {
    io: Io,
    future: Option<Future<T>>,
}

impl<T> Begun<T> {
    pub(crate) fn goes_on(
        io: &Io,
        future: impl std::future::Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Self {
        Self::GoesOn(Pending { io: io.clone(), future: Some(Box::pin(future)) })
    }
}

impl<T: Send + 'static> Call<T> {
    /// Makes a call that `begin` begins, unless that must be refused.
    pub(crate) fn new(begin: impl FnOnce() -> Result<Begun<T>, Error> + Send + 'static) -> Self {
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
    /// use zklock_core::{Owner, Wait};
    ///
    /// # fn example(lock: zklock_core::blocking::Lock) -> Result<(), zklock_core::Error> {
    /// let mut call = lock.acquire_call(Owner::current(), Wait::Forever);
    /// // A reentrant lock that this thread already has is granted without a wait.
    /// let hold = match call.at_once() {
    ///     Some(result) => result?,
    ///     None => call.wait(None)?,
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

    /// Waits for the call. This thread polls it. So this thread's clock keeps the deadline, and the interrupt ends the wait
    /// at once.
    ///
    /// # Errors
    ///
    /// Fails like the call does; and with [`Timeout`](crate::ErrorKind::Timeout) at the deadline, with
    /// [`Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered, with
    /// [`Deadlock`](crate::ErrorKind::Deadlock) in a callback, and with [`Forked`](crate::ErrorKind::Forked) in a child.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock_core::Owner;
    ///
    /// # use zklock_core::blocking::{Interrupt, Lock};
    /// # fn example(lock: &Lock, interrupt: &Interrupt) -> Result<(), zklock_core::Error> {
    /// let call = lock.acquire_call(Owner::current(), Duration::from_secs(5));
    /// let hold = call.wait(Some(interrupt))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(mut self, interrupt: Option<&Interrupt>) -> Result<T, Error> {
        // A thread that must not wait must not begin anything.
        refuse_to_block()?;
        match self.begin() {
            Stage::Over(result) => result,
            Stage::Refused(error) => Err(error),
            Stage::Pending(mut pending) => wait(&pending.io.clone(), pending.take()?, self.wait, interrupt),
            Stage::New(_) | Stage::Taken => Err(taken()),
        }
    }

    /// Lets the call go on in the background. The I/O thread calls `ready` when there is a result, so `ready` must not
    /// block. If there already is a result, `ready` is called before this returns.
    ///
    /// Some calls, such as a release, begin their work here. Then dropping the returned value only ends the wait for
    /// it.
    ///
    /// # Errors
    ///
    /// [`Forked`](crate::ErrorKind::Forked) in a child, and [`Closed`](crate::ErrorKind::Closed) if the program has closed our
    /// descriptors. All other errors come with the result.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::{Owner, Wait};
    ///
    /// # use zklock_core::blocking::Lock;
    /// # fn example(lock: Lock, wake: std::sync::mpsc::Sender<()>) -> Result<(), zklock_core::Error> {
    /// let call = lock.acquire_call(Owner::once(), Wait::Forever);
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
                Ok(Begun::GoesOn(pending)) => Stage::Pending(pending),
                Ok(Begun::Over(result)) => Stage::Over(result),
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
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if self.io.is_lost() {
            // It belongs to the parent, or would wake the I/O thread.
            std::mem::forget(self.future.take());
        }
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
