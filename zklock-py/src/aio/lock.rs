//! A lock in asyncio.

use super::hold::{AsyncHold, leave, release};
use super::observer::AsyncObserver;
use crate::calls::bell::Bell;
use crate::calls::coroutine::{Begun, Coroutine};
use crate::calls::greenlet::Greenlet;
use crate::calls::task::{self, current_or_unique};
use crate::guest::error::{closed, invalid, raised};
use crate::guest::log;
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::value;
use crate::shared::base_lock::BaseLock;
use crate::shared::block::{Block, is_generator_exit};
use crate::shared::hold::SharedHold;
use crate::shared::lock::SharedLock;
use crate::shared::patience::{Blocking, Given, Patience, Seconds};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zklock_core::blocking::Hold;
use zklock_core::{Error, ErrorKind, Lock, Owner, Wait};

/// A ``Lock`` for asyncio. Get one from ``AsyncClient.mutex`` and its siblings, or from ``Lock.aio``.
///
/// >>> async def once():
/// ...     lock = zk.aio.mutex("/locks/doc", timeout=5)
/// ...     if await lock.acquire(blocking=False):
/// ...         await lock.release()
/// ...     return lock.locked()
/// >>> asyncio.run(once())
/// False
///
/// The lock belongs to the task that calls ``acquire``, ``hold`` or ``async with``, even if another task awaits the
/// result, as ``asyncio.wait_for`` and ``create_task`` do. If that task already holds the lock, it waits until somebody
/// releases it; if the lock is reentrant, it gets another hold at once. Keep a reference to a task that waits, because
/// the event loop only has a weak one. If a wait is cancelled, it leaves the queue, and a lock that was granted
/// meanwhile is released.
#[pyclass(frozen, extends = BaseLock, module = "zklock")]
pub(crate) struct AsyncLock;

/// The form of the answer.
#[derive(Clone, Copy)]
enum Wanted {
    /// `True`, or `False` if the time ran out.
    Bool,
    /// `True` or an exception.
    True,
    Value,
    Block(Block),
}

impl SharedLock {
    fn start(
        self: &Arc<Self>,
        py: Python<'_>,
        what: &'static str,
        timeout: Option<Duration>,
        wanted: Wanted,
    ) -> PyResult<Coroutine> {
        // The task that makes the call is the owner, even if another task awaits it.
        let task = task::current(py)?;
        if task.is_none() && self.is_reentrant {
            let message = "a reentrant lock belongs to the task that acquires it: call this within one";
            return Err(invalid(py, message.to_owned()));
        }
        let owner = task.unwrap_or_else(Owner::unique);
        let deliver = Deliver { core: self.clone(), owner, wanted };
        Ok(Coroutine::new(what, move |py, bell| {
            if let Some(held) = deliver.core.at_once(deliver.owner).map_err(|error| raised(py, &error))? {
                return deliver.held(py, held).map(Begun::Done);
            }
            let (core, owner) = (deliver.core.clone(), deliver.owner);
            core.begin(py, owner, timeout, bell, move |py, granted| deliver.granted(py, granted))
        })
        .keeping(&self.shared.callbacks.anchored))
    }

    /// Waits as a greenlet. An error of its own means that the time ran out.
    pub(crate) fn sit_through(
        self: &Arc<Self>,
        greenlet: &Greenlet<'_>,
        timeout: Option<Duration>,
    ) -> PyResult<Result<Arc<SharedHold>, Error>> {
        let (core, owner) = (self.clone(), greenlet.owner);
        let again = core.at_once(owner).map_err(|error| raised(greenlet.py(), &error))?;
        if let Some(held) = again {
            return Ok(Ok(held));
        }
        let answer = Arc::new(Mutex::new(None));
        let deliver = Arc::clone(&answer);
        greenlet.wait_for(Coroutine::new("Lock.acquire", move |py, bell| {
            core.begin(py, owner, timeout, bell, move |py, granted| {
                *lock_ignoring_poison(&deliver) = Some(granted);
                Ok(py.None())
            })
        }))?;
        let granted = lock_ignoring_poison(&answer).take();
        match granted {
            Some(Ok(hold)) => Ok(Ok(self.granted(hold, owner))),
            Some(Err(error)) if error.kind() == ErrorKind::Timeout => Ok(Err(error)),
            Some(Err(error)) => Err(raised(greenlet.py(), &error)),
            None => Err(closed(greenlet.py(), "the wait has ended without an answer".to_owned())),
        }
    }

