//! Something of the asynchronous core, in the hands of threads.

use super::call::Call;
use super::interrupt::Interrupt;
use super::io::{Io, refuse_to_block};
use super::wait::wait;
use crate::error::Error;
use crate::wait::Wait;
use std::fmt;
use std::sync::Arc;

/// Something of the asynchronous core, such as a [`Hold`](crate::Hold), in the hands of threads: calls of it are waited for
/// here, or go on by themselves. A forked child has a copy, which it does not touch.
pub struct ForkSafe<T> {
    value: Arc<T>,
    io: Io,
}

impl<T> ForkSafe<T> {
    pub(crate) fn new(value: T, io: Io) -> Self {
        Self { value: Arc::new(value), io }
    }

    /// Something that was made in this process, in which the I/O thread already runs.
    pub(crate) fn here(value: T) -> Result<Self, Error> {
        Ok(Self::new(value, Io::start()?))
    }

    /// What came of it, in the same hands.
    pub(crate) fn adopt<U>(&self, value: U) -> ForkSafe<U> {
        ForkSafe::new(value, self.io.clone())
    }

    pub(crate) fn io(&self) -> &Io {
        &self.io
    }

    /// An error in a child of the process that made it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`](crate::ErrorKind::Forked).
    pub fn get(&self) -> Result<&T, Error> {
        self.io.refuse_forked()?;
        Ok(&self.value)
    }

    /// As [`get`](Self::get), for a caller that is to wait: so it is also an error in a callback.
    pub(crate) fn get_to_wait(&self) -> Result<&T, Error> {
        refuse_to_block()?;
        self.get()
    }

    /// What does not change and needs no mutex, so that a child may read it.
    pub(crate) fn fixed(&self) -> &T {
        &self.value
    }

    /// The same, shared. Only if [`get`](Self::get) succeeds.
    pub(crate) fn value(&self) -> Arc<T> {
        self.value.clone()
    }

    /// What it says of itself, or what is to be said in a child.
    pub(crate) fn look<R>(&self, in_a_child: R, look: impl FnOnce(&T) -> R) -> R {
        if self.io.is_forked() { in_a_child } else { look(&self.value) }
    }

    /// Waits for a call. The caller's thread polls it: so it is the owner, its clock keeps the deadline, and the interrupt
    /// ends the wait at once.
    ///
    /// # Errors
    ///
    /// Those of the call; [`Timeout`](crate::ErrorKind::Timeout) at the deadline,
    /// [`Interrupted`](crate::ErrorKind::Interrupted), [`Deadlock`](crate::ErrorKind::Deadlock) in a callback,
    /// [`Forked`](crate::ErrorKind::Forked).
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

    /// Begins a call, and returns at once. `ready` is called when there is a result: on the I/O thread, so it must not
    /// block. Of what has begun before the future is polled, as a release has, dropping the call ends only the waiting.
    ///
    /// # Errors
    ///
    /// [`Forked`](crate::ErrorKind::Forked); all others come with the result.
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
        if self.io.is_forked() {
            // It is the parent's, and its mutexes may be locked for ever.
            std::mem::forget(self.value.clone());
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for ForkSafe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.io.is_forked() { f.write_str("(of the parent)") } else { self.value.fmt(f) }
    }
}
