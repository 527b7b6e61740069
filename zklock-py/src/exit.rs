//! The end of the interpreter.
//!
//! Locks that the program has forgotten to release are to be free at once, and not when the session has
//! timed out. But a daemon thread may be inside what a lock guards until the process is gone: then its
//! session is left alone. And from then on nothing of ours enters the interpreter.

use crate::place::{Shared, locked};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::wrap_pyfunction;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use zklock_core::Error;
use zklock_core::blocking::{call_later, is_forked};

/// How long the interpreter waits for us at its end.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a daemon thread stays where it is then. By that time the process is gone, or somebody waits for the thread.
const STAY: Duration = Duration::from_secs(2);

static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Whether the thread for callbacks is in the interpreter.
static IS_INSIDE: Mutex<bool> = Mutex::new(false);
static HAS_LEFT: Condvar = Condvar::new();
static CLIENTS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

pub(crate) fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let at_exit = wrap_pyfunction!(at_exit, module)?;
    module.py().import("atexit")?.call_method1("register", (at_exit,)).map(drop)
}

/// The statics here, and the classes that they keep, are of one interpreter.
pub(crate) fn refuse_subinterpreter(py: Python<'_>) -> PyResult<()> {
    static SYSTEM: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let here = py.import("sys")?;
    if SYSTEM.get_or_init(py, || here.clone().unbind()).bind(py).is(&here) {
        return Ok(());
    }
    Err(PyImportError::new_err("zklock cannot be used in a subinterpreter: use processes or threads"))
}

/// To be closed at the end.
pub(crate) fn remember(client: Weak<Shared>) {
    let mut clients = locked(&CLIENTS);
    clients.retain(|client| client.strong_count() > 0);
    clients.push(client);
}

pub(crate) fn is_over() -> bool {
    IS_OVER.load(Ordering::Acquire)
}

/// Runs `job` in the interpreter, on the thread for callbacks, unless the interpreter is at its end.
pub(crate) fn later(job: impl FnOnce(Python<'_>) + Send + 'static) -> Result<(), Error> {
    call_later(move || {
        *locked(&IS_INSIDE) = true;
        if !is_over() {
            Python::try_attach(job);
        }
        *locked(&IS_INSIDE) = false;
        HAS_LEFT.notify_all();
    })
}

/// A daemon thread whose wait ends at the interpreter's end stays where it is, as it would in any other
/// wait: what it might do now would only frighten.
pub(crate) fn stay_if_over() {
    if is_over() && rustix::thread::gettid() != rustix::process::getpid() {
        std::thread::sleep(STAY);
    }
}

#[pyfunction]
#[pyo3(name = "_at_exit")]
fn at_exit(py: Python<'_>) {
    if !is_forked() {
        py.detach(end);
    }
}

fn end() {
    let deadline = Instant::now() + PATIENCE;
    IS_OVER.store(true, Ordering::Release);
    let mut inside = locked(&IS_INSIDE);
    while *inside && Instant::now() < deadline {
        let left = deadline.saturating_duration_since(Instant::now());
        inside = HAS_LEFT.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(inside);
    let (sender, closed) = channel::<()>();
    let clients: Vec<_> = locked(&CLIENTS).drain(..).filter_map(|client| client.upgrade()).collect();
    let closing: Vec<_> = clients
        .iter()
        .filter(|client| !client.is_held_by_others())
        .filter_map(|client| {
            let sender = sender.clone();
            client.connector.start_close(move || drop(sender)).ok().flatten()
        })
        .collect();
    drop(sender);
    // It ends when all senders are gone.
    let _ = closed.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    drop(closing);
}
