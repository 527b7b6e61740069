//! What the barriers of both faces share.

use crate::connecting::with_client;
use crate::coroutine::{Begun, Bell, Coroutine};
use crate::error::raised;
use crate::shared_client::SharedClient;
use crate::wait::detached;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use zklock_core::blocking::Client;
use zklock_core::face::Call;
use zklock_core::{Error, Wait, check_lock_path};

/// A barrier at a path, which its client need not have connected to.
pub(crate) struct SharedBarrier {
    pub(crate) shared: Arc<SharedClient>,
    pub(crate) path: String,
}

impl SharedBarrier {
    pub(crate) fn new(py: Python<'_>, shared: &Arc<SharedClient>, path: &str) -> PyResult<Arc<Self>> {
        check_lock_path(path).map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self { shared: shared.clone(), path: path.to_owned() }))
    }

    /// Does something with the client, which may have to connect first, in what is left of the time.
    pub(crate) fn call<T: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
        call: impl FnOnce(&Client, Wait) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        if self.shared.connector.connected().is_none() {
            self.shared.prepare(py)?;
        }
        // One deadline, of which connecting may take a part.
        let wait = Wait::from(timeout);
        detached(py, || call(&self.shared.connector.connect(wait)?, wait))
    }

    /// Begins a call of the client, which may have to connect first, in what is left of the time.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        what: &'static str,
        timeout: Option<Duration>,
        begin: impl FnOnce(&Client, Wait, &Arc<Bell>) -> Result<Call<T>, Error> + Send + 'static,
        convert: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Coroutine {
        let shared = self.shared.clone();
        Coroutine::new(what, move |py, bell| {
            // One deadline, of which connecting may take a part.
            let wait = Wait::from(timeout);
            with_client(&shared, py, wait, bell, move |py, client, bell| {
                match client.and_then(|client| begin(&client, wait, bell)) {
                    Ok(call) => Ok(Begun::call(call, convert)),
                    Err(error) => convert(py, Err(error)).map(Begun::Done),
                }
            })
        })
    }
}
