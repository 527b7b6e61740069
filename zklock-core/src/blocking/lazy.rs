//! Values that a client makes, such as locks, before it has connected.

use super::connector::{Connected, Connector};
use crate::base::error::Error;
use crate::base::wait::Wait;
use crate::threads::call::Call;
use crate::threads::fork_safe::ForkSafe;
use crate::threads::interrupt::Interrupt;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A value of a client, such as a lock, which is made when the client has connected. Every call connects the client first, in
/// the time that the caller is willing to wait. So callers need not know whether the client has connected yet.
pub struct Lazy<T>(Arc<Made<T>>);

struct Made<T> {
    connector: Connector,
    make: Box<Make<T>>,
    /// Read only in the process that used the connector.
    value: OnceLock<ForkSafe<T>>,
}

type Make<T> = dyn Fn(&Connected) -> Result<T, Error> + Send + Sync;

impl<T: Send + Sync + 'static> Lazy<T> {
    pub(super) fn new(
        connector: &Connector,
        make: impl Fn(&Connected) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let made = Made { connector: connector.clone(), make: Box::new(make), value: OnceLock::new() };
        // If the client is connected, making the value now shows whether that can fail.
        made.now()?;
        Ok(Self(Arc::new(made)))
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.0.connector
    }

    /// Returns the value; `None` as long as the client has not connected.
    pub(super) fn now(&self) -> Result<Option<&ForkSafe<T>>, Error> {
        self.0.now()
    }

    /// Returns whether the client was used by a process from which this one was forked. It is useless here then.
    pub fn is_forked(&self) -> bool {
        self.0.connector.is_forked()
    }

    /// Returns the value that this connected client makes.
    pub(super) fn of(&self, client: &Connected) -> Result<&ForkSafe<T>, Error> {
        self.0.of(client)
    }

    /// Connects first if necessary, and then waits like [`ForkSafe::wait`] does, until the same deadline.
    ///
    /// # Errors
    ///
    /// Fails like [`Client::connect`](super::Client::connect) and [`ForkSafe::wait`] do.
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
        self.made(how_long, interrupt)?.wait(how_long, interrupt, call)
    }

    /// The same for a call that keeps the deadline by itself, and then needs a moment to leave.
    pub(super) fn wait_and_leave<'a, R, F>(
        &'a self,
        connecting: Wait,
        interrupt: Option<&Interrupt>,
        call: impl FnOnce(&'a T) -> F,
    ) -> Result<R, Error>
    where
        R: Send,
        F: Future<Output = Result<R, Error>> + Send,
    {
        self.made(connecting, interrupt)?.wait(Wait::Forever, interrupt, call)
    }

    fn made(&self, connecting: Wait, interrupt: Option<&Interrupt>) -> Result<&ForkSafe<T>, Error> {
        match self.0.now()? {
            Some(made) => Ok(made),
            None => self.0.of(&self.0.connector.connect(connecting, interrupt)?),
        }
    }

    /// Starts a call that ends with `wait`, and returns at once. It connects first if necessary. The I/O thread calls `ready`
    /// when there is a result, so `ready` must not block.
    ///
    /// # Errors
    ///
    /// [`Forked`](crate::ErrorKind::Forked) if the client belongs to the parent process. All other errors come with the
    /// result.
    pub fn start<R, F>(
        &self,
        ready: impl FnOnce() + Send + 'static,
        wait: Wait,
        call: impl FnOnce(Arc<T>) -> F + Send + 'static,
    ) -> Result<Call<R>, Error>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        self.0.connector.refuse_forked()?;
        match self.0.now() {
            Ok(Some(made)) => Ok(made.start(ready, call)?.until(wait)),
            Ok(None) => {
                let lazy = self.clone();
                let begun = |client| async move { call(lazy.0.of(&client)?.value()).await };
                self.0.connector.start(ready, wait, begun)
            }
            Err(error) => Ok(Call::failed(error, ready)),
        }
    }
}

impl<T> Made<T> {
    fn now(&self) -> Result<Option<&ForkSafe<T>>, Error> {
        self.connector.refuse_forked()?;
        if let Some(value) = self.value.get() {
            return Ok(Some(value));
        }
        self.connector.connected().map(|client| self.of(&client)).transpose()
    }

    fn of(&self, client: &Connected) -> Result<&ForkSafe<T>, Error> {
        let value = client.adopt((self.make)(client)?);
        Ok(self.value.get_or_init(|| value))
    }
}

impl<T> Clone for Lazy<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: fmt::Debug> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.now() {
            Ok(Some(value)) => value.fmt(f),
            Ok(None) => f.write_str("(not connected)"),
            Err(_) => f.write_str("(of the parent)"),
        }
    }
}
