//! What the barriers of both faces share.

use crate::connecting::with_client;
use crate::coroutine::{Begun, Bell, Coroutine};
use crate::error::raised;
use crate::patience::left;
use crate::place::Shared;
use crate::wait::detached;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock_core::blocking::{Call, Client};
use zklock_core::{Error, check_lock_path};

/// A barrier at a path, which its client need not have connected to.
pub(crate) struct SharedBarrier {
    pub(crate) shared: Arc<Shared>,
    pub(crate) path: String,
}

impl SharedBarrier {
    pub(crate) fn new(py: Python<'_>, shared: &Arc<Shared>, path: &str) -> PyResult<Arc<Self>> {
        check_lock_path(path).map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self { shared: shared.clone(), path: path.to_owned() }))
    }

    /// Does something with the client, which may have to connect first, in what is left of the time.
    pub(crate) fn call<T: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
        call: impl FnOnce(&Client, Option<Duration>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        if self.shared.connector.connected().is_none() {
            self.shared.prepare(py)?;
        }
        let begun = Instant::now();
        detached(py, || match timeout {
            // A look takes as long as it takes to connect, for the connect timeout at most.
            Some(Duration::ZERO) => call(&self.shared.connector.connect(None)?, timeout),
            timeout => {
                let client = self.shared.connector.connect(timeout)?;
                call(&client, timeout.map(|timeout| left(timeout, begun)))
            }
        })
    }

    /// Begins a call of the client, which may have to connect first, in what is left of the time.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        what: &'static str,
        timeout: Option<Duration>,
        begin: impl FnOnce(&Client, Option<Duration>, &Arc<Bell>) -> Result<Call<T>, Error> + Send + 'static,
        convert: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Coroutine {
        let shared = self.shared.clone();
        Coroutine::new(what, move |py, bell| {
            let begun = Instant::now();
            with_client(&shared, py, timeout, bell, move |py, client, bell| {
                let timeout = timeout.map(|timeout| left(timeout, begun));
                match client.and_then(|client| begin(&client, timeout, bell)) {
                    Ok(call) => Ok(Begun::call(call, convert)),
                    Err(error) => convert(py, Err(error)).map(Begun::Done),
                }
            })
        })
    }
}
