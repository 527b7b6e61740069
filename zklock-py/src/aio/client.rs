//! A client in asyncio.

use super::lock::AsyncLock;
use crate::client::{describe, mutex, stats};
use crate::coroutine::{Begun, Coroutine, nothing};
use crate::error::{raised, unpicklable};
use crate::log;
use crate::place::Shared;
use crate::value;
use pyo3::prelude::*;
use std::sync::Arc;

/// A ``Client`` for asyncio. ``async with`` gives one, and so does ``Client.aio``.
///
/// >>> async def report():
/// ...     async with zklock.Client(hosts) as zk:
/// ...         async with zk.mutex("/locks/doc", timeout=5) as hold:
/// ...             return hold.token > 0
/// >>> asyncio.run(report())
/// True
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct AsyncClient {
    pub(crate) shared: Arc<Shared>,
}

#[pymethods]
impl AsyncClient {
    /// Connects, unless that has been done. As ``Client.connect``.
    #[pyo3(signature = (timeout=None))]
    fn connect(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Coroutine> {
        let (shared, timeout) = (self.shared.clone(), value::patience(py, timeout)?);
        Ok(Coroutine::new("AsyncClient.connect", move |py, bell| {
            log::prepare(py)?;
            let call = shared.connector.start(timeout, bell.ringer()).map_err(|error| raised(py, &error))?;
            Ok(Begun::call(call, |py, connected| nothing(py, connected.map(drop))))
        }))
    }

    /// Closes the client. As ``Client.close``; it begins at once, and to await it is to wait for the end.
    fn close(&self, py: Python<'_>) -> PyResult<Coroutine> {
        Coroutine::begun("AsyncClient.close", |bell| {
            let call =
                self.shared.connector.start_close(bell.ringer()).map_err(|error| raised(py, &error))?;
            Ok(call.map_or_else(|| Begun::Done(py.None()), |call| Begun::call(call, nothing)))
        })
    }

    /// The mutex at ``path``. As ``Client.mutex``.
    #[pyo3(signature = (path, *, timeout=None, reentrant=false))]
    fn mutex(
        &self,
        py: Python<'_>,
        path: &str,
        timeout: Option<f64>,
        reentrant: bool,
    ) -> PyResult<AsyncLock> {
        mutex(py, &self.shared, path, timeout, reentrant).map(|core| AsyncLock { core })
    }

    /// What this client has done, and what it still owes: a ``Stats``.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        stats(py, &self.shared)
    }

    /// The number of the session, if there is one now.
    #[getter]
    fn session_id(&self) -> Option<i64> {
        self.shared.connector.connected()?.session_id()
    }

    /// The session timeout in seconds, as the servers granted it, if there is a session now.
    #[getter]
    fn session_timeout(&self) -> Option<f64> {
        Some(self.shared.connector.connected()?.session_timeout()?.as_secs_f64())
    }

    pub(crate) fn __aenter__(slf: Bound<'_, Self>) -> PyResult<Coroutine> {
        let client = slf.unbind();
        Ok(Coroutine::new("AsyncClient.__aenter__", move |py, bell| {
            log::prepare(py)?;
            let connector = &client.get().shared.connector;
            let call = connector.start(None, bell.ringer()).map_err(|error| raised(py, &error))?;
            Ok(Begun::call(call, move |py, connected| match connected {
                Ok(_) => Ok(client.into_any()),
                Err(error) => Err(raised(py, &error)),
            }))
        }))
    }

    #[pyo3(signature = (kind, exception, traceback))]
    pub(crate) fn __aexit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let _ = (exception, traceback);
        let py = kind.py();
        if super::is_generator_exit(kind)? {
            // Its coroutine is being closed, and must not wait any more.
            drop(self.close(py));
            return Ok(Coroutine::done("AsyncClient.__aexit__", py.None()));
        }
        match self.close(py) {
            Err(_) if !kind.is_none() => Ok(Coroutine::done("AsyncClient.__aexit__", py.None())),
            closing => closing,
        }
    }

    fn __repr__(&self) -> String {
        describe(&self.shared, "AsyncClient")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Client", "make one in each process: zklock.Client(hosts)"))
    }
}
