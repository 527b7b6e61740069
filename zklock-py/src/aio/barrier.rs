//! Barriers in asyncio.

use crate::barrier::Spot;
use crate::coroutine::{Begun, Bell, Coroutine};
use crate::error::{raised, unpicklable};
use crate::number;
use crate::patience::left;
use crate::value;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock_core::blocking::{Barrier, Call, Client};
use zklock_core::{Error, ErrorKind};

/// A ``Barrier`` for asyncio. ``AsyncClient.barrier`` gives one, and so does ``Barrier.aio``.
///
/// >>> async def come():
/// ...     return await zk.aio.barrier("/barriers/doc").wait(timeout=5)
/// >>> asyncio.run(come())
/// True
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct AsyncBarrier {
    spot: Arc<Spot>,
}

impl Spot {
    /// Begins a call of the client, which may have to connect first, in what is left of the time.
    pub(super) fn start<T: Send + 'static>(
        &self,
        what: &'static str,
        timeout: Option<Duration>,
        begin: impl FnOnce(&Client, Option<Duration>, &Arc<Bell>) -> Result<Call<T>, Error> + Send + 'static,
        convert: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Coroutine {
        let shared = self.shared.clone();
        Coroutine::new(what, move |py, bell| {
            let begun = Instant::now();
            let next = move |py: Python<'_>, client: Result<Client, Error>, bell: &Arc<Bell>| {
                let timeout =
                    timeout.map(|timeout| if timeout.is_zero() { timeout } else { left(timeout, begun) });
                match client.and_then(|client| begin(&client, timeout, bell)) {
                    Ok(call) => Ok(Begun::call(call, convert)),
                    Err(error) => convert(py, Err(error)).map(Begun::Done),
                }
            };
            if let Some(client) = shared.connector.connected() {
                return next(py, Ok(client), bell);
            }
            shared.prepare(py)?;
            // Who looks once waits as long as it takes to connect, for the connect timeout at most.
            let patience = timeout.filter(|timeout| !timeout.is_zero());
            let call = shared.connector.start(patience, bell.ringer()).map_err(|error| raised(py, &error))?;
            Ok(Begun::then(call, next))
        })
    }
}

impl AsyncBarrier {
    pub(crate) fn of(py: Python<'_>, spot: Arc<Spot>) -> PyResult<Py<Self>> {
        Py::new(py, Self { spot })
    }

    fn ask(
        &self,
        what: &'static str,
        ask: impl FnOnce(Barrier, &Arc<Bell>) -> Result<Call<bool>, Error> + Send + 'static,
    ) -> Coroutine {
        let path = self.spot.path.clone();
        let ask = move |client: &Client, _, bell: &Arc<Bell>| ask(client.barrier(&path)?, bell);
        self.spot.start(what, None, ask, |py, answer| {
            answer.map(|answer| value::boolean(py, answer)).map_err(|error| raised(py, &error))
        })
    }
}

#[pymethods]
impl AsyncBarrier {
    /// The path of its node.
    #[getter]
    fn path(&self) -> &str {
        &self.spot.path
    }

    /// Sets the barrier, so that who comes waits. As ``Barrier.set``.
    pub(crate) fn set(&self) -> Coroutine {
        self.ask("AsyncBarrier.set", |barrier, bell| barrier.start_set(bell.ringer()))
    }

    /// Removes the barrier, so that all who wait go on. As ``Barrier.remove``.
    pub(crate) fn remove(&self) -> Coroutine {
        self.ask("AsyncBarrier.remove", |barrier, bell| barrier.start_remove(bell.ringer()))
    }

    /// Whether it is set. As ``Barrier.is_set``.
    pub(crate) fn is_set(&self) -> Coroutine {
        self.ask("AsyncBarrier.is_set", |barrier, bell| barrier.start_is_set(bell.ringer()))
    }

    /// Waits until it is not set: ``True`` then, or ``False`` if the time is over. As ``Barrier.wait``.
    #[pyo3(signature = (timeout=None))]
    pub(crate) fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Coroutine> {
        let (path, timeout) = (self.spot.path.clone(), number::patience(py, timeout)?);
        let begin = move |client: &Client, left, bell: &Arc<Bell>| {
            client.barrier(&path)?.start_wait(left, bell.ringer())
        };
        Ok(self.spot.start(
            "AsyncBarrier.wait",
            timeout,
            begin,
            |py, waited: Result<(), Error>| match waited {
                Ok(()) => Ok(value::boolean(py, true)),
                Err(error) if error.kind() == ErrorKind::Timeout => Ok(value::boolean(py, false)),
                Err(error) => Err(raised(py, &error)),
            },
        ))
    }

    fn __repr__(&self) -> String {
        format!("<zklock.AsyncBarrier {:?}>", self.spot.path)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Barrier", "send its path, and make a Client and a Barrier in each process"))
    }
}