    /// Starts to wait for the lock.
    fn begin(
        self: &Arc<Self>,
        py: Python<'_>,
        owner: Owner,
        timeout: Option<Duration>,
        bell: &Arc<Bell>,
        deliver: impl FnOnce(Python<'_>, Result<Hold, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Begun> {
        // One deadline for everything. Connecting may take a part of it.
        let wait = Wait::from(timeout);
        self.shared.prepare(py)?;
        match self.lock.start(owner, wait, bell.ringer()) {
            Ok(ticket) => Ok(Begun::call(ticket, deliver)),
            Err(error) => deliver(py, Err(error)).map(Begun::Done),
        }
    }

    /// `__aenter__`.
    pub(crate) fn enter(self: &Arc<Self>, py: Python<'_>) -> PyResult<Coroutine> {
        self.start(py, "AsyncLock.__aenter__", self.timeout, Wanted::Block(Block::of_caller(py)))
    }

    /// `__aexit__`.
    pub(crate) fn exit(&self, kind: &Bound<'_, PyAny>, exception: &Bound<'_, PyAny>) -> PyResult<Coroutine> {
        let py = kind.py();
        match self.kept.leave(current_or_unique(py)?, Block::of_caller(py)) {
            Some(entry) => {
                let left = leave(kind, exception, &entry.held);
                self.kept.keep_on(entry, is_generator_exit(kind)?);
                left
            }
            None if kind.is_none() => Err(self.kept.released_before(py)),
            None => Ok(Coroutine::done("AsyncLock.__aexit__", value::boolean(py, false))),
        }
    }
}

struct Deliver {
    core: Arc<SharedLock>,
    owner: Owner,
    wanted: Wanted,
}

impl Deliver {
    fn granted(&self, py: Python<'_>, granted: Result<Hold, Error>) -> PyResult<Py<PyAny>> {
        match (granted, self.wanted) {
            (Ok(hold), _) => self.held(py, self.core.granted(hold, self.owner)),
            (Err(error), Wanted::Bool) if error.kind() == ErrorKind::Timeout => {
                log::inform(py, &error.to_string());
                Ok(value::boolean(py, false))
            }
            (Err(error), _) => Err(raised(py, &error)),
        }
    }

    fn held(&self, py: Python<'_>, held: Arc<SharedHold>) -> PyResult<Py<PyAny>> {
        let kept = &self.core.kept;
        match self.wanted {
            Wanted::Bool | Wanted::True => {
                kept.keep(&held, None);
                Ok(value::boolean(py, true))
            }
            Wanted::Value => {
                kept.know(&held);
                Ok(AsyncHold::of(py, held, true)?.into_any())
            }
            Wanted::Block(block) => {
                let hold = AsyncHold::of(py, held.clone(), false)?;
                kept.keep(&held, Some(block));
                Ok(hold.into_any())
            }
        }
    }
}

impl AsyncLock {
    pub(crate) fn of(py: Python<'_>, core: Arc<SharedLock>) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(BaseLock::new(py, core)?).add_subclass(Self))
    }

    fn core<'a>(slf: &'a Bound<'_, Self>) -> &'a Arc<SharedLock> {
        &slf.as_super().get().core
    }

