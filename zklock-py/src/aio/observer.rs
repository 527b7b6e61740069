//! Who holds a lock, in asyncio.

use super::lock::with_lock;
use crate::coroutine::{Begun, Bell, Coroutine};
use crate::error::{raised, unpicklable};
use crate::kind::Core;
use crate::observer::Lookout;
use crate::sync::lock_ignoring_poison;
use crate::value;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use zklock_core::blocking::Call;
use zklock_core::{Error, QueuedContender};

/// An ``Observer`` for asyncio, to be used with ``async for``. See ``AsyncLock.observe``.
///
/// >>> async def first():
/// ...     async for leader in zk.aio.election("/locks/doc").observe():
/// ...         return leader
/// >>> print(asyncio.run(first()))
/// None
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct AsyncObserver {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) lookout: Lookout,
    /// Looks whose coroutine was cancelled. What they see is for the next one: nothing is missed.
    left: Mutex<VecDeque<Look>>,
}

/// A look at the lock, and whom to wake.
struct Look {
    call: Call<Option<QueuedContender>>,
    bell: Arc<Mutex<Arc<Bell>>>,
}

/// A look that somebody waits for.
struct Waits {
    shared: Arc<Shared>,
    look: Option<Look>,
}

impl AsyncObserver {
    pub(crate) fn new(py: Python<'_>, core: &Arc<Core>) -> PyResult<Self> {
        Ok(Self { shared: Shared::new(py, core)? })
    }
}

impl Shared {
    pub(crate) fn new(py: Python<'_>, core: &Arc<Core>) -> PyResult<Arc<Self>> {
        let lookout = Lookout::new(py, core)?;
        Ok(Arc::new(Self { lookout, left: Mutex::default() }))
    }

    pub(crate) fn start(self: &Arc<Self>, what: &'static str) -> Coroutine {
        let shared = self.clone();
        Coroutine::new(what, move |py, bell| {
            let core = shared.lookout.core.clone();
            with_lock(&core, py, None, bell, move |py, lock, bell| {
                let look =
                    lock.and_then(|lock| shared.look(lock, bell)).map_err(|error| raised(py, &error))?;
                let mut waits = Waits { shared, look: Some(look) };
                Ok(Begun::pending(
                    move || waits.fetch(),
                    |py, holder| {
                        let holder = holder.map_err(|error| raised(py, &error))?;
                        holder.map_or_else(|| Ok(py.None()), |holder| value::contender(py, holder))
                    },
                ))
            })
        })
    }
}

impl Shared {
    fn look(&self, lock: &zklock_core::blocking::Lock, bell: &Arc<Bell>) -> Result<Look, Error> {
        if let Some(look) = lock_ignoring_poison(&self.left).pop_front() {
            *lock_ignoring_poison(&look.bell) = bell.clone();
            return Ok(look);
        }
        let bell = Arc::new(Mutex::new(bell.clone()));
        let awakens = bell.clone();
        let ready = move || {
            let bell = lock_ignoring_poison(&awakens).clone();
            bell.ringer()();
        };
        Ok(Look { call: self.lookout.observer(lock)?.start_next(ready)?, bell })
    }
}

impl Waits {
    fn fetch(&mut self) -> Option<Result<Option<QueuedContender>, Error>> {
        let result = self.look.as_ref()?.call.fetch()?;
        self.look = None;
        Some(result)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(look) = self.look.take() {
            lock_ignoring_poison(&self.shared.left).push_back(look);
        }
    }
}

#[pymethods]
impl AsyncObserver {
    /// Who holds the lock now, and when awaited again, as soon as that changes. As ``Observer.next``; for a bound of time
    /// there is ``asyncio.wait_for``. Where it is cancelled, the next one tells what this one would have.
    fn next(&self) -> Coroutine {
        self.shared.start("AsyncObserver.next")
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(&self) -> Coroutine {
        self.shared.start("AsyncObserver.__anext__")
    }

    fn __repr__(&self) -> String {
        format!("<zklock.AsyncObserver of {:?}>", self.shared.lookout.core.path)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Observer", "make one in each process"))
    }
}
