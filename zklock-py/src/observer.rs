//! Reports the holders of a lock, one after the other, without taking part.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::call::{Call, Started};
use crate::calls::coroutine::Coroutine;
use crate::calls::waker::Waker;
use crate::client_inner::ClientInner;
use crate::guest::error::raised;
use crate::guest::number::{self, Timeout};
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::value;
use crate::noun::{Inner, noun};
use crate::verb::{Convert, Verb, or_raise};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use zklock::further::Wait;
use zklock::{Error, ErrorKind, QueuedContender};

/// The common part.
pub(crate) struct ObserverInner {
    client: Arc<ClientInner>,
    path: String,
    core: zklock::further::Observer,
    /// Looks whose coroutine was cancelled. The next call gets their results, so nothing is missed.
    left: Mutex<VecDeque<Look>>,
}

/// A look at the lock, and the waker of the call that waits for it.
struct Look {
    started: zklock::further::Started<Option<QueuedContender>>,
    waker: Arc<Mutex<Arc<Waker>>>,
}

/// A call of `next`.
struct Next {
    inner: Arc<ObserverInner>,
    timeout: Option<Duration>,
}

/// A call of `next` that goes on in the background.
struct Looking {
    inner: Arc<ObserverInner>,
    look: Option<Look>,
    timeout: Option<Duration>,
    deadline: Option<Instant>,
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
        let (client, path) = (client.clone(), lock.path().to_owned());
        Ok(Arc::new(Self { client, path, core, left: Mutex::default() }))
    }

    fn next(
        self: &Arc<Self>,
        timeout: Option<Duration>,
    ) -> Verb<Next, impl Convert<Option<QueuedContender>> + use<>> {
        let holder = or_raise(|py, holder: Option<QueuedContender>| {
            holder.map_or_else(|| Ok(py.None()), |holder| value::contender(py, holder))
        });
        Verb::new(Next { inner: self.clone(), timeout }, holder).of_client(&self.client)
    }

    fn look(&self, waker: &Arc<Waker>) -> Result<Look, Error> {
        if let Some(look) = lock_ignoring_poison(&self.left).pop_front() {
            *lock_ignoring_poison(&look.waker) = waker.clone();
            return Ok(look);
        }
        let waker = Arc::new(Mutex::new(waker.clone()));
        let wakes = waker.clone();
        let ready = move || {
            let waker = lock_ignoring_poison(&wakes).clone();
            waker.wake();
        };
        Ok(Look { started: self.core.next().detach(ready)?, waker })
    }
}

impl Call for Next {
    type Answer = Option<QueuedContender>;
    type Started = Looking;

    fn wait(self) -> Result<Option<QueuedContender>, Error> {
        let next = self.inner.core.next().within(Wait::at_most(self.timeout)).wait();
        next.map_err(
            |error| if error.kind() == ErrorKind::Timeout { nothing_changed(self.timeout) } else { error },
        )
    }

    fn detach(self, waker: &Arc<Waker>) -> Result<Looking, Error> {
        let Self { inner, timeout } = self;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let look = Some(inner.look(waker)?);
        Ok(Looking { inner, look, timeout, deadline })
    }
}

fn nothing_changed(timeout: Option<Duration>) -> Error {
    Error::new(ErrorKind::Timeout, format!("nothing changed within {:?}", timeout.unwrap_or_default()))
}

impl Started for Looking {
    type Answer = Option<QueuedContender>;

    fn fetch(&mut self) -> Option<Result<Option<QueuedContender>, Error>> {
        let look = self.look.as_ref()?;
        if let Some(result) = look.started.fetch() {
            self.look = None;
            return Some(result);
        }
        let is_late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
        is_late.then(|| Err(nothing_changed(self.timeout)))
    }

    fn due(&self) -> Option<Instant> {
        self.deadline
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        if let Some(look) = self.look.take() {
            lock_ignoring_poison(&self.inner.left).push_back(look);
        }
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
