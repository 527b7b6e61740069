//! What lets a task or a greenlet go on when the result of its call is there, or is due.

use crate::guest::error::raised;
use crate::guest::exit::later;
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::wait::Doorbell;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use pyo3::wrap_pyfunction;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use zklock_core::Error;
use zklock_core::face::{OfProcess, Park, call_later};

/// Makes a timer that lets the task continue at this time.
pub(crate) fn set_at(
    due: Instant,
    event_loop: &Bound<'_, PyAny>,
    future: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = future.py();
    let left = due.saturating_duration_since(Instant::now()).as_secs_f64();
    let arguments = (left, wrap_pyfunction!(awaken, py)?, PyWeakrefReference::new(future)?);
    event_loop.call_method1(intern!(py, "call_later"), arguments).map(Bound::unbind)
}

/// Lets the task that waits for the future continue. The future may have been cancelled meanwhile, or be gone.
#[pyfunction]
#[pyo3(name = "_awaken")]
fn awaken(future: &Bound<'_, PyWeakrefReference>) -> PyResult<()> {
    let py = future.py();
    let Some(future) = future.upgrade() else { return Ok(()) };
    if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
        future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}

/// Wakes a task from the I/O thread.
#[derive(Default)]
pub(crate) struct Bell(Mutex<Ear>);

#[derive(Default)]
enum Ear {
    #[default]
    Nobody,
    Rung,
    /// A weak reference, because the future is not ours to keep: if its task is forgotten, it must be collected.
    Task {
        event_loop: Py<PyAny>,
        future: Py<PyWeakrefReference>,
    },
    Greenlet(Arc<Doorbell>),
}

impl Bell {
    /// Returns the function to call when a call is ready.
    pub(crate) fn ringer(self: &Arc<Self>) -> impl FnOnce() + Send + 'static {
        let bell = self.clone();
        move || bell.ring()
    }

    fn ring(&self) {
        let ear = std::mem::replace(&mut *lock_ignoring_poison(&self.0), Ear::Rung);
        if let Ear::Greenlet(doorbell) = &ear {
            doorbell.unpark();
        }
        if let Ear::Task { event_loop, future } = ear {
            // The thread was already started by `wake`.
            let _ = later(move |py| {
                // This fails if the loop is closed, and nothing waits any longer.
                let _ = wrap_pyfunction!(awaken, py).and_then(|awaken| {
                    event_loop.call_method1(py, intern!(py, "call_soon_threadsafe"), (awaken, future))
                });
            });
        }
    }

    pub(crate) fn listen_again(&self) {
        let before = std::mem::take(&mut *lock_ignoring_poison(&self.0));
        drop(before);
    }

    /// Rings there too; `false` if it has already rung.
    pub(crate) fn ring_at(&self, doorbell: &Arc<Doorbell>) -> bool {
        let mut ear = lock_ignoring_poison(&self.0);
        if let Ear::Rung = *ear {
            return false;
        }
        *ear = Ear::Greenlet(doorbell.clone());
        true
    }

    /// Sets the future when it rings; `false` if it has already rung.
    pub(crate) fn wake(&self, event_loop: &Bound<'_, PyAny>, future: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = future.py();
        start_thread().map_err(|error| raised(py, &error))?;
        let task = Ear::Task {
            event_loop: event_loop.clone().unbind(),
            future: PyWeakrefReference::new(future)?.unbind(),
        };
        let mut ear = lock_ignoring_poison(&self.0);
        if let Ear::Rung = *ear {
            return Ok(false);
        }
        *ear = task;
        Ok(true)
    }
}

/// Starts the thread, before anything relies on it.
fn start_thread() -> Result<(), Error> {
    static HAS_STARTED: OfProcess<AtomicBool> = OfProcess::new();
    let has_started = HAS_STARTED.here(|_| AtomicBool::new(false));
    if !has_started.load(Ordering::Relaxed) {
        call_later(|| ())?;
        has_started.store(true, Ordering::Relaxed);
    }
    Ok(())
}
