//! The functions that are called when a client is connected, loses its connection or its session, or is closed.

use crate::callback::{Callback, Given};
use crate::dispatch::{CALLBACKS, call_strand_later, strand};
use crate::sync::lock_ignoring_poison;
use crate::value;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use zklock_core::ConnectionState;

/// Those of one client. They are called one after the other.
pub(crate) struct ConnectionCallbacks {
    strand: u64,
    /// Whether one was ever added. A forked child may ask for it while nobody there will ever unlock the list.
    is_used: AtomicBool,
    list: Mutex<List>,
    /// The same functions, for the collector. Unlike the list it is locked in the interpreter alone, and so never while the
    /// collector looks: what it sees once, it sees again.
    given: Given,
    anchor: Mutex<Option<Py<PyWeakrefReference>>>,
    /// The number of the anchor that the collector believes.
    anchored: AtomicU64,
}

#[derive(Default)]
struct List {
    /// What was told last.
    state: Option<ConnectionState>,
    callbacks: Vec<Callback>,
}

impl ConnectionCallbacks {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            strand: strand(),
            is_used: AtomicBool::new(false),
            list: Mutex::default(),
            given: Given::default(),
            anchor: Mutex::default(),
            anchored: AtomicU64::new(0),
        })
    }

    /// Sees to it that they can be called: when one is added, and when the client connects, which may be in another process.
    pub(crate) fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_used.load(Ordering::Relaxed) { CALLBACKS.start_in_a_greenlet(py) } else { Ok(()) }
    }

    /// From now on this one is called, too: first with the present state, if there is one.
    pub(crate) fn add(&self, py: Python<'_>, callback: Callback) -> PyResult<()> {
        self.is_used.store(true, Ordering::Relaxed);
        self.prepare(py)?;
        self.given.add(&callback);
        // In order with `tell`, which is called on the I/O thread. That never waits for the interpreter.
        let mut list = lock_ignoring_poison(&self.list);
        if let Some(state) = list.state {
            self.call(&callback, state);
        }
        if list.state != Some(ConnectionState::Closed) {
            list.callbacks.push(callback);
        }
        Ok(())
    }

    /// Has all of them called.
    pub(crate) fn tell(&self, state: ConnectionState) {
        let mut list = lock_ignoring_poison(&self.list);
        list.state = Some(state);
        for callback in &list.callbacks {
            self.call(callback, state);
        }
        if state == ConnectionState::Closed {
            list.callbacks.clear();
        }
    }

    /// The anchor of these callbacks, which all objects share that keep the client.
    pub(crate) fn anchor(self: &Arc<Self>, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        let known = lock_ignoring_poison(&self.anchor).as_ref().map(|anchor| anchor.clone_ref(py));
        if let Some(known) = known {
            if let Some(anchor) = known.bind(py).upgrade_as::<CallbackAnchor>()? {
                return Ok(anchor.unbind());
            }
        }
        let number = self.anchored.load(Ordering::Relaxed) + 1;
        let anchor = Bound::new(py, CallbackAnchor { callbacks: self.clone(), number })?;
        let weak = PyWeakrefReference::new(&anchor)?.unbind();
        let before = lock_ignoring_poison(&self.anchor).replace(weak);
        self.anchored.store(number, Ordering::Relaxed);
        drop(before);
        Ok(anchor.unbind())
    }

    fn call(&self, callback: &Callback, state: ConnectionState) {
        let callback = callback.clone();
        // Without a thread nothing can be called; the client says its state all the same.
        let _ = call_strand_later(&CALLBACKS, self.strand, move |py| {
            let state = (value::connection_state(py, state)?,).into_pyobject(py)?.unbind();
            Ok(callback.get(py).map(|callback| (callback, state)))
        });
    }
}

/// By this the garbage collector sees the callbacks: one may well be a method of something that has the client.
///
/// Every face of a client, and all that keeps it open (a lock, a hold, a barrier), has a reference to the one anchor of
/// the client, and shows it to the collector. So the callbacks are garbage when all of these are, and not before.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct CallbackAnchor {
    callbacks: Arc<ConnectionCallbacks>,
    number: u64,
}

impl CallbackAnchor {
    /// Whether it has not been replaced. A finalizer may use the client when the collector has ended the weak reference to
    /// this one already. Two must not show one reference twice.
    fn is_current(&self) -> bool {
        self.callbacks.anchored.load(Ordering::Relaxed) == self.number
    }
}

#[pymethods]
impl CallbackAnchor {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if self.is_current() { self.callbacks.given.traverse(&visit) } else { Ok(()) }
    }

    fn __clear__(&self) {
        if self.is_current() {
            self.callbacks.given.clear();
        }
    }
}
