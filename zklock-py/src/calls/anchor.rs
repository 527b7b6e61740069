//! How the garbage collector sees callbacks. A callback may well be a method of an object that keeps the client or the
//! hold.
//!
//! Callbacks belong to something that many objects share: a client, which its faces, locks and barriers keep open, or a
//! hold, which its coroutines and guarded writes keep alive. The callbacks are garbage when all of these objects are,
//! and not before. So the objects share one more object, the anchor, and only the anchor shows the callbacks to the
//! collector.

use crate::calls::callback::{Callback, WeakCallback};
use crate::guest::sync::lock_ignoring_poison;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The callbacks of a client, or of a hold.
///
/// The collector's view changes only while the interpreter runs Python, and so never while the collector looks: it sees
/// the same thing each time.
#[derive(Default)]
pub(crate) struct AnchoredCallbacks {
    callbacks: Mutex<Vec<WeakCallback>>,
    /// Whether the callbacks are kept alive without the anchor. Then the anchor does not show them.
    is_kept: AtomicBool,
    anchor: Mutex<Option<Py<PyWeakrefReference>>>,
    /// The number of the anchor that currently counts.
    anchored: AtomicU64,
    /// For callbacks of a hold, those of its client: keeping the hold keeps the client.
    of_client: Option<Arc<Self>>,
}

impl AnchoredCallbacks {
    /// Returns the callbacks of a hold of this client.
    pub(crate) fn of_hold(client: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self { of_client: Some(client.clone()), ..Self::default() })
    }

    pub(crate) fn add(&self, callback: &Callback) {
        let mut callbacks = lock_ignoring_poison(&self.callbacks);
        if callbacks.len() == callbacks.capacity() {
            callbacks.retain(WeakCallback::is_there);
        }
        callbacks.push(callback.downgrade());
    }

    /// Returns the anchor, for an object that keeps the client or the hold alive.
    pub(crate) fn anchor(self: &Arc<Self>, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        if let Some(anchor) = self.present(py) {
            return Ok(anchor.unbind());
        }
        let of_client = self.of_client.as_ref().map(|client| client.anchor(py)).transpose()?;
        let number = self.anchored.load(Ordering::Relaxed) + 1;
        let anchor = Bound::new(py, CallbackAnchor { callbacks: self.clone(), number, of_client })?;
        let weak = PyWeakrefReference::new(&anchor)?.unbind();
        let before = lock_ignoring_poison(&self.anchor).replace(weak);
        self.anchored.store(number, Ordering::Relaxed);
        drop(before);
        Ok(anchor.unbind())
    }

    fn present<'py>(&self, py: Python<'py>) -> Option<Bound<'py, CallbackAnchor>> {
        let weak = lock_ignoring_poison(&self.anchor).as_ref().map(|anchor| anchor.clone_ref(py))?;
        weak.bind(py).upgrade_as::<CallbackAnchor>().ok().flatten()
    }

    /// From now on the callbacks are kept until their last call, whatever happens to the objects.
    pub(crate) fn keep(&self, _: Python<'_>) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Whether they may be called. If not, the objects are gone, or the collector has begun to take them apart. (It
    /// clears weak references first.)
    pub(crate) fn may_be_called(&self, py: Python<'_>) -> bool {
        self.is_kept.load(Ordering::Relaxed) || self.present(py).is_some()
    }
}

/// The object that all the others share.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct CallbackAnchor {
    callbacks: Arc<AnchoredCallbacks>,
    number: u64,
    of_client: Option<Py<Self>>,
}

impl CallbackAnchor {
    /// Whether this anchor has not been replaced. When the collector has cleared the weak reference to this one, a
    /// finalizer may still use the client, and so make another. Two anchors must not show one reference twice.
    fn is_current(&self) -> bool {
        self.callbacks.anchored.load(Ordering::Relaxed) == self.number
            && !self.callbacks.is_kept.load(Ordering::Relaxed)
    }
}

#[pymethods]
impl CallbackAnchor {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(of_client) = &self.of_client {
            visit.call(of_client)?;
        }
        match self.callbacks.callbacks.try_lock() {
            Ok(callbacks) if self.is_current() => {
                callbacks.iter().try_for_each(|callback| callback.traverse(&visit))
            }
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        if self.is_current() {
            let callbacks = std::mem::take(&mut *lock_ignoring_poison(&self.callbacks.callbacks));
            callbacks.iter().for_each(WeakCallback::forget);
        }
    }
}
