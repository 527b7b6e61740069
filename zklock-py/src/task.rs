//! Tasks of asyncio as owners of locks.

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use zklock_core::Owner;

/// The number of a task, kept as long as the task is there.
#[pyclass(frozen, module = "zklock")]
struct TaskOwner(Owner);

/// The running task, if there is one.
///
/// Tasks are told apart by a dictionary of weak references. Their addresses are used again, and a task
/// must not be taken for one that died with the lock.
pub(crate) fn current(py: Python<'_>) -> PyResult<Option<Owner>> {
    static ASYNCIO: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    static OWNERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let asyncio = ASYNCIO.get_or_try_init(py, || py.import("asyncio").map(Bound::unbind))?.bind(py);
    let task = match asyncio.call_method0(intern!(py, "current_task")) {
        Ok(task) if task.is_none() => return Ok(None),
        // There is no loop in this thread.
        Err(error) if error.is_instance_of::<PyRuntimeError>(py) => return Ok(None),
        task => task?,
    };
    let owners = OWNERS.get_or_try_init(py, || {
        py.import("weakref")?.getattr("WeakKeyDictionary")?.call0().map(Bound::unbind)
    })?;
    let known = owners.bind(py).call_method1(intern!(py, "get"), (&task,))?;
    if let Ok(owner) = known.cast::<TaskOwner>() {
        return Ok(Some(owner.get().0));
    }
    let owner = Owner::unique();
    owners.bind(py).set_item(task, Py::new(py, TaskOwner(owner))?)?;
    Ok(Some(owner))
}
