//! The asyncio event loop that runs in this thread.

use crate::guest::patched::modules;
use crate::guest::sync::{Found, intern};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use zklock::{Error, ErrorKind};

/// Returns the loop that runs here.
pub(crate) fn running(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static GET: Found<Py<PyAny>> = Found::new();
    let get = GET.or_find(|| py.import("asyncio")?.getattr("get_running_loop").map(Bound::unbind))?;
    get.bind(py).call0().map_err(|error| {
        let message = "zklock's coroutines run in an asyncio event loop; under trio or without a loop, make the \
                       blocking call in a thread";
        let explained = PyRuntimeError::new_err(message);
        explained.set_cause(py, Some(error));
        explained
    })
}

/// Whether a loop runs here. This neither imports asyncio nor runs code that is written in Python.
pub(crate) fn is_running(py: Python<'_>) -> PyResult<bool> {
    static GET: Found<Py<PyAny>> = Found::new();
    if GET.get().is_none() {
        // Not from `asyncio` itself: while another thread imports that, it has a function that knows no loops.
        let Some(module) = modules(py)?.get_item(intern!(py, "_asyncio"))? else { return Ok(false) };
        let Some(get) = module.getattr_opt(intern!(py, "_get_running_loop"))? else { return Ok(false) };
        GET.or_keep(get.unbind());
    }
    GET.get().map_or(Ok(false), |get| Ok(!get.bind(py).call0()?.is_none()))
}

/// Returns the error for a call that would stop the loop. Whatever the loop's tasks would do to end the wait would never
/// happen. `has_begun` says whether the call goes on nevertheless.
pub(crate) fn refusal(has_begun: bool) -> Error {
    let goes_on = if has_begun { " It has begun, and goes on in the background." } else { "" };
    let message = format!(
        "an asyncio event loop runs in this thread, and this call would stop it: use `async with`, as in \
         `async with zk.mutex(path)`, or await the method of the same name of the object's `aio`, or make the call in \
         another thread, with `await asyncio.to_thread(...)`.{goes_on}"
    );
    Error::new(ErrorKind::Deadlock, message)
}
