//! What the observers of both faces share.

use crate::connecting::with_lock;
use crate::coroutine::{Begun, Bell, Coroutine};
use crate::error::raised;
use crate::shared_lock::SharedLock;
use crate::sync::lock_ignoring_poison;
use crate::value;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use zklock_core::blocking::{Lock, Observer};
use zklock_core::face::Call;
use zklock_core::{Error, QueuedContender, Wait};

/// An observer, which connects when it is first asked.
pub(crate) struct SharedObserver {
    pub(crate) core: Arc<SharedLock>,
    observer: OnceLock<Observer>,
    /// Looks whose coroutine was cancelled. What they see is for the next one: nothing is missed.
    left: Mutex<VecDeque<Look>>,
}

/// A look at the lock, and whom to wake.
struct Look {
    call: Call<Option<QueuedContender>>,
    bell: Arc<Mutex<Arc<Bell>>>,
}

/// A look that a coroutine waits for.
struct Waits {
    shared: Arc<SharedObserver>,
    look: Option<Look>,
}

impl SharedObserver {
    pub(crate) fn new(py: Python<'_>, core: &Arc<SharedLock>) -> PyResult<Arc<Self>> {
        core.refuse_observers(py)?;
        Ok(Arc::new(Self { core: core.clone(), observer: OnceLock::new(), left: Mutex::default() }))
    }

    pub(crate) fn next(&self, timeout: Option<Duration>) -> Result<Option<QueuedContender>, Error> {
        let wait = Wait::at_most(timeout);
        self.observer(self.core.connect(wait)?)?.next_within(wait)
    }

    pub(crate) fn start(self: &Arc<Self>, what: &'static str) -> Coroutine {
        let shared = self.clone();
        Coroutine::new(what, move |py, bell| {
            let core = shared.core.clone();
            with_lock(&core, py, Wait::Forever, bell, move |py, lock, bell| {
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

    fn observer(&self, lock: &Lock) -> Result<&Observer, Error> {
        if let Some(observer) = self.observer.get() {
            return Ok(observer);
        }
        let observer = lock.observe()?;
        Ok(self.observer.get_or_init(|| observer))
    }

    fn look(&self, lock: &Lock, bell: &Arc<Bell>) -> Result<Look, Error> {
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
        let observer = self.observer(lock)?.core();
        let call = observer.start(ready, |observer| async move { observer.lock().await.next().await })?;
        Ok(Look { call, bell })
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
