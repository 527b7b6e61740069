//! Barriers: callers wait until the barrier is removed.

use crate::calls::anchor::CallbackAnchor;
use crate::client_inner::ClientInner;
use crate::guest::error::raised;
use crate::guest::number::{self, Timeout};
use crate::guest::value;
use crate::noun::{Class, Inner, noun};
use crate::verb::{Verb, boolean, in_time};
use pyo3::prelude::*;
use std::sync::Arc;

/// The common part.
pub(crate) struct BarrierInner {
    client: Arc<ClientInner>,
    core: zklock::further::Barrier,
}

impl Inner for BarrierInner {
    fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        self.client.callbacks.anchor(py)
    }

    fn describe(&self, class: &str) -> String {
        format!("<zklock.{class} {:?}>", self.core.path())
    }
}

impl BarrierInner {
    pub(crate) fn new(py: Python<'_>, client: &Arc<ClientInner>, path: &str) -> PyResult<Arc<Self>> {
        let core = client.core.barrier(path).map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self { client: client.clone(), core }))
    }
}

noun! {
    /// A barrier: while its node exists, callers of ``wait`` wait. See ``Client.barrier``.
    struct Barrier;

    /// A ``Barrier`` for asyncio. Get one from ``AsyncClient.barrier`` or from ``Barrier.aio``.
    ///
    /// >>> async def come():
    /// ...     return await zk.aio.barrier("/barriers/doc").wait(timeout=5)
    /// >>> asyncio.run(come())
    /// True
    struct AsyncBarrier;

    both(BarrierInner: aio) {
        /// The path of the barrier's node.
        #[getter]
        fn path(&self) -> &str {
            self.inner.core.path()
        }

        /// Sets the barrier, so that callers of ``wait`` wait. ``False`` if it was already set.
        fn set(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Self::make(py, "set", Verb::new(self.inner.core.set(), boolean).of_client(&self.inner.client))
        }

        /// Removes the barrier, so that all waiters go on. ``False`` if it was not set.
        fn remove(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Self::make(py, "remove", Verb::new(self.inner.core.remove(), boolean).of_client(&self.inner.client))
        }

        /// Whether the barrier is set. Others may set or remove it at the same moment.
        fn is_set(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Self::make(py, "is_set", Verb::new(self.inner.core.is_set(), boolean).of_client(&self.inner.client))
        }

        /// Waits until the barrier is not set. Returns ``True`` then, at once if it is not set now, or ``False`` if the time is
        /// over. Raises ``Unreachable`` if there is no connection at that time.
        #[pyo3(signature = (timeout=None))]
        fn wait(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Py<PyAny>> {
            let (core, timeout) = (self.inner.core.clone(), number::patience(py, timeout)?);
            let gone = |py: Python<'_>, waited| Ok(value::boolean(py, in_time(py, waited)?.is_some()));
            let wait = Verb::timed(move || core.wait_within(timeout), gone);
            Self::make(py, "wait", wait.of_client(&self.inner.client))
        }
    }
}
