//! Barriers in asyncio.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::bell::Bell;
use crate::calls::coroutine::Coroutine;
use crate::guest::error::{raised, unpicklable};
use crate::guest::number;
use crate::guest::value;
use crate::shared::barrier::SharedBarrier;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;
use zklock_core::{Barrier, Error, ErrorKind, Wait};

/// A ``Barrier`` for asyncio. Get one from ``AsyncClient.barrier`` or from ``Barrier.aio``.
///
/// >>> async def come():
/// ...     return await zk.aio.barrier("/barriers/doc").wait(timeout=5)
/// >>> asyncio.run(come())
/// True
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct AsyncBarrier {
    anchor: Py<CallbackAnchor>,
    shared: Arc<SharedBarrier>,
}

impl AsyncBarrier {
    pub(crate) fn of(py: Python<'_>, shared: Arc<SharedBarrier>) -> PyResult<Py<Self>> {
        let anchor = shared.shared.callbacks.anchor(py)?;
        Py::new(py, Self { shared, anchor })
    }

    fn ask<F>(&self, what: &'static str, ask: impl FnOnce(Arc<Barrier>) -> F + Send + 'static) -> Coroutine
    where
        F: Future<Output = Result<bool, Error>> + Send + 'static,
    {
        let barrier = self.shared.barrier.clone();
        let ask = move |bell: &Arc<Bell>| barrier.core().start(bell.ringer(), Wait::Forever, ask);
        self.shared.shared.coroutine(what, ask, |py, answer| {
            answer.map(|answer| value::boolean(py, answer)).map_err(|error| raised(py, &error))
        })
    }
}

#[pymethods]
impl AsyncBarrier {
    /// The path of the barrier's node.
    #[getter]
    fn path(&self) -> &str {
        self.shared.barrier.path()
    }

    /// Sets the barrier, so that callers of ``wait`` wait. See ``Barrier.set``.
    pub(crate) fn set(&self) -> Coroutine {
        self.ask("AsyncBarrier.set", |barrier| async move { barrier.set().await })
    }

    /// Removes the barrier, so that all waiters go on. See ``Barrier.remove``.
    pub(crate) fn remove(&self) -> Coroutine {
        self.ask("AsyncBarrier.remove", |barrier| async move { barrier.remove().await })
    }

    /// Whether the barrier is set. See ``Barrier.is_set``.
    pub(crate) fn is_set(&self) -> Coroutine {
        self.ask("AsyncBarrier.is_set", |barrier| async move { barrier.is_set().await })
    }

    /// Waits until the barrier is not set. Returns ``True`` then, or ``False`` if the time is over. See ``Barrier.wait``.
    #[pyo3(signature = (timeout=None))]
    pub(crate) fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Coroutine> {
        let (barrier, timeout) = (self.shared.barrier.clone(), number::patience(py, timeout)?);
        let begin = move |bell: &Arc<Bell>| {
            let wait = Wait::from(timeout);
            let gone = move |barrier: Arc<Barrier>| async move { barrier.wait_within(wait).await };
            barrier.core().start(bell.ringer(), wait, gone)
        };
        Ok(self.shared.shared.coroutine("AsyncBarrier.wait", begin, |py, waited: Result<(), Error>| {
            match waited {
                Ok(()) => Ok(value::boolean(py, true)),
                Err(error) if error.kind() == ErrorKind::Timeout => Ok(value::boolean(py, false)),
                Err(error) => Err(raised(py, &error)),
            }
        }))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(&self) -> String {
        format!("<zklock.AsyncBarrier {:?}>", self.shared.barrier.path())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Barrier", "send its path, and make a Client and a Barrier in each process"))
    }
}
