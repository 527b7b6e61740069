//! Errors of the core as exceptions, which are classes written in Python.

use crate::exit::{is_over, stay_if_over};
use crate::mirror::table;
use crate::value;
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

table! {
    /// The name of the exception.
    fn class_name(ErrorKind) -> &'static str {
        InvalidInput => "InvalidInput",
        Unreachable => "Unreachable",
        Timeout => "Timeout",
        Deadlock => "Deadlock",
        NotOwner => "NotOwner",
        NotHeld => "NotHeld",
        Lost(_) => "LockLost",
        ForeignContender => "ForeignContender",
        Refused => "Refused",
        Closed => "Closed",
        // Mostly what the handler of a signal has raised takes its place.
        Interrupted => "Error",
        Uncertain => "Uncertain",
        Conflict => "Conflict",
        Forked => "ForkedError",
    }
}

/// The exception for an error; the one that ended the wait, if a signal did.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    if is_over() {
        py.detach(stay_if_over);
    }
    let (kind, message) = (error.kind(), error.to_string());
    let made = match (kind, error.conflict()) {
        (ErrorKind::Interrupted, _) => match signalled() {
            Some(exception) => return exception,
            None => made(py, kind, (message,)),
        },
        (ErrorKind::Lost(reason), _) => {
            value::reason(py, reason).and_then(|reason| made(py, kind, (message, reason)))
        }
        (_, Some(conflict)) => made(py, kind, (message, conflict.index, conflict.path.to_string())),
        _ => made(py, kind, (message,)),
    };
    made.unwrap_or_else(|failure| failure)
}

/// Exceptions of this crate's own, each with its message.
macro_rules! own {
    ($($(#[$about:meta])* $name:ident: $Kind:ident,)+) => {
        $($(#[$about])*
        pub(crate) fn $name(py: Python<'_>, message: String) -> PyErr {
            made(py, ErrorKind::$Kind, (message,)).unwrap_or_else(|failure| failure)
        })+
    };
}

own! {
    /// What the core cannot know to be wrong.
    invalid: InvalidInput,
    /// There is nothing to release.
    not_held: NotHeld,
    not_owner: NotOwner,
    /// The system forbids it.
    refused: Refused,
    /// The time was over first.
    late: Timeout,
    /// It belongs to the process from which this one was forked.
    forked: Forked,
    closed: Closed,
}

/// Why an object cannot be pickled, or copied.
pub(crate) fn unpicklable(class: &str, instead: &str) -> PyErr {
    let message = format!("a {class} cannot be pickled or copied: it belongs to this process; {instead}");
    pyo3::exceptions::PyTypeError::new_err(message)
}

fn made<A>(py: Python<'_>, kind: ErrorKind, arguments: A) -> PyResult<PyErr>
where
    A: pyo3::PyErrArguments + Send + Sync + 'static,
{
    let class = module(py)?.getattr(PyString::intern(py, class_name(kind)))?.cast_into::<PyType>()?;
    Ok(PyErr::from_type(class, arguments))
}

/// The module of the classes.
fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(MODULE.get_or_try_init(py, || py.import("zklock._errors").map(Bound::unbind))?.bind(py))
}

/// Loads the classes, all of which are to be there.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    ErrorKind::ALL.iter().try_for_each(|kind| module(py)?.getattr(class_name(*kind)).map(drop))
}
