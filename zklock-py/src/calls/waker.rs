//! Wakes a task or a greenlet when the result of its call is there, or is due.

use crate::guest::error::raised;
use crate::guest::exit::later;
use crate::guest::sync::{intern, lock_ignoring_poison};
use crate::guest::wait::Doorbell;
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use pyo3::wrap_pyfunction;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use zklock::Error;
use zklock::face::{OfProcess, Park, call_later};

/// Makes a timer that lets the task continue at this time.
pub(crate) fn wake_at(
    due: Instant,
    event_loop: &Bound<'_, PyAny>,
    future: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = future.py();
    let left = due.saturating_duration_since(Instant::now()).as_secs_f64();
    let arguments = (left, wrap_pyfunction!(continue_task, py)?, PyWeakrefReference::new(future)?);
    event_loop.call_method1(intern!(py, "call_later"), arguments).map(Bound::unbind)
}

/// Lets the task that waits for the future continue. The future may have been cancelled meanwhile, or be gone.
#[pyfunction]
#[pyo3(name = "_awaken")]
fn continue_task(future: &Bound<'_, PyWeakrefReference>) -> PyResult<()> {
    let py = future.py();
    let Some(future) = future.upgrade() else { return Ok(()) };
    if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
        future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}

/// Wakes the task or greenlet that waits for a call, from the I/O thread.
#[derive(Default)]
pub(crate) struct Waker(Mutex<Sleeper>);

#[derive(Default)]
enum Sleeper {
    #[default]
    Nobody,
    /// The result was there before anybody slept.
    Woken,
    /// A weak reference, because the future is not ours to keep: if its task is forgotten, it must be collected.
    Task {
        event_loop: Py<PyAny>,
        future: Py<PyWeakrefReference>,
    },
    Greenlet(Arc<Doorbell>),
}

impl Waker {
    /// Returns the function to call when a call is ready.
    pub(crate) fn on_ready(self: &Arc<Self>) -> impl FnOnce() + Send + 'static {
        let waker = self.clone();
        move || waker.wake()
    }

    pub(crate) fn wake(&self) {
        let sleeper = std::mem::replace(&mut *lock_ignoring_poison(&self.0), Sleeper::Woken);
        if let Sleeper::Greenlet(doorbell) = &sleeper {
            doorbell.unpark();
        }
        if let Sleeper::Task { event_loop, future } = sleeper {
            // The thread was already started by `wakes_task`.
            let _ = later(move |py| {
                // This fails if the loop is closed, and nothing waits any longer.
                let _ = wrap_pyfunction!(continue_task, py).and_then(|continue_task| {
                    event_loop.call_method1(py, intern!(py, "call_soon_threadsafe"), (continue_task, future))
                });
            });
        }
    }

    /// Forgets that it has woken somebody, before the result is fetched.
    pub(crate) fn clear(&self) {
        let before = std::mem::take(&mut *lock_ignoring_poison(&self.0));
        drop(before);
    }

    /// From now on it rings there; `false` if the result is there already.
    pub(crate) fn wakes_greenlet(&self, doorbell: &Arc<Doorbell>) -> bool {
        let mut sleeper = lock_ignoring_poison(&self.0);
        if let Sleeper::Woken = *sleeper {
            return false;
        }
        *sleeper = Sleeper::Greenlet(doorbell.clone());
        true
    }

    /// From now on it sets the future; `false` if the result is there already.
    pub(crate) fn wakes_task(
        &self,
        event_loop: &Bound<'_, PyAny>,
        future: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let py = future.py();
        start_thread().map_err(|error| raised(py, &error))?;
        let task = Sleeper::Task {
            event_loop: event_loop.clone().unbind(),
            future: PyWeakrefReference::new(future)?.unbind(),
        };
        let mut sleeper = lock_ignoring_poison(&self.0);
        if let Sleeper::Woken = *sleeper {
            return Ok(false);
        }
        *sleeper = task;
        Ok(true)
    }
}

/// Starts the thread, before anything relies on it.
pub(crate) fn start_thread() -> Result<(), Error> {
    static HAS_STARTED: OfProcess<AtomicBool> = OfProcess::new();
    let has_started = HAS_STARTED.here(|_| AtomicBool::new(false));
    if !has_started.load(Ordering::Relaxed) {
        call_later(|| ())?;
        has_started.store(true, Ordering::Relaxed);
    }
    Ok(())
}
