//! Errors of the core as exceptions, which are classes written in Python.

use crate::exit::{is_over, stay_if_over};
use crate::value;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use std::cell::RefCell;
use zklock_core::{Error, ErrorKind};

thread_local! {
    /// What the handler of a signal has raised, by which it ended a wait of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Keeps what the handler of a signal has raised for when the wait of this thread has come to its end.
pub(crate) fn keep_signal(exception: PyErr) {
    RAISED.set(Some(exception));
}

/// The exception that ended the last wait of this thread.
pub(crate) fn signalled() -> Option<PyErr> {
    RAISED.take()
}

/// The exception for an error; the one that ended the wait, if a signal did.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    if is_over() {
        py.detach(stay_if_over);
    }
    let name = match error.kind() {
        ErrorKind::Interrupted => match signalled() {
            Some(exception) => return exception,
            None => intern!(py, "Error"),
        },
        ErrorKind::InvalidInput => intern!(py, "InvalidInput"),
        ErrorKind::Unreachable => intern!(py, "Unreachable"),
        ErrorKind::Timeout => intern!(py, "Timeout"),
        ErrorKind::Deadlock => intern!(py, "Deadlock"),
        ErrorKind::NotOwner => intern!(py, "NotOwner"),
        ErrorKind::NotHeld => intern!(py, "NotHeld"),
        ErrorKind::Lost(reason) => {
            return value::reason(py, reason)
                .and_then(|reason| made(py, intern!(py, "LockLost"), (error.to_string(), reason)))
                .unwrap_or_else(|failure| failure);
        }
        ErrorKind::ForeignContender => intern!(py, "ForeignContender"),
        ErrorKind::Refused => intern!(py, "Refused"),
        ErrorKind::Closed => intern!(py, "Closed"),
        ErrorKind::Uncertain => intern!(py, "Uncertain"),
        ErrorKind::Conflict => {
            let name = intern!(py, "Conflict");
            let made = match error.conflict() {
                Some(conflict) => {
                    made(py, name, (error.to_string(), conflict.index, conflict.path.to_string()))
                }
                None => made(py, name, (error.to_string(),)),
            };
            return made.unwrap_or_else(|failure| failure);
        }
        ErrorKind::Forked => intern!(py, "ForkedError"),
        _ => intern!(py, "Error"),
    };
    made(py, name, (error.to_string(),)).unwrap_or_else(|failure| failure)
}

/// What the core cannot know to be wrong.
pub(crate) fn invalid(py: Python<'_>, message: String) -> PyErr {
    made(py, intern!(py, "InvalidInput"), (message,)).unwrap_or_else(|failure| failure)
}

/// There is nothing to release.
pub(crate) fn not_held(py: Python<'_>, message: String) -> PyErr {
    made(py, intern!(py, "NotHeld"), (message,)).unwrap_or_else(|failure| failure)
}

pub(crate) fn not_owner(py: Python<'_>, message: String) -> PyErr {
    made(py, intern!(py, "NotOwner"), (message,)).unwrap_or_else(|failure| failure)
}

/// The system forbids it.
pub(crate) fn refused(py: Python<'_>, message: String) -> PyErr {
    made(py, intern!(py, "Refused"), (message,)).unwrap_or_else(|failure| failure)
}

/// The time was over before it was so.
pub(crate) fn late(py: Python<'_>, message: String) -> PyErr {
    made(py, intern!(py, "Timeout"), (message,)).unwrap_or_else(|failure| failure)
}

/// It belongs to the process from which this one was forked.
pub(crate) fn forked(py: Python<'_>, message: String) -> PyErr {
    made(py, intern!(py, "ForkedError"), (message,)).unwrap_or_else(|failure| failure)
}

pub(crate) fn closed(py: Python<'_>, message: String) -> PyErr {
    made(py, intern!(py, "Closed"), (message,)).unwrap_or_else(|failure| failure)
}

/// Why an object cannot be pickled, or copied.
pub(crate) fn unpicklable(class: &str, instead: &str) -> PyErr {
    let message = format!("a {class} cannot be pickled or copied: it belongs to this process; {instead}");
    pyo3::exceptions::PyTypeError::new_err(message)
}

fn made<A>(py: Python<'_>, name: &Bound<'_, PyString>, arguments: A) -> PyResult<PyErr>
where
    A: pyo3::PyErrArguments + Send + Sync + 'static,
{
    let class = prepare(py)?.getattr(name)?.cast_into::<PyType>()?;
    Ok(PyErr::from_type(class, arguments))
}

/// The module of the classes.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(MODULE.get_or_try_init(py, || py.import("zklock._errors").map(Bound::unbind))?.bind(py))
}
