//! The common part of blocking and asyncio observers.

use crate::calls::bell::Bell;
use crate::calls::coroutine::{Begun, Coroutine, Started};
use crate::guest::error::raised;
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::value;
use crate::shared::lock::SharedLock;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zklock_core::blocking::Observer;
use zklock_core::face::Call;
use zklock_core::{Error, QueuedContender};

/// An observer of a lock.
pub(crate) struct SharedObserver {
    pub(crate) core: Arc<SharedLock>,
    observer: Observer,
    /// Looks whose coroutine was cancelled. The next call gets their results, so nothing is missed.
    left: Mutex<VecDeque<Look>>,
}

/// A look at the lock, and the bell to ring.
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
        let observer = core.lock.observe().map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self { core: core.clone(), observer, left: Mutex::default() }))
    }

    pub(crate) fn next(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
    ) -> PyResult<Option<QueuedContender>> {
        self.core.shared.call(py, || self.observer.next(timeout))
    }

    pub(crate) fn start(self: &Arc<Self>, what: &'static str) -> Coroutine {
        let shared = self.clone();
        Coroutine::new(what, move |py, bell| {
            shared.core.shared.prepare(py)?;
            let look = shared.look(bell).map_err(|error| raised(py, &error))?;
            Ok(Begun::call(Waits { shared, look: Some(look) }, |py, holder| {
                let holder = holder.map_err(|error| raised(py, &error))?;
                holder.map_or_else(|| Ok(py.None()), |holder| value::contender(py, holder))
            }))
        })
        .keeping(&self.core.shared.callbacks.anchored)
    }

    fn look(&self, bell: &Arc<Bell>) -> Result<Look, Error> {
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
        let call = self.observer.start(ready)?;
        Ok(Look { call, bell })
    }
}

impl Started for Waits {
    type Answer = Option<QueuedContender>;

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
