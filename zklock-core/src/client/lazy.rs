//! Values that a client makes, such as locks, before it has connected.

use super::home::Home;
use super::registry::CoreClient;
use crate::base::error::Error;
use crate::base::wait::Wait;
use crate::threads::call::{Beginning, Call};
use crate::threads::fork_safe::ForkSafe;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A value of a client, such as a lock, which is made when the client is first needed. Every call connects the client first, in
/// the time that the caller is willing to wait. So callers need not know whether the client has connected yet.
pub(crate) struct Lazy<T>(Arc<Made<T>>);

struct Made<T> {
    home: Home,
    make: Box<Make<T>>,
    /// Read only in the process in which the client was first needed.
    value: OnceLock<ForkSafe<T>>,
}

type Make<T> = dyn Fn(&ForkSafe<CoreClient>) -> Result<T, Error> + Send + Sync;

impl<T: Send + Sync + 'static> Lazy<T> {
    pub(crate) fn new(
        home: &Home,
        make: impl Fn(&ForkSafe<CoreClient>) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let lazy = Self(Arc::new(Made { home: home.clone(), make: Box::new(make), value: OnceLock::new() }));
        home.refuse_forked()?;
        if let Some(client) = home.connected() {
            // Making it now shows whether that can fail.
            lazy.of(client)?;
        }
        Ok(lazy)
    }

    pub(crate) fn home(&self) -> &Home {
        &self.0.home
    }

    /// Returns whether the client was used by a process from which this one was forked. It is useless here then.
    pub(crate) fn is_forked(&self) -> bool {
        self.0.home.is_forked()
    }

    /// Returns the value that this client makes.
    pub(crate) fn of(&self, client: &ForkSafe<CoreClient>) -> Result<&ForkSafe<T>, Error> {
        if let Some(value) = self.0.value.get() {
            return Ok(value);
        }
        let value = ForkSafe::new((self.0.make)(client)?, client.io().clone());
        Ok(self.0.value.get_or_init(|| value))
    }

    /// Makes a call that ends with `wait`. It connects first if necessary.
    pub(crate) fn call<R, F>(
        &self,
        wait: Wait,
        call: impl FnOnce(ForkSafe<T>) -> F + Send + 'static,
    ) -> Call<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let lazy = self.clone();
        self.0.home.call(wait, move |client| async move { call(lazy.of(&client)?.clone()).await })
    }

    /// Makes a call that may be over at once. One that `queues` takes its place before the client has connected.
    pub(crate) fn begin<R: Send + 'static>(
        &self,
        wait: Wait,
        queues: bool,
        begin: impl FnOnce(&ForkSafe<T>) -> Beginning<R> + Send + 'static,
    ) -> Call<R> {
        let lazy = self.clone();
        self.0.home.begin(wait, queues, move |client| match lazy.of(client) {
            Ok(value) => begin(value),
            Err(error) => Beginning::Over(Err(error)),
        })
    }
}

impl<T> Clone for Lazy<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.home.fmt(f)
    }
}
