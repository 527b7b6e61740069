//! Greenlets: many callers in one thread.
//!
//! A greenlet must not sit in a wait of the core. What waits there is on the stack, others know where, and greenlets that
//! take turns move each other's stacks away. So it makes the call that asyncio makes, which waits by itself, and sits in
//! the loop of gevent or eventlet until a descriptor can be read; or if those do not run there, in `poll` with its thread.

use crate::coroutine::Coroutine;
use crate::dispatch::LOG;
use crate::error::refused;
use crate::exit;
use crate::task;
use crate::wait::{Doorbell, signalled};
use pyo3::exceptions::PyInterruptedError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock_core::Owner;
use zklock_core::face::{Park, Parked};

/// The greenlet that calls.
pub(crate) struct Greenlet<'py> {
    py: Python<'py>,
    pub(crate) owner: Owner,
    /// How it waits so that others run.
    waits: Option<Bound<'py, PyAny>>,
}

/// The owner that calls: a greenlet, or else the thread.
pub(crate) fn owner(py: Python<'_>) -> PyResult<Owner> {
    let Some(current) = current(py)? else { return Ok(Owner::current()) };
    owner_of(&current)
}

fn owner_of(greenlet: &Bound<'_, PyAny>) -> PyResult<Owner> {
    // The first of a thread is the thread.
    if greenlet.getattr(intern!(greenlet.py(), "parent"))?.is_none() {
        return Ok(Owner::current());
    }
    task::owner(greenlet)
}

/// Whether greenlets are to make the calls of others.
pub(crate) fn is_main_and_patched(py: Python<'_>) -> PyResult<bool> {
    Ok(is_main() && is_patched(py)?)
}

fn is_main() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

/// Whether gevent or eventlet has patched Python. As `_greenlets.library`, but in a daemon thread nothing that is written
/// in Python is to run in frames of ours: see `dispatch`.
fn is_patched(py: Python<'_>) -> PyResult<bool> {
    for (module, patched) in [("gevent.monkey", "saved"), ("eventlet.patcher", "already_patched")] {
        if let Some(module) = modules(py)?.get_item(module)? {
            if module.getattr_opt(patched)?.map_or(Ok(false), |patched| patched.is_truthy())? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether one of them has a loop in this thread.
fn has_loop(py: Python<'_>) -> PyResult<bool> {
    if let Some(hubs) = modules(py)?.get_item("gevent._hub_local")? {
        if !hubs.call_method0(intern!(py, "get_hub_if_exists"))?.is_none() {
            return Ok(true);
        }
    }
    let Some(hubs) = modules(py)?.get_item("eventlet.hubs")? else { return Ok(false) };
    let hub = hubs.getattr(intern!(py, "_threadlocal"))?.getattr_opt(intern!(py, "hub"))?;
    Ok(hub.is_some())
}

/// `sys.modules`.
fn modules(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let load = || Ok::<_, PyErr>(py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind());
    Ok(MODULES.get_or_try_init(py, load)?.bind(py))
}

/// The running greenlet; nothing where nobody uses them.
fn current(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if CURRENT.get(py).is_none() {
        let Some(module) = modules(py)?.get_item(intern!(py, "greenlet"))? else { return Ok(None) };
        // Another thread may be importing it just now.
        let Some(current) = module.getattr_opt(intern!(py, "getcurrent"))? else { return Ok(None) };
        CURRENT.get_or_init(py, || current.unbind());
    }
    CURRENT.get(py).map(|current| current.bind(py).call0()).transpose()
}

impl<'py> Greenlet<'py> {
    /// The one that calls; `None` where the thread is to do the waiting as threads do.
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

    /// Waits for what this coroutine does.
    pub(crate) fn wait_for(&self, coroutine: Coroutine) -> PyResult<Py<PyAny>> {
        Ok(coroutine.sit_through(self, None)?.unwrap_or_else(|| self.py.None()))
    }

    pub(crate) fn doorbell(&self) -> PyResult<Arc<Doorbell>> {
        Doorbell::new().map(Arc::new).map_err(|error| {
            let message = format!("the system gives no descriptor ({error}): raise the limit of open files");
            refused(self.py, message)
        })
    }

    /// Waits until it rings: `false` if the time is over.
    pub(crate) fn wait(&self, doorbell: &Arc<Doorbell>, deadline: Option<Instant>) -> PyResult<bool> {
        let Some(waits) = &self.waits else { return self.park(doorbell, deadline) };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let in_time = waits.call1((doorbell.descriptor(), left.as_ref().map(Duration::as_secs_f64)))?;
        // A copy of it that runs on in a child leaves the bell to its parent, and is refused by what it waited for.
        doorbell.hush();
        in_time.is_truthy()
    }

    /// The same with the whole thread.
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
