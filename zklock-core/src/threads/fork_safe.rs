//! A value of a client, as a handle of the API has it.

use super::call::{Beginning, Call};
use super::io::Io;
use crate::base::error::{Error, LossReason};
use std::fmt;
use std::sync::Arc;

/// A value of a client, and the client's runtime. A forked child has a copy, which it does not touch.
pub(crate) struct ForkSafe<T>(Arc<OfHere<T>>);

/// Its last owner drops the value, unless it must be left alone.
struct OfHere<T> {
    /// There until it is dropped.
    value: Option<T>,
    io: Io,
}

impl<T> ForkSafe<T> {
    pub(crate) fn new(value: T, io: Io) -> Self {
        Self(Arc::new(OfHere { value: Some(value), io }))
    }

    pub(crate) fn io(&self) -> &Io {
        &self.0.io
    }

    /// Returns the value, or an error in a child of the process that made it.
    pub(crate) fn get(&self) -> Result<&T, Error> {
        self.0.io.check()?;
        Ok(self.fixed())
    }

    /// Returns the value, for parts that do not change and need no mutex, so that even a child may read them; or if
    /// [`get`](Self::get) has succeeded.
    pub(crate) fn fixed(&self) -> &T {
        self.0.value.as_ref().unwrap_or_else(|| unreachable!("it is dropped"))
    }

    /// Returns why what depends on it is lost, if it must be left alone.
    pub(crate) fn loss(&self) -> LossReason {
        self.0.io.opened().loss()
    }

    /// Asks the value for something; returns `otherwise` if it must be left alone, as in a child.
    pub(crate) fn look<R>(&self, otherwise: impl FnOnce() -> R, look: impl FnOnce(&T) -> R) -> R {
        if self.0.io.is_lost() { otherwise() } else { look(self.fixed()) }
    }
}

impl<T: Send + Sync + 'static> ForkSafe<T> {
    /// Makes a call of the value.
    pub(crate) fn call<R, F>(&self, call: impl FnOnce(Self) -> F + Send + 'static) -> Call<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        self.begin(|value| Beginning::goes_on(value.io(), call(value.clone())))
    }

    /// Makes a call that may be over at once, or must begin before it can be waited for.
    pub(crate) fn begin<R: Send + 'static>(
        &self,
        begin: impl FnOnce(&Self) -> Beginning<R> + Send + 'static,
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
            std::mem::forget(self.value.take());
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for ForkSafe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.io.is_lost() { f.write_str("(of the parent)") } else { self.fixed().fmt(f) }
    }
}
