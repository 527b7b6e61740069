//! The owner of what a call acquires: a thread, an asyncio task, or a greenlet.

use crate::guest::patched::modules;
use crate::guest::sync::{Found, intern, lock_ignoring_poison};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use std::collections::HashMap;
use std::sync::Mutex;
use zklock::further::Owner;

type Owners = HashMap<usize, (Py<PyWeakrefReference>, Owner)>;

/// Tasks and greenlets by their addresses. Addresses are reused, and a new task must not be taken for one that died
/// while it held the lock, so each entry also has a weak reference. (A `WeakKeyDictionary` is written in Python, and
/// that must not run in frames of ours when the interpreter ends.)
static OWNERS: Mutex<Option<Owners>> = Mutex::new(None);

/// How to find the running task.
enum Asking {
    /// With `asyncio.current_task`, which is native since Python 3.12.
    Native(Py<PyAny>),
    /// In the dictionary where that function looks, by the running loop. In older versions the function is written in
    /// Python, so a signal may raise inside it: just when a block ends, which would then not be left.
    Listed { running_loop: Py<PyAny>, tasks: Py<PyAny> },
}

impl Asking {
    fn prepare(py: Python<'_>) -> PyResult<Self> {
        let asyncio = py.import("asyncio")?;
        let current_task = asyncio.getattr(intern!(py, "current_task"))?;
        let tasks = asyncio.getattr(intern!(py, "tasks"))?.getattr(intern!(py, "_current_tasks"));
        match tasks {
            Ok(tasks) if current_task.hasattr(intern!(py, "__code__"))? => {
                let running_loop = asyncio.getattr(intern!(py, "get_running_loop"))?.unbind();
                Ok(Self::Listed { running_loop, tasks: tasks.unbind() })
            }
            _ => Ok(Self::Native(current_task.unbind())),
        }
    }

    fn ask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Native(current_task) => current_task.bind(py).call0(),
            Self::Listed { running_loop, tasks } => {
                tasks.bind(py).call_method1(intern!(py, "get"), (running_loop.bind(py).call0()?,))
            }
        }
    }
}

/// Returns the owner for a blocking call: the greenlet that makes it, otherwise the thread.
pub(crate) fn of_caller(py: Python<'_>) -> PyResult<Owner> {
    match current_greenlet(py)? {
        // The first greenlet of a thread is the thread itself.
        Some(greenlet) if !is_first(&greenlet)? => of_object(&greenlet),
        _ => Ok(Owner::current()),
    }
}

/// Returns the owner for a coroutine: the running task. Without one, an owner that is never used again.
pub(crate) fn of_task_or_unique(py: Python<'_>) -> PyResult<Owner> {
    Ok(of_task(py)?.unwrap_or_else(Owner::unique))
}

/// Returns the running task as an owner, if there is one.
pub(crate) fn of_task(py: Python<'_>) -> PyResult<Option<Owner>> {
    static ASKING: Found<Asking> = Found::new();
    match ASKING.or_find(|| Asking::prepare(py))?.ask(py) {
        Ok(task) if task.is_none() => Ok(None),
        Ok(task) => of_object(&task).map(Some),
        // There is no loop in this thread.
        Err(error) if error.is_instance_of::<PyRuntimeError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the current greenlet; `None` if greenlets are not in use.
pub(crate) fn current_greenlet(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static CURRENT: Found<Py<PyAny>> = Found::new();
    if CURRENT.get().is_none() {
        let Some(module) = modules(py)?.get_item(intern!(py, "greenlet"))? else { return Ok(None) };
        // Another thread may be importing it right now.
        let Some(current) = module.getattr_opt(intern!(py, "getcurrent"))? else { return Ok(None) };
        CURRENT.or_keep(current.unbind());
    }
    CURRENT.get().map(|current| current.bind(py).call0()).transpose()
}

/// Whether this is the greenlet with which its thread began.
pub(crate) fn is_first(greenlet: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(greenlet.getattr(intern!(greenlet.py(), "parent"))?.is_none())
}

/// Returns the owner for this task or greenlet.
fn of_object(task: &Bound<'_, PyAny>) -> PyResult<Owner> {
    let py = task.py();
    let weak = PyWeakrefReference::new(task)?.unbind();
    let address = task.as_ptr() as usize;
    // Whatever dropping these frees is freed after the mutex is released.
    let mut seen = Vec::new();
    let mut owners = lock_ignoring_poison(&OWNERS);
    let owners = owners.get_or_insert_default();
    if let Some((known, owner)) = owners.get(&address) {
        seen.extend(known.bind(py).upgrade());
        if seen.iter().any(|known| known.is(task)) {
            return Ok(*owner);
        }
    }
    if owners.len() == owners.capacity() {
        owners.retain(|_, (weak, _)| {
            let task = weak.bind(py).upgrade();
            let is_there = task.is_some();
            seen.extend(task);
            is_there
        });
    }
    let owner = Owner::unique();
    owners.insert(address, (weak, owner));
    Ok(owner)
}
