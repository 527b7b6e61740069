//! A lock in asyncio.

use super::hold::{AsyncHold, leave, release};
use super::{is_generator_exit, owner};
use crate::coroutine::{Begun, Bell, Coroutine};
use crate::error::{invalid, raised, unpicklable};
use crate::lock::{Blocking, Core, Given, Patience, Seconds, left};
use crate::log;
use crate::place::Held;
use crate::{task, value};
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock_core::blocking::{Hold, Lock};
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
/// ``asyncio.wait_for`` and ``create_task`` do. Where that task holds it already, ``Deadlock`` is raised, or if it is reentrant, it
/// is counted. Keep a reference to a task that waits: the loop has only a weak one. A wait that is cancelled leaves the queue; if the lock was granted meanwhile, it is released.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct AsyncLock {
    pub(crate) core: Arc<Core>,
}

/// Which answer is wanted.
#[derive(Clone, Copy)]
enum Wanted {
    /// `True`, or `False` if the time was over.
    Bool,
    /// `True` or an exception.
    True,
    Value,
    Block,
}

impl AsyncLock {
    fn wait(
        &self,
        py: Python<'_>,
        what: &'static str,
        timeout: Option<Duration>,
        wanted: Wanted,
    ) -> PyResult<Coroutine> {
        // The task that calls is the owner, whoever awaits.
        let task = task::current(py)?;
        if task.is_none() && self.core.is_reentrant {
            let message = "a reentrant lock belongs to the task that acquires it: call this within one";
            return Err(invalid(py, message.to_owned()));
        }
        let owner = task.unwrap_or_else(Owner::unique);
        let deliver = Deliver { core: self.core.clone(), owner, wanted };
        Ok(Coroutine::new(what, move |py, bell| {
            if let Some(held) = deliver.core.again(deliver.owner).map_err(|error| raised(py, &error))? {
                return deliver.held(py, held).map(Begun::Done);
            }
            let begun = Instant::now();
            // Who tries once waits as long as it takes to connect.
            let patience = timeout.filter(|timeout| !timeout.is_zero());
            let core = deliver.core.clone();
            with_lock(&core, py, patience, bell, move |py, lock, bell| {
                // One deadline, of which connecting may have taken a part.
                let timeout = patience.map(|timeout| left(timeout, begun)).or(timeout);
                match lock.and_then(|lock| lock.start_as(deliver.owner, timeout, bell.ringer())) {
                    Ok(ticket) => {
                        let granted = move |py: Python<'_>, granted| deliver.granted(py, granted);
                        Ok(Begun::pending(move || ticket.fetch(), granted))
                    }
                    Err(error) => deliver.granted(py, Err(error)).map(Begun::Done),
                }
            })
        }))
    }
}

/// Begins something with the lock, which may have to connect first.
fn with_lock(
    core: &Arc<Core>,
    py: Python<'_>,
    timeout: Option<Duration>,
    bell: &Arc<Bell>,
    next: impl FnOnce(Python<'_>, Result<&Lock, Error>, &Arc<Bell>) -> PyResult<Begun> + Send + 'static,
) -> PyResult<Begun> {
    if let Some(lock) = core.connected() {
        return next(py, Ok(lock), bell);
    }
    log::prepare(py)?;
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
                place.keep(&held, false);
                Ok(value::boolean(py, true))
            }
            Wanted::Value => {
                place.know(&held);
                Ok(AsyncHold::of(py, held, true)?.into_any())
            }
            Wanted::Block => {
                let hold = AsyncHold::of(py, held.clone(), false)?;
                place.keep(&held, true);
                Ok(hold.into_any())
            }
        }
    }
}

#[pymethods]
impl AsyncLock {
    /// The path of the lock.
    #[getter]
    fn path(&self) -> &str {
        &self.core.place.path
    }

    /// Acquires the lock, and says whether it did. As ``Lock.acquire``.
    #[pyo3(signature = (blocking=Blocking(true), timeout=Seconds::Usual), text_signature = "($self, blocking=True, timeout=...)")]
    #[expect(clippy::needless_pass_by_value, reason = "what Python gives is extracted by value")]
    fn acquire(&self, py: Python<'_>, blocking: Blocking, timeout: Seconds) -> PyResult<Coroutine> {
        let Patience { timeout, raises } = self.core.patience(&blocking, &timeout)?;
        self.wait(py, "AsyncLock.acquire", timeout, if raises { Wanted::True } else { Wanted::Bool })
    }

    /// Acquires the lock and gives the hold as a value, which is to be released. As ``Lock.hold``.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn hold(&self, py: Python<'_>, timeout: Given) -> PyResult<Coroutine> {
        let timeout = timeout.patience(py, &self.core)?;
        self.wait(py, "AsyncLock.hold", timeout, Wanted::Value)
    }

    /// Releases what this task acquired last, or if the lock is not reentrant, what anybody did. As ``Lock.release``;
    /// it begins at once, and to await it is to wait until the ensemble has confirmed it.
    fn release(&self, py: Python<'_>) -> PyResult<Coroutine> {
        let owner = owner(py)?;
        let held = self.core.place.release(py, owner, self.core.is_reentrant)?;
        release(py, &held, owner)
    }

    /// Whether this client holds the lock. It asks nobody: for others see ``contenders``.
    fn locked(&self) -> bool {
        !self.core.place.held().is_empty()
    }

    /// What this task acquired last with ``acquire`` or ``async with`` and has not released yet, or ``None``.
    #[getter]
    fn current(&self, py: Python<'_>) -> PyResult<Option<Py<AsyncHold>>> {
        let held = self.core.place.current(owner(py)?);
        held.map(|held| AsyncHold::of(py, held, false)).transpose()
    }

    /// Who is in the queue, the holder first, of whatever library: a list of ``Contender``.
    fn contenders(&self) -> Coroutine {
        let core = self.core.clone();
        Coroutine::new("AsyncLock.contenders", move |py, bell| {
            with_lock(&core, py, None, bell, |py, lock, bell| {
                let call = lock.and_then(|lock| lock.start_contenders(bell.ringer()));
                Ok(Begun::call(call.map_err(|error| raised(py, &error))?, |py, queue| {
                    value::contenders(py, queue.map_err(|error| raised(py, &error))?)
                }))
            })
        })
    }

    pub(crate) fn __aenter__(&self, py: Python<'_>) -> PyResult<Coroutine> {
        self.wait(py, "AsyncLock.__aenter__", self.core.timeout, Wanted::Block)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    pub(crate) fn __aexit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let _ = (exception, traceback);
        let py = kind.py();
        match self.core.place.leave(owner(py)?) {
            Some(held) => {
                let left = leave(kind, &held);
                self.core.place.keep_on(&held, is_generator_exit(kind)?);
                left
            }
            None if kind.is_none() => Err(self.core.place.released_before(py)),
            None => Ok(Coroutine::done("AsyncLock.__aexit__", value::boolean(py, false))),
        }
    }

    fn __repr__(&self) -> String {
        self.core.describe("AsyncLock")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Lock", "send its path, and make a Client and a Lock in each process"))
    }
}
