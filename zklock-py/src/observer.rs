//! Reports the holders of a lock, one after the other, without taking part.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::greenlet::Greenlet;
use crate::guest::error::{late, unpicklable};
use crate::guest::number;
use crate::guest::value;
use crate::shared::lock::SharedLock;
use crate::shared::observer::SharedObserver;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;

/// Reports who holds a lock: an iterator that gives a ``Contender``, or ``None`` while nobody holds the lock. See
/// ``Lock.observe``.
///
/// Changes in quick succession may be reported as one. While no server answers, it waits.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Observer {
    anchor: Py<CallbackAnchor>,
    shared: Arc<SharedObserver>,
}

impl Observer {
    pub(crate) fn new(py: Python<'_>, core: &Arc<SharedLock>) -> PyResult<Self> {
        Ok(Self { shared: SharedObserver::new(py, core)?, anchor: core.shared.callbacks.anchor(py)? })
    }
}

#[pymethods]
impl Observer {
    /// The first call returns the current holder of the lock. Each later call waits until the holder changes, and returns
    /// the new one.
    ///
    /// >>> observer = zk.election("/locks/doc").observe()
    /// >>> print(observer.next(timeout=5))
    /// None
    ///
    /// Raises ``Timeout`` if nothing changes within ``timeout`` seconds.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        let timeout = number::patience(py, timeout)?;
        if let Some(greenlet) = Greenlet::current(py)? {
            let look = greenlet.sit_through(self.shared.start("Observer.next"), timeout)?;
            let nothing = || format!("nothing changed within {:?}", timeout.unwrap_or_default());
            let seen = look.ok_or_else(|| late(py, nothing()))?;
            return Ok(if seen.is_none(py) { None } else { Some(seen) });
        }
        let holder = self.shared.next(py, timeout)?;
        holder.map(|holder| value::contender(py, holder)).transpose()
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    // Not an Option, because that would end the iteration.
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.next(py, None)?.unwrap_or_else(|| py.None()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(&self) -> String {
        format!("<zklock.Observer of {:?}>", self.shared.core.path)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Observer", "make one in each process"))
    }
}
