//! The same for asyncio.
//!
//! The names are those of the blocking face, and every call that waits is a coroutine. A lock belongs to the
//! task that acquires it. Dropping, cancelling or losing a coroutine anywhere leaves nothing behind.

pub(crate) mod barrier;
pub(crate) mod client;
pub(crate) mod double_barrier;
pub(crate) mod hold;
pub(crate) mod lock;
pub(crate) mod observer;

use crate::task;
use pyo3::exceptions::PyGeneratorExit;
use pyo3::prelude::*;
use pyo3::types::PyType;
use zklock_core::Owner;

/// The running task; without one, somebody who will never come again.
fn owner(py: Python<'_>) -> PyResult<Owner> {
    Ok(task::current(py)?.unwrap_or_else(Owner::unique))
}

/// Whether a block ends because its coroutine is being closed.
pub(crate) fn is_generator_exit(kind: &Bound<'_, PyAny>) -> PyResult<bool> {
    match kind.cast::<PyType>() {
        Ok(kind) => kind.is_subclass_of::<PyGeneratorExit>(),
        Err(_) => Ok(false),
    }
}
