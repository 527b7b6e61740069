//! Reports the holders of a lock, one after the other, without taking part.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::coroutine::Coroutine;
use crate::client_inner::ClientInner;
use crate::guest::error::{late, raised};
use crate::guest::number::{self, Timeout};
use crate::guest::value;
use crate::noun::{Inner, noun};
use crate::verb::{Convert, Verb, in_time};
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use zklock::Error;
use zklock::face::Report;
use zklock::further::Wait;

/// The common part.
pub(crate) struct ObserverInner {
    client: Arc<ClientInner>,
    path: String,
    core: zklock::further::Observer,
}

impl Inner for ObserverInner {
    fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        self.client.callbacks.anchor(py)
    }

    fn describe(&self, class: &str) -> String {
        format!("<zklock.{class} of {:?}>", self.path)
    }
}

impl ObserverInner {
    pub(crate) fn new(py: Python<'_>, client: &Arc<ClientInner>, lock: &zklock::Lock) -> PyResult<Arc<Self>> {
        let core = lock.observe().map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self { client: client.clone(), path: lock.path().to_owned(), core }))
    }

    fn next(&self, timeout: Option<Duration>) -> Verb<Report, impl Convert<Report> + use<>> {
        let holder = move |py: Python<'_>, report: Result<Report, Error>| {
            let nothing = || late(py, format!("nothing changed within {:?}", timeout.unwrap_or_default()));
            let holder = in_time(py, report)?.ok_or_else(nothing)?.take();
            holder.map_or_else(|| Ok(py.None()), |holder| value::contender(py, holder))
        };
        let report = self.core.report().within(Wait::at_most(timeout));
        Verb::new(report, holder).of_client(&self.client)
    }
}

noun! {
    /// Reports who holds a lock: an iterator that gives a ``Contender``, or ``None`` while there is no holder. See
    /// ``Lock.observe``.
    ///
    /// Changes in quick succession may be reported as one. While no server answers, it waits.
    struct Observer;

    /// An ``Observer`` for asyncio. Use it with ``async for``. See ``AsyncLock.observe``.
    ///
    /// >>> async def first():
    /// ...     async for leader in zk.aio.election("/locks/doc").observe():
    /// ...         return leader
    /// >>> print(asyncio.run(first()))
    /// None
    struct AsyncObserver;

    both(ObserverInner) {}

    blocking {
        /// The first call returns the current holder of the lock. Each later call waits until the holder changes, and returns
        /// the new one.
        ///
        /// >>> observer = zk.election("/locks/doc").observe()
        /// >>> print(observer.next(timeout=5))
        /// None
        ///
        /// Raises ``Timeout`` if nothing changes within ``timeout`` seconds.
        #[pyo3(signature = (timeout=None))]
        fn next(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Py<PyAny>> {
            let timeout = number::patience(py, timeout)?;
            self.inner.next(timeout).run(py)
        }

        fn __iter__(slf: Py<Self>) -> Py<Self> {
            slf
        }

        fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            self.inner.next(None).run(py)
        }
    }

    asyncio {
        /// The first call returns the current holder of the lock. Each later call waits until the holder changes, and returns
        /// the new one. To limit the time, use ``asyncio.wait_for``. If a call is cancelled, the next one reports the change
        /// instead. See ``Observer.next``.
        fn next(&self) -> Coroutine {
            self.inner.next(None).coroutine("AsyncObserver.next")
        }

        fn __aiter__(slf: Py<Self>) -> Py<Self> {
            slf
        }

        fn __anext__(&self) -> Coroutine {
            self.inner.next(None).coroutine("AsyncObserver.__anext__")
        }
    }
}
