//! Whether gevent or eventlet has patched Python, and where their loops run.

use crate::guest::platform::is_main_thread;
use crate::guest::sync::{Found, intern};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Whether greenlets should make the calls of user functions.
pub(crate) fn is_main_and_patched(py: Python<'_>) -> PyResult<bool> {
    Ok(is_main_thread() && is_patched(py)?)
}

/// Whether gevent or eventlet has patched Python. Like `_greenlets.library`, but in a daemon thread no Python code may
/// run in frames of ours: see `dispatch`.
pub(crate) fn is_patched(py: Python<'_>) -> PyResult<bool> {
    for (module, patched) in [("gevent.monkey", "saved"), ("eventlet.patcher", "already_patched")] {
        if let Some(module) = modules(py)?.get_item(module)? {
            if module.getattr_opt(patched)?.map_or(Ok(false), |patched| patched.is_truthy())? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether one of them runs a loop in this thread.
pub(crate) fn has_loop(py: Python<'_>) -> PyResult<bool> {
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
pub(crate) fn modules(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static MODULES: Found<Py<PyDict>> = Found::new();
    let load = || Ok::<_, PyErr>(py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind());
    Ok(MODULES.or_find(load)?.bind(py))
}
