//! The common part of blocking and asyncio locks.

use crate::calls::anchor::CallbackAnchor;
use crate::guest::error::unpicklable;
use crate::shared::lock::SharedLock;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;

/// The methods that a `Lock` and an `AsyncLock` share.
#[pyclass(frozen, subclass, weakref, module = "zklock")]
pub(crate) struct BaseLock {
    anchor: Py<CallbackAnchor>,
    pub(crate) core: Arc<SharedLock>,
}

impl BaseLock {
    pub(crate) fn new(py: Python<'_>, core: Arc<SharedLock>) -> PyResult<Self> {
        let anchor = core.shared.callbacks.anchor(py)?;
        Ok(Self { core, anchor })
    }
}

#[pymethods]
impl BaseLock {
    /// The path of the lock, or all the paths of a set of locks.
    #[getter]
    fn path(&self) -> &str {
        &self.core.path
    }

    /// Whether this client holds the lock. It does not ask the servers: to see other holders, use ``contenders``.
    fn locked(&self) -> bool {
        !self.core.kept.held().is_empty()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.get().core.describe(&slf.get_type().name()?.to_cow()?))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Lock", "send its path, and make a Client and a Lock in each process"))
    }
}
