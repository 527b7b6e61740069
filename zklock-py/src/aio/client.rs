//! A client in asyncio.

use super::barrier::AsyncBarrier;
use super::double_barrier::AsyncDoubleBarrier;
use super::lock::AsyncLock;
use crate::calls::bell::Bell;
use crate::calls::coroutine::{Begun, Coroutine, nothing};
use crate::guest::error::raised;
use crate::guest::number;
use crate::settings::guardian;
use crate::shared::block::is_generator_exit;
use crate::shared::client::SharedClient;
use crate::shared::kinds::{BaseClient, Face};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use zklock_core::Wait;

/// A ``Client`` for asyncio. Get one with ``async with`` on a ``Client``, or from ``Client.aio``.
///
/// >>> async def report():
/// ...     async with zklock.Client(hosts) as zk:
/// ...         async with zk.mutex("/locks/doc", timeout=5) as hold:
/// ...             return hold.token > 0
/// >>> asyncio.run(report())
/// True
#[pyclass(frozen, extends = BaseClient, module = "zklock")]
pub(crate) struct AsyncClient;

/// The client for asyncio.
static ASYNCIO: Face = Face {
    lock: |py, core| AsyncLock::of(py, core).map(Py::into_any),
    barrier: |py, barrier| AsyncBarrier::of(py, barrier).map(Py::into_any),
    double_barrier: |py, barrier| AsyncDoubleBarrier::of(py, barrier).map(Py::into_any),
};

impl AsyncClient {
    pub(crate) fn of(py: Python<'_>, shared: Arc<SharedClient>) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(BaseClient::new(py, shared, &ASYNCIO)?).add_subclass(Self))
    }

    fn shared<'a>(slf: &'a Bound<'_, Self>) -> &'a Arc<SharedClient> {
        &slf.as_super().get().shared
    }
}

#[pymethods]
impl AsyncClient {
    /// Connects now, unless the client is already connected. See ``Client.connect``.
    #[pyo3(signature = (timeout=None))]
    pub(crate) fn connect(slf: &Bound<'_, Self>, timeout: Option<f64>) -> PyResult<Coroutine> {
        let (shared, timeout) = (Self::shared(slf).clone(), number::patience(slf.py(), timeout)?);
        let client = shared.client.clone();
        let begin = move |bell: &Arc<Bell>| client.start_connecting(Wait::at_most(timeout), bell.ringer());
        Ok(shared.coroutine("AsyncClient.connect", begin, |py, connected| nothing(py, connected.map(drop))))
    }

    /// Starts a guardian: if this process is killed, its locks are free at once. See ``Client.guard``.
    #[pyo3(signature = (command=None))]
    pub(crate) fn guard(slf: &Bound<'_, Self>, command: Option<PathBuf>) -> Coroutine {
        let shared = Self::shared(slf).clone();
        let client = shared.client.clone();
        let command = guardian::command(slf.py(), command);
        let begin = move |bell: &Arc<Bell>| client.start_guarding(command, bell.ringer());
        shared.coroutine("AsyncClient.guard", begin, nothing)
    }

    /// Starts to close the client at once; await it to wait until it is closed. See ``Client.close``.
    pub(crate) fn close(slf: &Bound<'_, Self>) -> PyResult<Coroutine> {
        let (py, shared) = (slf.py(), Self::shared(slf));
        shared.prepare_to_close(py);
        Coroutine::begun("AsyncClient.close", |bell| {
            let call = shared.client.start_close(bell.ringer()).map_err(|error| raised(py, &error))?;
            Ok(Begun::call(call, nothing))
        })
    }

    /// Writes the number of permits of semaphores with ``limit_at``. See ``Client.set_limit``.
    pub(crate) fn set_limit(slf: &Bound<'_, Self>, path: String, limit: i64) -> PyResult<Coroutine> {
        let (shared, limit) = (Self::shared(slf).clone(), number::count(slf.py(), "limit", limit)?);
        let client = shared.client.clone();
        let begin = move |bell: &Arc<Bell>| client.start_set_limit(path, limit, bell.ringer());
        Ok(shared.coroutine("AsyncClient.set_limit", begin, nothing))
    }

    pub(crate) fn __aenter__(slf: Py<Self>) -> PyResult<Coroutine> {
        Ok(Coroutine::new("AsyncClient.__aenter__", move |py, bell| {
            let shared = Self::shared(slf.bind(py));
            shared.prepare(py)?;
            let call = shared.client.start_connecting(Wait::Forever, bell.ringer());
            let call = call.map_err(|error| raised(py, &error))?;
            Ok(Begun::call(call, move |py, connected| match connected {
                Ok(_) => Ok(slf.into_any()),
                Err(error) => Err(raised(py, &error)),
            }))
        }))
    }

    #[pyo3(signature = (kind, exception, traceback))]
    pub(crate) fn __aexit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let _ = (exception, traceback);
        let py = kind.py();
        if is_generator_exit(kind)? {
            // The event loop is closing this coroutine, so it must not wait any longer.
            drop(Self::close(slf));
            return Ok(Coroutine::done("AsyncClient.__aexit__", py.None()));
        }
        match Self::close(slf) {
            Err(_) if !kind.is_none() => Ok(Coroutine::done("AsyncClient.__aexit__", py.None())),
            closing => closing,
        }
    }
}
