//! Greenlets: many callers in one thread.
//!
//! A greenlet cannot wait inside the core. A wait of the core has its state on the stack, other threads know its
//! address, and greenlets that take turns move each other's stacks away. So it makes the call that asyncio makes, which
//! waits in the background, and waits in the loop of gevent or eventlet until a descriptor is readable. If those do not
//! run there, it waits in `poll`, with its whole thread.

use crate::calls::coroutine::{Begun, Coroutine};
use crate::calls::task;
use crate::guest::dispatch::LOG;
use crate::guest::error::{refused, signalled};
use crate::guest::exit;
use crate::guest::patched::{has_loop, is_main, is_patched, modules};
use crate::guest::wait::Doorbell;
use pyo3::exceptions::PyInterruptedError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock_core::Owner;
use zklock_core::face::{Park, Parked};

/// The greenlet that makes the call.
pub(crate) struct Greenlet<'py> {
    py: Python<'py>,
    pub(crate) owner: Owner,
    /// How it waits so that others run.
    waits: Option<Bound<'py, PyAny>>,
}

/// Returns the owner that makes the call: a greenlet, otherwise the thread.
pub(crate) fn owner(py: Python<'_>) -> PyResult<Owner> {
    let Some(current) = current(py)? else { return Ok(Owner::current()) };
    owner_of(&current)
}

fn owner_of(greenlet: &Bound<'_, PyAny>) -> PyResult<Owner> {
    // The first greenlet of a thread is the thread itself.
    if greenlet.getattr(intern!(greenlet.py(), "parent"))?.is_none() {
        return Ok(Owner::current());
    }
    task::owner(greenlet)
}

/// Returns the current greenlet; `None` if greenlets are not in use.
fn current(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if CURRENT.get(py).is_none() {
        let Some(module) = modules(py)?.get_item(intern!(py, "greenlet"))? else { return Ok(None) };
        // Another thread may be importing it right now.
        let Some(current) = module.getattr_opt(intern!(py, "getcurrent"))? else { return Ok(None) };
        CURRENT.get_or_init(py, || current.unbind());
    }
    CURRENT.get(py).map(|current| current.bind(py).call0()).transpose()
}

impl<'py> Greenlet<'py> {
    /// Returns the calling greenlet; `None` if the thread itself should wait.
    pub(crate) fn current(py: Python<'py>) -> PyResult<Option<Self>> {
        let Some(current) = current(py)? else { return Ok(None) };
        let mut waits = None;
        if is_patched(py)? && (is_main() || has_loop(py)?) {
            let way = py.import("zklock._greenlets")?.call_method0(intern!(py, "waiter"))?;
            waits = Some(way).filter(|way| !way.is_none());
        }
        if waits.is_some() {
            // Python may have been patched since a client was made.
            LOG.start_in_a_greenlet(py)?;
        } else if current.getattr(intern!(py, "parent"))?.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { py, owner: owner_of(&current)?, waits }))
    }

    pub(crate) fn py(&self) -> Python<'py> {
        self.py
    }

    /// Waits for this coroutine.
    pub(crate) fn wait_for(&self, coroutine: Coroutine) -> PyResult<Py<PyAny>> {
        Ok(self.sit_through(coroutine, None)?.unwrap_or_else(|| self.py.None()))
    }

    /// Waits for this coroutine, up to a timeout; `None` if the time ran out, which also ends the coroutine's call.
    pub(crate) fn sit_through(
        &self,
        coroutine: Coroutine,
        timeout: Option<Duration>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let (mut pending, bell) = match coroutine.begin(self.py)? {
            (Begun::Done(value), _) => return Ok(Some(value)),
            // Dropping it ends the call, even if the greenlet is killed.
            (Begun::Pending(pending), bell) => (pending, bell),
        };
        let doorbell = self.doorbell()?;
        let mut in_time = true;
        loop {
            bell.listen_again();
            if let Some(result) = pending.fetch(self.py) {
                return result.map(Some);
            }
            if !in_time {
                return Ok(None);
            }
            if bell.ring_at(&doorbell) {
                // The call may have a deadline of its own.
                let due = pending.due().filter(|due| deadline.is_none_or(|deadline| *due < deadline));
                let is_woken = self.wait(&doorbell, due.or(deadline))?;
                in_time = is_woken || due.is_some();
            }
        }
    }

    fn doorbell(&self) -> PyResult<Arc<Doorbell>> {
        Doorbell::new().map(Arc::new).map_err(|error| {
            let message =
                format!("the system has no descriptor left ({error}): raise the limit of open files");
            refused(self.py, message)
        })
    }

    /// Waits until it rings; `false` if the time ran out.
    fn wait(&self, doorbell: &Arc<Doorbell>, deadline: Option<Instant>) -> PyResult<bool> {
        let Some(waits) = &self.waits else { return self.park(doorbell, deadline) };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let in_time = waits.call1((doorbell.descriptor(), left.as_ref().map(Duration::as_secs_f64)))?;
        // A copy of it that runs on in a child leaves the bell to its parent, and what it waited for refuses it.
        doorbell.hush();
        in_time.is_truthy()
    }

    /// Waits with the whole thread.
    fn park(&self, doorbell: &Arc<Doorbell>, deadline: Option<Instant>) -> PyResult<bool> {
        let parked = self.py.detach(|| {
            let parked = doorbell.park(deadline);
            exit::stay_if_over();
            parked
        });
        match parked {
            Parked::Woken => Ok(true),
            Parked::Late => Ok(false),
            Parked::Interrupted => {
                Err(signalled().unwrap_or_else(|| PyInterruptedError::new_err("the wait was interrupted")))
            }
        }
    }
}
