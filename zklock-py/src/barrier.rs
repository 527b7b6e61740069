//! Barriers: callers wait until the barrier is removed.

use crate::aio::barrier::AsyncBarrier;
use crate::calls::anchor::CallbackAnchor;
use crate::calls::greenlet::Greenlet;
use crate::guest::error::unpicklable;
use crate::guest::number;
use crate::shared::barrier::SharedBarrier;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;
use zklock_core::ErrorKind;

/// A barrier: as long as its node exists, callers of ``wait`` wait. See ``Client.barrier``.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Barrier {
    anchor: Py<CallbackAnchor>,
    shared: Arc<SharedBarrier>,
}

impl Barrier {
    pub(crate) fn of(py: Python<'_>, shared: Arc<SharedBarrier>) -> PyResult<Py<Self>> {
        let anchor = shared.shared.callbacks.anchor(py)?;
        Py::new(py, Self { shared, anchor })
    }
}

#[pymethods]
impl Barrier {
    /// The path of the barrier's node.
    #[getter]
    fn path(&self) -> &str {
        self.shared.barrier.path()
    }

    /// This barrier for asyncio.
    #[getter]
    fn aio(&self, py: Python<'_>) -> PyResult<Py<AsyncBarrier>> {
        AsyncBarrier::of(py, self.shared.clone())
    }

    /// Sets the barrier, so that callers of ``wait`` wait. ``False`` if it was already set.
    fn set(&self, py: Python<'_>) -> PyResult<bool> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.aio(py)?.get().set())?.is_truthy(py);
        }
        self.shared.shared.call(py, || self.shared.barrier.set())
    }

    /// Removes the barrier, so that all waiters go on. ``False`` if it was not set.
    fn remove(&self, py: Python<'_>) -> PyResult<bool> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.aio(py)?.get().remove())?.is_truthy(py);
        }
        self.shared.shared.call(py, || self.shared.barrier.remove())
    }

    /// Whether the barrier is set. Others may set or remove it at the same moment.
    fn is_set(&self, py: Python<'_>) -> PyResult<bool> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.aio(py)?.get().is_set())?.is_truthy(py);
        }
        self.shared.shared.call(py, || self.shared.barrier.is_set())
    }

    /// Waits until the barrier is not set. Returns ``True`` then, at once if it is not set now, or ``False`` if the time is
    /// over. Raises ``Unreachable`` if there is no connection at that time.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.aio(py)?.get().wait(py, timeout)?)?.is_truthy(py);
        }
        let timeout = number::patience(py, timeout)?;
        self.shared.shared.call(py, || match self.shared.barrier.wait_within(timeout, None) {
            Err(error) if error.kind() == ErrorKind::Timeout => Ok(false),
            waited => waited.map(|()| true),
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(&self) -> String {
        format!("<zklock.Barrier {:?}>", self.shared.barrier.path())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Barrier", "send its path, and make a Client and a Barrier in each process"))
    }
}