    /// Makes a coroutine that queries the servers.
    fn ask<T, F>(
        slf: &Bound<'_, Self>,
        what: &'static str,
        ask: impl FnOnce(Arc<Lock>) -> F + Send + 'static,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Coroutine
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let core = Self::core(slf);
        let lock = core.lock.clone();
        let begin = move |bell: &Arc<Bell>| lock.core().start(bell.ringer(), Wait::Forever, ask);
        core.shared
            .coroutine(what, begin, |py, answer| convert(py, answer.map_err(|error| raised(py, &error))?))
    }
}

#[pymethods]
impl AsyncLock {
    /// Acquires the lock, and returns whether it did. See ``Lock.acquire``.
    #[pyo3(signature = (blocking=Blocking(true), timeout=Seconds::Usual), text_signature = "($self, blocking=True, timeout=...)")]
    #[expect(clippy::needless_pass_by_value, reason = "what Python gives is extracted by value")]
    fn acquire(slf: &Bound<'_, Self>, blocking: Blocking, timeout: Seconds) -> PyResult<Coroutine> {
        let core = Self::core(slf);
        let Patience { timeout, raises } = Patience::new(core.timeout, &blocking, &timeout)?;
        let wanted = if raises { Wanted::True } else { Wanted::Bool };
        core.start(slf.py(), "AsyncLock.acquire", timeout, wanted)
    }

    /// Acquires the lock and returns the hold, which you must release. See ``Lock.hold``.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn hold(slf: &Bound<'_, Self>, timeout: Given) -> PyResult<Coroutine> {
        let (py, core) = (slf.py(), Self::core(slf));
        core.start(py, "AsyncLock.hold", timeout.patience(py, core.timeout)?, Wanted::Value)
    }

    /// Releases what this task acquired last. If it has acquired nothing and the lock is not reentrant, releases what
    /// another did. The release starts at once; await it to wait until the servers have confirmed it. See ``Lock.release``.
    fn release(slf: &Bound<'_, Self>) -> PyResult<Coroutine> {
        let (py, core) = (slf.py(), Self::core(slf));
        let owner = current_or_unique(py)?;
        let held = core.kept.release(py, owner, core.is_reentrant)?;
        release(py, &held, owner)
    }

    /// The hold that this task acquired last with ``acquire`` or ``async with`` and has not released yet, or ``None``.
    #[getter]
    fn current(slf: &Bound<'_, Self>) -> PyResult<Option<Py<AsyncHold>>> {
        let py = slf.py();
        let held = Self::core(slf).kept.current(current_or_unique(py)?);
        held.map(|held| AsyncHold::of(py, held, false)).transpose()
    }

    /// The contenders in the queue, holders first: a list of ``Contender``. See ``Lock.contenders``.
    pub(crate) fn contenders(slf: &Bound<'_, Self>) -> Coroutine {
        let ask = |lock: Arc<Lock>| async move { lock.contenders().await };
        Self::ask(slf, "AsyncLock.contenders", ask, value::contenders)
    }

    /// Takes a contender out of the queue by deleting its node. See ``Lock.evict`` for what this breaks.
    pub(crate) fn evict(slf: &Bound<'_, Self>, node: String) -> Coroutine {
        let ask = |lock: Arc<Lock>| async move { lock.evict(&node).await };
        Self::ask(slf, "AsyncLock.evict", ask, |py, was_there| Ok(value::boolean(py, was_there)))
    }

    /// Takes the lock away from all its holders, and returns a list of them. See ``Lock.break_lock`` for what this breaks.
    pub(crate) fn break_lock(slf: &Bound<'_, Self>) -> Coroutine {
        let ask = |lock: Arc<Lock>| async move { lock.break_lock().await };
        Self::ask(slf, "AsyncLock.break_lock", ask, value::contenders)
    }

    /// Asks all holders to release the lock, and returns a list of them. See ``Lock.revoke``.
    pub(crate) fn revoke(slf: &Bound<'_, Self>) -> Coroutine {
        let ask = |lock: Arc<Lock>| async move { lock.revoke().await };
        Self::ask(slf, "AsyncLock.revoke", ask, value::contenders)
    }

    /// Observes who holds the lock or, for an election, who leads, without taking part. Use it with ``async for``. See
    /// ``Lock.observe``.
    fn observe(slf: &Bound<'_, Self>) -> PyResult<AsyncObserver> {
        AsyncObserver::new(slf.py(), Self::core(slf))
    }

    fn __aenter__(slf: &Bound<'_, Self>) -> PyResult<Coroutine> {
        Self::core(slf).enter(slf.py())
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __aexit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let _ = traceback;
        Self::core(slf).exit(kind, exception)
    }
}
