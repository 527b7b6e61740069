//! A value of the asynchronous core, used by threads.

use super::call::Call;
use super::interrupt::Interrupt;
use super::io::Io;
use super::thread::refuse_to_block;
use super::wait::wait;
use crate::base::error::Error;
use crate::base::wait::Wait;
use std::fmt;
use std::sync::Arc;

/// A value of the asynchronous core, for example a [`Hold`](crate::Hold), used by threads: its calls are waited for here,
/// or go on in the background. A forked child has a copy, which it does not touch.
pub struct ForkSafe<T> {
    value: Arc<T>,
    io: Io,
}

impl<T> ForkSafe<T> {
    pub(crate) fn new(value: T, io: Io) -> Self {
        Self { value: Arc::new(value), io }
    }

    /// Wraps a value that was made in this process, in which the I/O thread already runs.
    pub(crate) fn here(value: T) -> Result<Self, Error> {
        Ok(Self::new(value, Io::start()?))
    }

    /// Wraps a value that came from this one.
    pub(crate) fn adopt<U>(&self, value: U) -> ForkSafe<U> {
        ForkSafe::new(value, self.io.clone())
    }

    pub(crate) fn io(&self) -> &Io {
        &self.io
    }

    /// Returns the value, or an error in a child of the process that made it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked) in a child; [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the
    /// program has closed our descriptors.
    pub fn get(&self) -> Result<&T, Error> {
        self.io.check()?;
        Ok(&self.value)
    }

    /// Like [`get`](Self::get), for a caller that will wait. So it also fails in a callback.
    pub(crate) fn get_to_wait(&self) -> Result<&T, Error> {
        refuse_to_block()?;
        self.get()
    }

    /// Returns the value, for parts that do not change and need no mutex, so that even a child may read them.
    pub(crate) fn fixed(&self) -> &T {
        &self.value
    }

    /// Shares the value. Use it only if [`get`](Self::get) succeeds.
    pub(crate) fn value(&self) -> Arc<T> {
        self.value.clone()
    }

    /// Asks the value for something; returns `otherwise` if it must be left alone, as in a child.
    pub(crate) fn look<R>(&self, otherwise: R, look: impl FnOnce(&T) -> R) -> R {
        if self.io.is_lost() { otherwise } else { look(&self.value) }
    }

    /// Waits for a call. The caller's thread polls it. So that thread is the owner, its clock keeps the deadline, and the
    /// interrupt ends the wait at once.
    ///
    /// # Errors
    ///
    /// Fails like the call does; and with [`Timeout`](crate::ErrorKind::Timeout) at the deadline, with
    /// [`Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered, with
    /// [`Deadlock`](crate::ErrorKind::Deadlock) in a callback, and with [`Forked`](crate::ErrorKind::Forked) in a child.
    pub fn wait<'a, R, F>(
        &'a self,
        how_long: Wait,
        interrupt: Option<&Interrupt>,
        call: impl FnOnce(&'a T) -> F,
    ) -> Result<R, Error>
    where
        R: Send,
        F: Future<Output = Result<R, Error>> + Send,
    {
        wait(&self.io, call(self.get_to_wait()?), how_long.deadline(), interrupt)?
    }

    /// Starts a call, and returns at once. The I/O thread calls `ready` when there is a result, so `ready` must not block.
    /// If something begins before the future is polled, as a release does, dropping the call only ends the wait for it.
    ///
    /// # Errors
    ///
    /// [`Forked`](crate::ErrorKind::Forked) in a child, and [`Closed`](crate::ErrorKind::Closed) if the program has closed our
    /// descriptors. All other errors come with the result.
    pub fn start<R, F>(
        &self,
        ready: impl FnOnce() + Send + 'static,
        call: impl FnOnce(Arc<T>) -> F,
    ) -> Result<Call<R>, Error>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        self.get()?;
        Call::start(&self.io, call(self.value.clone()), ready)
    }
}

impl<T> Clone for ForkSafe<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), io: self.io.clone() }
    }
}

impl<T> Drop for ForkSafe<T> {
    fn drop(&mut self) {
        let is_last = Arc::strong_count(&self.value) == 1;
        if self.io.is_lost() || (is_last && self.io.check().is_err()) {
            // The parent owns it, and its mutexes may be locked for ever. Or it would wake the I/O thread.
            std::mem::forget(self.value.clone());
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for ForkSafe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.io.is_lost() { f.write_str("(of the parent)") } else { self.value.fmt(f) }
    }
}
