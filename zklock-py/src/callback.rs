//! A function of the user's that is called when something happens.

use crate::sync::lock_ignoring_poison;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::{Arc, Mutex, Weak};

/// One that is to be called. It is taken out when it never will be again.
#[derive(Clone)]
pub(crate) struct Callback(Arc<Slot>);

type Slot = Mutex<Option<Py<PyAny>>>;

impl Callback {
    /// `what` is the method that takes it, `with` says what it will be called with.
    pub(crate) fn new(callback: &Bound<'_, PyAny>, what: &str, with: &str) -> PyResult<Self> {
        if callback.is_callable() {
            return Ok(Self(Arc::new(Mutex::new(Some(callback.clone().unbind())))));
        }
        Err(PyTypeError::new_err(format!("{what} takes a function, which is called with {with}")))
    }

    /// To be called again.
    pub(crate) fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock_ignoring_poison(&self.0).as_ref().map(|callback| callback.clone_ref(py))
    }

    /// To be called for the last time, or not any more.
    pub(crate) fn take(&self) -> Option<Py<PyAny>> {
        lock_ignoring_poison(&self.0).take()
    }
}

/// Those that were given to one object, for the garbage collector to see: a callback may well be a method of something
/// that has the object.
#[derive(Default)]
pub(crate) struct Given(Mutex<Vec<Weak<Slot>>>);

impl Given {
    pub(crate) fn add(&self, callback: &Callback) {
        let mut given = lock_ignoring_poison(&self.0);
        given.retain(|callback| callback.strong_count() > 0);
        given.push(Arc::downgrade(&callback.0));
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(given) = self.0.try_lock() else { return Ok(()) };
        for callback in given.iter().filter_map(Weak::upgrade) {
            if let Ok(Some(callback)) = callback.try_lock().as_deref() {
                visit.call(callback)?;
            }
        }
        Ok(())
    }

    pub(crate) fn clear(&self) {
        let given = std::mem::take(&mut *lock_ignoring_poison(&self.0));
        for callback in given.iter().filter_map(Weak::upgrade) {
            drop(Callback(callback).take());
        }
    }
}
