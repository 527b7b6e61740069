//! A lock in asyncio.

use super::hold::{AsyncHold, leave, release};
use super::observer::AsyncObserver;
use super::{is_generator_exit, owner};
use crate::block::Block;
use crate::coroutine::{Begun, Bell, Coroutine};
use crate::error::{closed, invalid, raised};
use crate::greenlet::Greenlet;
use crate::kind::Core;
use crate::lock::BaseLock;
use crate::log;
use crate::patience::{Blocking, Given, Patience, Seconds, left};
use crate::place::Held;
use crate::sync::lock_ignoring_poison;
use crate::{task, value};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use zklock_core::blocking::{Call, Hold, Lock};
use zklock_core::{Error, ErrorKind, Owner};

/// A ``Lock`` for asyncio. ``AsyncClient.mutex`` gives one, and so does ``Lock.aio``.
///
/// >>> async def once():
/// ...     lock = zk.aio.mutex("/locks/doc", timeout=5)
/// ...     if await lock.acquire(blocking=False):
/// ...         await lock.release()
/// ...     return lock.locked()
/// >>> asyncio.run(once())
/// False
///
/// The lock belongs to the task that calls ``acquire``, ``hold`` or ``async with``, be it that another awaits it, as
/// ``asyncio.wait_for`` and ``create_task`` do. Where that task holds it already, it waits until somebody releases it, or if
/// the lock is reentrant, it is counted. Keep a reference to a task that waits: the loop has only a weak one. A wait that is
/// cancelled leaves the queue; if the lock was granted meanwhile, it is released.
#[pyclass(frozen, extends = BaseLock, module = "zklock")]
pub(crate) struct AsyncLock;

/// Which answer is wanted.
#[derive(Clone, Copy)]
enum Wanted {
    /// `True`, or `False` if the time was over.
    Bool,
    /// `True` or an exception.
    True,
    Value,
    Block(Block),
}

impl Core {
    fn start(
        self: &Arc<Self>,
        py: Python<'_>,
        what: &'static str,
        timeout: Option<Duration>,
        wanted: Wanted,
    ) -> PyResult<Coroutine> {
        // The task that calls is the owner, whoever awaits.
        let task = task::current(py)?;
        if task.is_none() && self.is_reentrant {
            let message = "a reentrant lock belongs to the task that acquires it: call this within one";
            return Err(invalid(py, message.to_owned()));
        }
        let owner = task.unwrap_or_else(Owner::unique);
        let deliver = Deliver { core: self.clone(), owner, wanted };
        Ok(Coroutine::new(what, move |py, bell| {
            if let Some(held) = deliver.core.again(deliver.owner).map_err(|error| raised(py, &error))? {
                return deliver.held(py, held).map(Begun::Done);
            }
            let (core, owner) = (deliver.core.clone(), deliver.owner);
            core.begin(py, owner, timeout, bell, move |py, granted| deliver.granted(py, granted))
        }))
    }

