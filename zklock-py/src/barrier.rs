//! Barriers: many wait until one lets them go on.

use crate::aio::barrier::AsyncBarrier;
use crate::error::{raised, unpicklable};
use crate::greenlet::Greenlet;
use crate::number;
use crate::patience::left;
use crate::place::Shared;
use crate::wait::detached;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock_core::{Error, ErrorKind, blocking, check_lock_path};

/// What both faces of a barrier share.
pub(crate) struct Spot {
    pub(crate) shared: Arc<Shared>,
    pub(crate) path: String,
}

/// A barrier: a node, and who comes to it waits until it is gone. See ``Client.barrier``.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Barrier {
    spot: Arc<Spot>,
}

impl Spot {
    pub(crate) fn new(py: Python<'_>, shared: &Arc<Shared>, path: &str) -> PyResult<Arc<Self>> {
        check_lock_path(path).map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self { shared: shared.clone(), path: path.to_owned() }))
    }

    /// Does something with the client, which may have to connect first, in what is left of the time.
    pub(crate) fn call<T: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
        call: impl FnOnce(&blocking::Client, Option<Duration>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        if self.shared.connector.connected().is_none() {
            self.shared.prepare(py)?;
        }
        let begun = Instant::now();
        detached(py, || match timeout {
            // Who looks once waits as long as it takes to connect, for the connect timeout at most.
            Some(Duration::ZERO) => call(&self.shared.connector.connect(None)?, timeout),
            timeout => {
                let client = self.shared.connector.connect(timeout)?;
                call(&client, timeout.map(|timeout| left(timeout, begun)))
            }
        })
    }
}

impl Barrier {
    pub(crate) fn of(py: Python<'_>, spot: Arc<Spot>) -> PyResult<Py<Self>> {
        Py::new(py, Self { spot })
    }
}

#[pymethods]
impl Barrier {
    /// The path of its node.
    #[getter]
    fn path(&self) -> &str {
        &self.spot.path
    }

    /// The same barrier for asyncio.
    #[getter]
    fn aio(&self, py: Python<'_>) -> PyResult<Py<AsyncBarrier>> {
        AsyncBarrier::of(py, self.spot.clone())
    }

    /// Sets the barrier, so that who comes waits. ``False`` if it was set.
    fn set(&self, py: Python<'_>) -> PyResult<bool> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.aio(py)?.get().set())?.is_truthy(py);
        }
        self.spot.call(py, None, |client, _| client.barrier(&self.spot.path)?.set())
    }

    /// Removes the barrier, so that all who wait go on. ``False`` if it was not set.
    fn remove(&self, py: Python<'_>) -> PyResult<bool> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.aio(py)?.get().remove())?.is_truthy(py);
        }
        self.spot.call(py, None, |client, _| client.barrier(&self.spot.path)?.remove())
    }

    /// Whether it is set. Others may set or remove it at the same moment.
    fn is_set(&self, py: Python<'_>) -> PyResult<bool> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.aio(py)?.get().is_set())?.is_truthy(py);
        }
        self.spot.call(py, None, |client, _| client.barrier(&self.spot.path)?.is_set())
    }

    /// Waits until it is not set: ``True`` then, at once where it is not, or ``False`` if the time is over.
    /// Raises ``Unreachable`` if there is no connection then.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.aio(py)?.get().wait(py, timeout)?)?.is_truthy(py);
        }
        let timeout = number::patience(py, timeout)?;
        self.spot.call(py, timeout, |client, left| {
            let barrier = client.barrier(&self.spot.path)?;
            let waited = left.map_or_else(|| barrier.wait(), |left| barrier.wait_timeout(left));
            match waited {
                Err(error) if error.kind() == ErrorKind::Timeout => Ok(false),
                waited => waited.map(|()| true),
            }
        })
    }

    fn __repr__(&self) -> String {
        format!("<zklock.Barrier {:?}>", self.spot.path)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Barrier", "send its path, and make a Client and a Barrier in each process"))
    }
}
