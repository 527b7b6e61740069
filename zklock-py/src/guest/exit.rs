//! The end of the interpreter.
//!
//! Locks that the program has forgotten to release should be free at once, not when the session has timed out. But a
//! daemon thread may be using what a lock guards until the process is gone: in that case the session is left alone.
//! After this, nothing of ours enters the interpreter.

use crate::guest::entrance::come_in;
use crate::guest::platform::is_main_thread;
use crate::guest::sync::{Found, lock_ignoring_poison};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::wrap_pyfunction;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use zklock::Error;
use zklock::face::{OfProcess, call_later};
use zklock::further::Started;

/// How long the interpreter waits for us when it ends.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a daemon thread then stays where it is. After that time the process is gone, or something waits for the
/// thread.
const STAY: Duration = Duration::from_secs(2);

static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Whether the thread for callbacks is in the interpreter.
static INSIDE: OfProcess<Inside> = OfProcess::new();

#[derive(Default)]
struct Inside {
    is: Mutex<bool>,
    has_left: Condvar,
}

pub(crate) fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let at_exit = wrap_pyfunction!(at_exit, module)?;
    py.import("atexit")?.call_method1("register", (at_exit,)).map(drop)
}

/// Refuses a subinterpreter: the statics here, and the classes that they keep, belong to one interpreter.
pub(crate) fn refuse_subinterpreter(py: Python<'_>) -> PyResult<()> {
    static SYSTEM: Found<Py<PyModule>> = Found::new();
    let here = py.import("sys")?;
    if SYSTEM.or_keep(here.clone().unbind()).bind(py).is(&here) {
        return Ok(());
    }
    Err(PyImportError::new_err("zklock cannot be used in a subinterpreter: use processes or threads"))
}

/// Something that is closed at the end.
pub(crate) trait CloseAtExit: Send + Sync {
    /// Starts to close it; `None` if it is already closed, or another thread may be using it. `closed` is called, or
    /// dropped, when that is done.
    fn close_at_exit(&self, closed: Box<dyn FnOnce() + Send>) -> Option<Started<()>>;
}

pub(crate) fn remember(client: Weak<dyn CloseAtExit>) {
    let mut clients = lock_ignoring_poison(clients());
    clients.retain(|client| client.strong_count() > 0);
    clients.push(client);
}

/// Returns the clients. A forked child also has those of its parent: one that has not connected may do so in the
/// child.
fn clients() -> &'static Mutex<Vec<Weak<dyn CloseAtExit>>> {
    static CLIENTS: OfProcess<Mutex<Vec<Weak<dyn CloseAtExit>>>> = OfProcess::new();
    CLIENTS.here(|before| {
        let of_parent = before.and_then(|clients| clients.try_lock().ok());
        Mutex::new(of_parent.map_or_else(Vec::new, |clients| clients.clone()))
    })
}

fn inside() -> &'static Inside {
    INSIDE.here(|_| Inside::default())
}

pub(crate) fn is_over() -> bool {
    IS_OVER.load(Ordering::Acquire)
}

/// Runs `job` in the interpreter, on the thread for callbacks, unless the interpreter is ending.
pub(crate) fn later(job: impl FnOnce(Python<'_>) + Send + 'static) -> Result<(), Error> {
    call_later(move || {
        *lock_ignoring_poison(&inside().is) = true;
        if !is_over() {
            come_in(job);
        }
        *lock_ignoring_poison(&inside().is) = false;
        inside().has_left.notify_all();
    })
}

/// If the wait of a daemon thread ends because the interpreter ends, the thread stays where it is, as it would in any
/// other wait: anything it did now would only cause confusing errors.
pub(crate) fn stay_if_over() {
    if is_over() && !is_main_thread() {
        std::thread::sleep(STAY);
    }
}

#[pyfunction]
#[pyo3(name = "_at_exit")]
fn at_exit(py: Python<'_>) {
    py.detach(end);
}

fn end() {
    let deadline = Instant::now() + PATIENCE;
    IS_OVER.store(true, Ordering::Release);
    let inside = inside();
    let mut is_inside = lock_ignoring_poison(&inside.is);
    while *is_inside && Instant::now() < deadline {
        let left = deadline.saturating_duration_since(Instant::now());
        is_inside = inside.has_left.wait_timeout(is_inside, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(is_inside);
    let (sender, closed) = channel::<()>();
    let clients: Vec<_> =
        lock_ignoring_poison(clients()).drain(..).filter_map(|client| client.upgrade()).collect();
    let closing: Vec<_> = clients
        .iter()
        .filter_map(|client| {
            let sender = sender.clone();
            client.close_at_exit(Box::new(move || drop(sender)))
        })
        .collect();
    drop(sender);
    // This ends when all senders are gone.
    let _ = closed.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    drop(closing);
}