    /// Waits as a greenlet; an error of its own is that the time was over.
    pub(crate) fn sit_through(
        self: &Arc<Self>,
        greenlet: &Greenlet<'_>,
        timeout: Option<Duration>,
    ) -> PyResult<Result<Arc<Held>, Error>> {
        let (core, owner) = (self.clone(), greenlet.owner);
        let again = core.again(owner).map_err(|error| raised(greenlet.py(), &error))?;
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
            Some(Ok(hold)) => Ok(Ok(Held::new(hold, owner, self.is_reentrant))),
            Some(Err(error)) if error.kind() == ErrorKind::Timeout => Ok(Err(error)),
            Some(Err(error)) => Err(raised(greenlet.py(), &error)),
            None => Err(closed(greenlet.py(), "the wait has ended without an answer".to_owned())),
        }
    }

    /// Begins to wait for the lock.
    fn begin(
        self: &Arc<Self>,
        py: Python<'_>,
        owner: Owner,
        timeout: Option<Duration>,
        bell: &Arc<Bell>,
        deliver: impl FnOnce(Python<'_>, Result<Hold, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Begun> {
        let begun = Instant::now();
        // A try waits as long as it takes to connect, for the connect timeout at most.
        let patience = timeout.filter(|timeout| !timeout.is_zero());
        with_lock(self, py, patience, bell, move |py, lock, bell| {
            // One deadline, of which connecting may have taken a part.
            let timeout = patience.map(|timeout| left(timeout, begun)).or(timeout);
            match lock.and_then(|lock| lock.start_as(owner, timeout, bell.ringer())) {
                Ok(ticket) => Ok(Begun::pending(move || ticket.fetch(), deliver)),
                Err(error) => deliver(py, Err(error)).map(Begun::Done),
            }
        })
    }

    /// `__aenter__`.
    pub(crate) fn enter(self: &Arc<Self>, py: Python<'_>) -> PyResult<Coroutine> {
        self.start(py, "AsyncLock.__aenter__", self.timeout, Wanted::Block(Block::of_caller(py)))
    }

    /// `__aexit__`.
    pub(crate) fn exit(&self, kind: &Bound<'_, PyAny>, exception: &Bound<'_, PyAny>) -> PyResult<Coroutine> {
        let py = kind.py();
        match self.place.leave(owner(py)?, Block::of_caller(py)) {
            Some(entry) => {
                let left = leave(kind, exception, &entry.held);
                self.place.keep_on(entry, is_generator_exit(kind)?);
                left
            }
            None if kind.is_none() => Err(self.place.released_before(py)),
            None => Ok(Coroutine::done("AsyncLock.__aexit__", value::boolean(py, false))),
        }
    }
}

/// Begins something with the lock, which may have to connect first.
pub(super) fn with_lock(
    core: &Arc<Core>,
    py: Python<'_>,
    timeout: Option<Duration>,
    bell: &Arc<Bell>,
    next: impl FnOnce(Python<'_>, Result<&Lock, Error>, &Arc<Bell>) -> PyResult<Begun> + Send + 'static,
) -> PyResult<Begun> {
    if let Some(lock) = core.connected() {
        return next(py, Ok(lock), bell);
    }
    core.shared.prepare(py)?;
    let call = core.shared.connector.start(timeout, bell.ringer()).map_err(|error| raised(py, &error))?;
    let core = core.clone();
    Ok(Begun::then(call, move |py, client, bell| {
        next(py, client.and_then(|client| core.connect_to(&client)), bell)
    }))
}

struct Deliver {
    core: Arc<Core>,
    owner: Owner,
    wanted: Wanted,
}

impl Deliver {
    fn granted(&self, py: Python<'_>, granted: Result<Hold, Error>) -> PyResult<Py<PyAny>> {
        match (granted, self.wanted) {
            (Ok(hold), _) => self.held(py, Held::new(hold, self.owner, self.core.is_reentrant)),
            (Err(error), Wanted::Bool) if error.kind() == ErrorKind::Timeout => {
                log::inform(py, &error.to_string());
                Ok(value::boolean(py, false))
            }
            (Err(error), _) => Err(raised(py, &error)),
        }
    }

    fn held(&self, py: Python<'_>, held: Arc<Held>) -> PyResult<Py<PyAny>> {
        let place = &self.core.place;
        match self.wanted {
            Wanted::Bool | Wanted::True => {
                place.keep(&held, None);
                Ok(value::boolean(py, true))
            }
            Wanted::Value => {
                place.know(&held);
                Ok(AsyncHold::of(py, held, true)?.into_any())
            }
            Wanted::Block(block) => {
                let hold = AsyncHold::of(py, held.clone(), false)?;
                place.keep(&held, Some(block));
                Ok(hold.into_any())
            }
        }
    }
}

impl AsyncLock {
    pub(crate) fn of(py: Python<'_>, core: Arc<Core>) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(BaseLock { core }).add_subclass(Self))
    }

    fn core<'a>(slf: &'a Bound<'_, Self>) -> &'a Arc<Core> {
        &slf.as_super().get().core
    }

    /// A question to the ensemble.
    fn ask<T: Send + 'static>(
        slf: &Bound<'_, Self>,
        what: &'static str,
        ask: impl FnOnce(&Lock, &Arc<Bell>) -> Result<Call<T>, Error> + Send + 'static,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Coroutine {
        let core = Self::core(slf).clone();
        Coroutine::new(what, move |py, bell| {
            with_lock(&core, py, None, bell, |py, lock, bell| {
                let call = lock.and_then(|lock| ask(lock, bell)).map_err(|error| raised(py, &error))?;
                Ok(Begun::call(call, |py, answer| convert(py, answer.map_err(|error| raised(py, &error))?)))
            })
        })
    }
}

