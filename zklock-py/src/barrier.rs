//! Barriers: callers wait until the barrier is removed.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::call::{Call, Timed};
use crate::client_inner::ClientInner;
use crate::guest::error::raised;
use crate::guest::number::{self, Timeout};
use crate::guest::value;
use crate::noun::{Class, Inner, noun};
use crate::verb::{Convert, Verb, boolean};
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use zklock::{Error, ErrorKind};

/// The common part.
pub(crate) struct BarrierInner {
    client: Arc<ClientInner>,
    core: zklock::Barrier,
}

impl Inner for BarrierInner {
    const UNPICKLABLE: (&'static str, &'static str) =
        ("Barrier", "send its path, and make a Client and a Barrier in each process");

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

    /// A call that gives yes or no.
    fn asking(&self, call: zklock::Call<bool>) -> Verb<zklock::Call<bool>, impl Convert<bool> + use<>> {
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

    both(BarrierInner) {
        /// The path of the barrier's node.
        #[getter]
        fn path(&self) -> &str {
            self.inner.core.path()
        }

        /// Sets the barrier, so that callers of ``wait`` wait. ``False`` if it was already set.
        fn set(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Self::make(py, "set", self.inner.asking(self.inner.core.set()))
        }

        /// Removes the barrier, so that all waiters go on. ``False`` if it was not set.
        fn remove(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Self::make(py, "remove", self.inner.asking(self.inner.core.remove()))
        }

        /// Whether the barrier is set. Others may set or remove it at the same moment.
        fn is_set(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Self::make(py, "is_set", self.inner.asking(self.inner.core.is_set()))
        }

        /// Waits until the barrier is not set. Returns ``True`` then, at once if it is not set now, or ``False`` if the time is
        /// over. Raises ``Unreachable`` if there is no connection at that time.
        #[pyo3(signature = (timeout=None))]
        fn wait(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Py<PyAny>> {
            Self::make(py, "wait", self.inner.wait(number::patience(py, timeout)?))
        }
    }

    blocking {
        /// This barrier for asyncio.
        #[getter]
        fn aio(&self, py: Python<'_>) -> PyResult<Py<AsyncBarrier>> {
            AsyncBarrier::of(py, self.inner.clone())
        }
    }

    asyncio {
        /// This barrier itself.
        #[getter]
        fn aio(slf: Py<Self>) -> Py<Self> {
            slf
        }
    }
}
