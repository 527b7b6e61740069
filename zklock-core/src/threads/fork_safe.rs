//! A value of the layers below, as a handle of the API has it.

use super::call::{Begun, Call};
use super::io::Io;
use crate::base::error::Error;
use std::fmt;
use std::sync::Arc;

/// A value of the layers below, and the runtime of its client. A forked child has a copy, which it does not touch.
pub(crate) struct ForkSafe<T>(Arc<OfHere<T>>);

/// Its last owner drops the value, unless it must be left alone.
struct OfHere<T> {
    value: Arc<T>,
    io: Io,
}

impl<T> ForkSafe<T> {
    pub(crate) fn new(value: T, io: Io) -> Self {
        Self(Arc::new(OfHere { value: Arc::new(value), io }))
    }

    /// Wraps a value that came from this one.
    pub(crate) fn adopt<U>(&self, value: U) -> ForkSafe<U> {
        ForkSafe::new(value, self.0.io.clone())
    }

    pub(crate) fn io(&self) -> &Io {
        &self.0.io
    }

    /// Returns the value, or an error in a child of the process that made it.
    pub(crate) fn get(&self) -> Result<&T, Error> {
        self.0.io.check()?;
        Ok(&self.0.value)
    }

    /// Returns the value, for parts that do not change and need no mutex, so that even a child may read them.
    pub(crate) fn fixed(&self) -> &T {
        &self.0.value
    }

    /// Shares the value. Use it only if [`get`](Self::get) succeeds.
    pub(crate) fn value(&self) -> Arc<T> {
        self.0.value.clone()
    }

    /// Asks the value for something; returns `otherwise` if it must be left alone, as in a child.
    pub(crate) fn look<R>(&self, otherwise: impl FnOnce() -> R, look: impl FnOnce(&T) -> R) -> R {
        if self.0.io.is_lost() { otherwise() } else { look(&self.0.value) }
    }
}

impl<T: Send + Sync + 'static> ForkSafe<T> {
    /// Makes a call of the value.
    pub(crate) fn call<R, F>(&self, call: impl FnOnce(Arc<T>) -> F + Send + 'static) -> Call<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        self.begin(|value| Begun::goes_on(value.io(), call(value.value())))
    }

    /// Makes a call that may be over at once, or must begin before it can be waited for.
    pub(crate) fn begin<R: Send + 'static>(
        &self,
        begin: impl FnOnce(&Self) -> Begun<R> + Send + 'static,
    ) -> Call<R> {
        let value = self.clone();
        Call::new(move || {
            value.get()?;
            Ok(begin(&value))
        })
    }
}

impl<T> Clone for ForkSafe<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Drop for OfHere<T> {
    fn drop(&mut self) {
        if self.io.check().is_err() {
            // The parent owns it, and its mutexes may be locked for ever. Or it would wake the I/O thread.
            std::mem::forget(self.value.clone());
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for ForkSafe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.io.is_lost() { f.write_str("(of the parent)") } else { self.0.value.fmt(f) }
    }
}