#[pymethods]
impl AsyncLock {
    /// Acquires the lock, and says whether it did. As ``Lock.acquire``.
    #[pyo3(signature = (blocking=Blocking(true), timeout=Seconds::Usual), text_signature = "($self, blocking=True, timeout=...)")]
    #[expect(clippy::needless_pass_by_value, reason = "what Python gives is extracted by value")]
    fn acquire(slf: &Bound<'_, Self>, blocking: Blocking, timeout: Seconds) -> PyResult<Coroutine> {
        let core = Self::core(slf);
        let Patience { timeout, raises } = Patience::new(core.timeout, &blocking, &timeout)?;
        let wanted = if raises { Wanted::True } else { Wanted::Bool };
        core.start(slf.py(), "AsyncLock.acquire", timeout, wanted)
    }

    /// Acquires the lock and gives the hold as a value, which is to be released. As ``Lock.hold``.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn hold(slf: &Bound<'_, Self>, timeout: Given) -> PyResult<Coroutine> {
        let (py, core) = (slf.py(), Self::core(slf));
        core.start(py, "AsyncLock.hold", timeout.patience(py, core.timeout)?, Wanted::Value)
    }

    /// Releases what this task acquired last, or if the lock is not reentrant, what anybody did. As ``Lock.release``;
    /// it begins at once, and to await it is to wait until the ensemble has confirmed it.
    fn release(slf: &Bound<'_, Self>) -> PyResult<Coroutine> {
        let (py, core) = (slf.py(), Self::core(slf));
        let owner = owner(py)?;
        let held = core.place.release(py, owner, core.is_reentrant)?;
        release(py, &held, owner)
    }

    /// What this task acquired last with ``acquire`` or ``async with`` and has not released yet, or ``None``.
    #[getter]
    fn current(slf: &Bound<'_, Self>) -> PyResult<Option<Py<AsyncHold>>> {
        let py = slf.py();
        let held = Self::core(slf).place.current(owner(py)?);
        held.map(|held| AsyncHold::of(py, held, false)).transpose()
    }

    /// Who is in the queue, the holders first, of whatever library: a list of ``Contender``. As ``Lock.contenders``.
    pub(crate) fn contenders(slf: &Bound<'_, Self>) -> Coroutine {
        let ask = |lock: &Lock, bell: &Arc<Bell>| lock.start_contenders(bell.ringer());
        Self::ask(slf, "AsyncLock.contenders", ask, value::contenders)
    }

    /// Takes a contender out of the queue by deleting its node. As ``Lock.evict``, also in what that breaks.
    pub(crate) fn evict(slf: &Bound<'_, Self>, node: String) -> Coroutine {
        let ask = move |lock: &Lock, bell: &Arc<Bell>| lock.start_evict(&node, bell.ringer());
        Self::ask(slf, "AsyncLock.evict", ask, |py, was_there| Ok(value::boolean(py, was_there)))
    }

    /// Takes the lock away from all who hold it, and says who they were. As ``Lock.break_lock``, also in what that
    /// breaks.
    pub(crate) fn break_lock(slf: &Bound<'_, Self>) -> Coroutine {
        let ask = |lock: &Lock, bell: &Arc<Bell>| lock.start_break_lock(bell.ringer());
        Self::ask(slf, "AsyncLock.break_lock", ask, value::contenders)
    }

    /// Observes who holds the lock, without taking part: of an election, who leads. As ``Lock.observe``, with
    /// ``async for``.
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
