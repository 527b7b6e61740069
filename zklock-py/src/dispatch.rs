//! The thread that calls functions of others: handlers of a loss, and of log lines.
//!
//! It is a thread of Python's, which fetches what to call from here. A thread of ours would have frames of
//! ours beneath the function, and at the interpreter's end, until Python 3.13, a thread that is in Python is
//! ended through all of its frames, at which those of ours abort the process. And what others do may take
//! long: those who wait for a lock must not wait for that.

use crate::exit::{is_over, later};
use crate::place::locked;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyTuple};
use pyo3::wrap_pyfunction;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// What is to be called, and with what.
pub(crate) type Call = (Py<PyAny>, Py<PyTuple>);

#[derive(Default)]
struct Queue {
    calls: VecDeque<Call>,
    has_thread: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { calls: VecDeque::new(), has_thread: false });
static FILLED: Condvar = Condvar::new();

/// Has something called, after all that came before.
pub(crate) fn call(py: Python<'_>, call: Call) -> PyResult<()> {
    let starts = {
        let mut queue = locked(&QUEUE);
        queue.calls.push_back(call);
        !std::mem::replace(&mut queue.has_thread, true)
    };
    FILLED.notify_one();
    if starts {
        start(py).inspect_err(|_| locked(&QUEUE).has_thread = false)?;
    }
    Ok(())
}

/// The same from a thread that is not in Python.
pub(crate) fn call_later(make: impl FnOnce(Python<'_>) -> PyResult<Option<Call>> + Send + 'static) -> bool {
    let handed_over = later(move |py| {
        if let Err(error) = make(py).and_then(|made| made.map_or(Ok(()), |made| call(py, made))) {
            error.write_unraisable(py, None);
        }
    });
    handed_over.is_ok()
}

fn start(py: Python<'_>) -> PyResult<()> {
    let run = py.import("zklock._dispatch")?.getattr("run")?;
    let arguments = [
        ("target", run),
        (
            "args",
            (wrap_pyfunction!(next_call, py)?, wrap_pyfunction!(report, py)?).into_pyobject(py)?.into_any(),
        ),
        ("name", "zklock-callbacks".into_pyobject(py)?.into_any()),
        ("daemon", true.into_pyobject(py)?.to_owned().into_any()),
    ];
    let thread = py.import("threading")?.getattr("Thread")?.call((), Some(&arguments.into_py_dict(py)?))?;
    thread.call_method0("start").map(drop)
}

/// Tells what such a function has raised, by `sys.unraisablehook`.
#[pyfunction]
#[pyo3(name = "_report")]
fn report(error: Bound<'_, PyAny>, function: &Bound<'_, PyAny>) {
    PyErr::from_value(error).write_unraisable(function.py(), Some(function));
}

/// Waits for what is to be called next. At the interpreter's end nothing comes any more.
#[pyfunction]
#[pyo3(name = "_next_call")]
fn next_call(py: Python<'_>) -> Call {
    py.detach(|| {
        let mut queue = locked(&QUEUE);
        loop {
            if !is_over() {
                if let Some(call) = queue.calls.pop_front() {
                    return call;
                }
            }
            queue = FILLED.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    })
}
