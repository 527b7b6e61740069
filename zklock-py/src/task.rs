//! Tasks of asyncio as owners of locks.

use crate::place::locked;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use std::collections::HashMap;
use std::sync::Mutex;
use zklock_core::Owner;

type Owners = HashMap<usize, (Py<PyWeakrefReference>, Owner)>;

/// Tasks by their addresses. Those are used again, and a task must not be taken for one that died with the
/// lock: so each entry has a weak reference, too. (A `WeakKeyDictionary` is written in Python, which is not to
/// run in frames of ours when the interpreter ends.)
static OWNERS: Mutex<Option<Owners>> = Mutex::new(None);

/// The running task, if there is one.
pub(crate) fn current(py: Python<'_>) -> PyResult<Option<Owner>> {
    static CURRENT_TASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current_task = CURRENT_TASK.get_or_try_init(py, || {
        py.import("asyncio")?.getattr(intern!(py, "current_task")).map(Bound::unbind)
    })?;
    match current_task.bind(py).call0() {
        Ok(task) if task.is_none() => Ok(None),
        Ok(task) => owner(&task).map(Some),
        // There is no loop in this thread.
        Err(error) if error.is_instance_of::<PyRuntimeError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

fn owner(task: &Bound<'_, PyAny>) -> PyResult<Owner> {
    let py = task.py();
    let weak = PyWeakrefReference::new(task)?.unbind();
    let address = task.as_ptr() as usize;
    // Whatever goes when these are dropped goes when the mutex is free again.
    let mut seen = Vec::new();
    let mut owners = locked(&OWNERS);
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
