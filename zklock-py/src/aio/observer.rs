//! Reports who holds a lock, in asyncio.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::coroutine::Coroutine;
use crate::guest::error::unpicklable;
use crate::shared::lock::SharedLock;
use crate::shared::observer::SharedObserver;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;

/// An ``Observer`` for asyncio. Use it with ``async for``. See ``AsyncLock.observe``.
///
/// >>> async def first():
/// ...     async for leader in zk.aio.election("/locks/doc").observe():
/// ...         return leader
/// >>> print(asyncio.run(first()))
/// None
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct AsyncObserver {
    anchor: Py<CallbackAnchor>,
    shared: Arc<SharedObserver>,
}

impl AsyncObserver {
    pub(crate) fn new(py: Python<'_>, core: &Arc<SharedLock>) -> PyResult<Self> {
        Ok(Self { shared: SharedObserver::new(py, core)?, anchor: core.shared.callbacks.anchor(py)? })
    }
}

#[pymethods]
impl AsyncObserver {
    /// The first call returns the current holder of the lock. Each later call waits until the holder changes, and returns
    /// the new one. To limit the time, use ``asyncio.wait_for``. If a call is cancelled, the next one reports the change
    /// instead. See ``Observer.next``.
    fn next(&self) -> Coroutine {
        self.shared.start("AsyncObserver.next")
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(&self) -> Coroutine {
        self.shared.start("AsyncObserver.__anext__")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(&self) -> String {
        format!("<zklock.AsyncObserver of {:?}>", self.shared.core.path)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Observer", "make one in each process"))
    }
}
