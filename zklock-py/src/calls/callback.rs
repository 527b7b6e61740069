//! A function of the user that is called when something happens.

use crate::guest::sync::lock_ignoring_poison;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::{Arc, Mutex, Weak};

/// A callback. It is taken out once it will never be called again.
#[derive(Clone)]
pub(crate) struct Callback(Arc<Slot>);

/// Keeps a callback until it is taken out.
type Slot = Mutex<Option<Kept>>;

/// A weak reference to a callback, with which it is found as long as it may be called.
pub(crate) struct WeakCallback(Weak<Slot>);

/// An object that the collector sees, and a weak reference to it, which the collector clears before it takes anything
/// apart.
struct Kept {
    function: Py<Function>,
    weak: Py<PyWeakrefReference>,
}

/// A function. Not every function supports weak references, but this object does.
#[pyclass(frozen, weakref, module = "zklock")]
struct Function(Py<PyAny>);

#[pymethods]
impl Function {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

impl Callback {
    /// `what` is the method that takes the callback, `with` describes the arguments that it is called with.
    pub(crate) fn new(callback: &Bound<'_, PyAny>, what: &str, with: &str) -> PyResult<Self> {
        if !callback.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "{what} takes a function, which is called with {with}"
            )));
        }
        let function = Bound::new(callback.py(), Function(callback.clone().unbind()))?;
        let weak = PyWeakrefReference::new(&function)?.unbind();
        Ok(Self(Arc::new(Mutex::new(Some(Kept { function: function.unbind(), weak })))))
    }

    /// Returns the function, for a call that is not the last.
    pub(crate) fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock_ignoring_poison(&self.0).as_ref().map(|kept| kept.function.get().0.clone_ref(py))
    }

    /// Returns the function, for its last call; `None` if the collector has begun to take it apart, with everything
    /// that it needs.
    pub(crate) fn take(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let kept = lock_ignoring_poison(&self.0).take()?;
        let is_whole = kept.weak.bind(py).upgrade().is_some();
        is_whole.then(|| kept.function.get().0.clone_ref(py))
    }

    /// Drops the function, because it will not be called again.
    pub(crate) fn forget(&self) {
        let kept = lock_ignoring_poison(&self.0).take();
        // Drop it after the mutex is released: dropping may run any Python code.
        drop(kept);
    }

    pub(crate) fn downgrade(&self) -> WeakCallback {
        WeakCallback(Arc::downgrade(&self.0))
    }
}

impl WeakCallback {
    pub(crate) fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    pub(crate) fn forget(&self) {
        if let Some(slot) = self.0.upgrade() {
            Callback(slot).forget();
        }
    }

    /// Shows it to the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(slot) = self.0.upgrade() else { return Ok(()) };
        match slot.try_lock().as_deref() {
            Ok(Some(kept)) => visit.call(&kept.function),
            _ => Ok(()),
        }
    }
}
