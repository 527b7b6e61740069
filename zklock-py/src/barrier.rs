//! Barriers: callers wait until the barrier is removed.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::call::{Call, Timed};
use crate::calls::coroutine::Coroutine;
use crate::client_inner::ClientInner;
use crate::guest::error::{raised, unpicklable};
use crate::guest::number::{self, Timeout};
use crate::guest::value;
use crate::verb::{Convert, Verb, boolean};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;
use std::time::Duration;
use zklock_core::{Error, ErrorKind};

/// A barrier: while its node exists, callers of ``wait`` wait. See ``Client.barrier``.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Barrier {
    anchor: Py<CallbackAnchor>,
    inner: Arc<BarrierInner>,
}

/// A ``Barrier`` for asyncio. Get one from ``AsyncClient.barrier`` or from ``Barrier.aio``.
///
/// >>> async def come():
/// ...     return await zk.aio.barrier("/barriers/doc").wait(timeout=5)
/// >>> asyncio.run(come())
/// True
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct AsyncBarrier {
    anchor: Py<CallbackAnchor>,
    inner: Arc<BarrierInner>,
}

/// The common part.
pub(crate) struct BarrierInner {
    client: Arc<ClientInner>,
    core: zklock_core::Barrier,
}

impl BarrierInner {
    pub(crate) fn new(py: Python<'_>, client: &Arc<ClientInner>, path: &str) -> PyResult<Arc<Self>> {
        let core = client.core.barrier(path).map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self { client: client.clone(), core }))
    }

    fn set(&self) -> Verb<zklock_core::Call<bool>, impl Convert<bool> + use<>> {
        self.verb(self.core.set())
    }

    fn remove(&self) -> Verb<zklock_core::Call<bool>, impl Convert<bool> + use<>> {
        self.verb(self.core.remove())
    }

    fn is_set(&self) -> Verb<zklock_core::Call<bool>, impl Convert<bool> + use<>> {
        self.verb(self.core.is_set())
    }

    fn verb(
        &self,
        call: zklock_core::Call<bool>,
    ) -> Verb<zklock_core::Call<bool>, impl Convert<bool> + use<>> {
        Verb::new(call, boolean).of_client(&self.client)
    }

    fn wait(
        &self,
        timeout: Option<Duration>,
    ) -> Verb<impl Call<Answer = ()> + use<>, impl Convert<()> + use<>> {
        let gone = |py: Python<'_>, waited: Result<(), Error>| match waited {
            Ok(()) => Ok(value::boolean(py, true)),
            Err(error) if error.kind() == ErrorKind::Timeout => Ok(value::boolean(py, false)),
            Err(error) => Err(raised(py, &error)),
        };
        let core = self.core.clone();
        Verb::new(Timed::new(move || core.wait_within(timeout)), gone).of_client(&self.client)
    }
}

impl Barrier {
    pub(crate) fn of(py: Python<'_>, inner: Arc<BarrierInner>) -> PyResult<Py<Self>> {
        let anchor = inner.client.callbacks.anchor(py)?;
        Py::new(py, Self { anchor, inner })
    }
}

#[pymethods]
impl Barrier {
    /// The path of the barrier's node.
    #[getter]
    fn path(&self) -> &str {
        self.inner.core.path()
    }

    /// This barrier for asyncio.
    #[getter]
    fn aio(&self, py: Python<'_>) -> PyResult<Py<AsyncBarrier>> {
        AsyncBarrier::of(py, self.inner.clone())
    }

    /// Sets the barrier, so that callers of ``wait`` wait. ``False`` if it was already set.
    fn set(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.inner.set().run(py)
    }

    /// Removes the barrier, so that all waiters go on. ``False`` if it was not set.
    fn remove(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.inner.remove().run(py)
    }

    /// Whether the barrier is set. Others may set or remove it at the same moment.
    fn is_set(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.inner.is_set().run(py)
    }

    /// Waits until the barrier is not set. Returns ``True`` then, at once if it is not set now, or ``False`` if the time is
    /// over. Raises ``Unreachable`` if there is no connection at that time.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Py<PyAny>> {
        self.inner.wait(number::patience(py, timeout)?).run(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(&self) -> String {
        format!("<zklock.Barrier {:?}>", self.inner.core.path())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Barrier", "send its path, and make a Client and a Barrier in each process"))
    }
}

impl AsyncBarrier {
    pub(crate) fn of(py: Python<'_>, inner: Arc<BarrierInner>) -> PyResult<Py<Self>> {
        let anchor = inner.client.callbacks.anchor(py)?;
        Py::new(py, Self { anchor, inner })
    }
}

#[pymethods]
impl AsyncBarrier {
    /// The path of the barrier's node.
    #[getter]
    fn path(&self) -> &str {
        self.inner.core.path()
    }

    /// This barrier itself.
    #[getter]
    fn aio(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Sets the barrier, so that callers of ``wait`` wait. See ``Barrier.set``.
    fn set(&self) -> Coroutine {
        self.inner.set().coroutine("AsyncBarrier.set")
    }

    /// Removes the barrier, so that all waiters go on. See ``Barrier.remove``.
    fn remove(&self) -> Coroutine {
        self.inner.remove().coroutine("AsyncBarrier.remove")
    }

    /// Whether the barrier is set. See ``Barrier.is_set``.
    fn is_set(&self) -> Coroutine {
        self.inner.is_set().coroutine("AsyncBarrier.is_set")
    }

    /// Waits until the barrier is not set. Returns ``True`` then, or ``False`` if the time is over. See ``Barrier.wait``.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Coroutine> {
        Ok(self.inner.wait(number::patience(py, timeout)?).coroutine("AsyncBarrier.wait"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(&self) -> String {
        format!("<zklock.AsyncBarrier {:?}>", self.inner.core.path())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Barrier", "send its path, and make a Client and a Barrier in each process"))
    }
}
