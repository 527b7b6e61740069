//! Values that a client makes, such as locks, before it has connected.

use super::connector::{Connected, Connector};
use crate::base::error::Error;
use crate::base::wait::Wait;
use crate::threads::call::{Begun, Call};
use crate::threads::fork_safe::ForkSafe;
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

    /// Returns whether the client was used by a process from which this one was forked. It is useless here then.
    pub fn is_forked(&self) -> bool {
        self.0.connector.is_forked()
    }

    /// Returns the value that this connected client makes.
    pub(super) fn of(&self, client: &Connected) -> Result<&ForkSafe<T>, Error> {
        self.0.of(client)
    }

    /// Makes a call that ends with `wait`. It connects first if necessary.
    pub fn call<R, F>(&self, wait: Wait, call: impl FnOnce(Arc<T>) -> F + Send + 'static) -> Call<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        self.begin(wait, |value| Begun::goes_on(value.io(), call(value.value())))
    }

    /// Makes a call that may be over at once.
    pub(super) fn begin<R: Send + 'static>(
        &self,
        wait: Wait,
        begin: impl FnOnce(&ForkSafe<T>) -> Begun<R> + Send + 'static,
    ) -> Call<R> {
        let lazy = self.clone();
        let begun = move || {
            let connector = &lazy.0.connector;
            connector.refuse_forked()?;
            match lazy.0.now() {
                Ok(Some(made)) => {
                    made.get()?;
                    Ok(begin(made))
                }
                Ok(None) => {
                    let (io, connecting) = connector.begin(wait)?;
                    let begun = async move {
                        match begin(lazy.0.of(&connecting.await?)?) {
                            Begun::Over(result) => result,
                            Begun::GoesOn(pending) => pending.run().await,
                        }
                    };
                    Ok(Begun::goes_on(&io, begun))
                }
                Err(error) => Ok(Begun::Over(Err(error))),
            }
        };
        Call::new(begun).until(wait)
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
