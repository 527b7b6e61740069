//! Errors of the core as exceptions, whose classes are written in Python.

use crate::guest::exit::{is_over, stay_if_over};
use crate::guest::mirror::table;
use crate::guest::sync::Found;
use crate::guest::value;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use std::cell::RefCell;
use zklock::{Error, ErrorKind};

thread_local! {
    /// The exception from a signal handler that ended a wait of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Keeps the exception of a signal handler until the wait of this thread has ended.
pub(crate) fn keep_signal(exception: PyErr) {
    RAISED.set(Some(exception));
}

/// Returns the exception that ended the last wait of this thread.
pub(crate) fn signalled() -> Option<PyErr> {
    RAISED.take()
}

table! {
    /// Returns the name of the exception.
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
        // Usually the exception of the signal handler takes its place.
        Interrupted => "Error",
        Uncertain => "Uncertain",
        Conflict => "Conflict",
        Forked => "Forked",
        AtRisk => "AtRisk",
        StaleToken => "StaleToken",
        OtherEnsemble => "OtherEnsemble",
    }
}

/// Returns the exception for an error. If a signal ended the wait, it is the exception of the
/// handler.
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

/// Exceptions that this crate raises itself, each with its message.
macro_rules! own {
    ($($(#[$about:meta])* $name:ident: $Kind:ident,)+) => {
        $($(#[$about])*
        pub(crate) fn $name(py: Python<'_>, message: String) -> PyErr {
            made(py, ErrorKind::$Kind, (message,)).unwrap_or_else(|failure| failure)
        })+
    };
}

own! {
    /// An argument that the core cannot know to be wrong.
    invalid: InvalidInput,
    /// There is nothing to release.
    not_held: NotHeld,
    not_owner: NotOwner,
    /// The system forbids it.
    refused: Refused,
    /// The time ran out.
    late: Timeout,
    /// The object belongs to the process from which this one was forked.
    forked: Forked,
    closed: Closed,
}

/// Returns the reason why an object cannot be pickled or copied.
pub(crate) fn unpicklable(class: &str, instead: &str) -> PyErr {
    let message = format!("this {class} cannot be pickled or copied: it belongs to this process; {instead}");
    pyo3::exceptions::PyTypeError::new_err(message)
}

fn made<A>(py: Python<'_>, kind: ErrorKind, arguments: A) -> PyResult<PyErr>
where
    A: pyo3::PyErrArguments + Send + Sync + 'static,
{
    let class = module(py)?.getattr(PyString::intern(py, class_name(kind)))?.cast_into::<PyType>()?;
    Ok(PyErr::from_type(class, arguments))
}

/// Returns the module of the classes.
fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: Found<Py<PyModule>> = Found::new();
    Ok(MODULE.or_find(|| py.import("zklock._errors").map(Bound::unbind))?.bind(py))
}

/// Loads the classes, all of which must exist.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    ErrorKind::ALL.iter().try_for_each(|kind| module(py)?.getattr(class_name(*kind)).map(drop))
}
