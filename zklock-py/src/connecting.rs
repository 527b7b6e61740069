//! What begins when there is a client: at once, or when it has connected.

use crate::coroutine::{Begun, Bell};
use crate::error::raised;
use crate::shared_client::SharedClient;
use crate::shared_lock::SharedLock;
use pyo3::prelude::*;
use std::sync::Arc;
use zklock_core::blocking::{Client, Lock};
use zklock_core::{Error, Wait};

/// Begins something with the client. A try waits as long as it takes to connect, for the connect timeout at most.
pub(crate) fn with_client(
    shared: &SharedClient,
    py: Python<'_>,
    wait: Wait,
    bell: &Arc<Bell>,
    next: impl FnOnce(Python<'_>, Result<Client, Error>, &Arc<Bell>) -> PyResult<Begun> + Send + 'static,
) -> PyResult<Begun> {
    if let Some(client) = shared.connector.connected() {
        return next(py, Ok(client), bell);
    }
    shared.prepare(py)?;
    let call = shared.connector.start(wait, bell.ringer()).map_err(|error| raised(py, &error))?;
    Ok(Begun::then(call, next))
}

/// The same with the lock.
pub(crate) fn with_lock(
    core: &Arc<SharedLock>,
    py: Python<'_>,
    wait: Wait,
    bell: &Arc<Bell>,
    next: impl FnOnce(Python<'_>, Result<&Lock, Error>, &Arc<Bell>) -> PyResult<Begun> + Send + 'static,
) -> PyResult<Begun> {
    if let Some(lock) = core.connected() {
        return next(py, Ok(lock), bell);
    }
    let lock = core.clone();
    with_client(&core.shared, py, wait, bell, move |py, client, bell| {
        next(py, client.and_then(|client| lock.connect_to(&client)), bell)
    })
}
