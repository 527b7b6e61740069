//! The functions that are called when a client is connected, loses its connection or its session, or is closed.

use crate::anchor::{AnchoredCallbacks, CallbackAnchor};
use crate::callback::Callback;
use crate::dispatch::{CALLBACKS, call_strand_later, strand};
use crate::sync::lock_ignoring_poison;
use crate::value;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use zklock_core::ConnectionState;

/// Those of one client. They are called one after the other.
pub(crate) struct ConnectionCallbacks {
    strand: u64,
    /// Whether one was ever added. A forked child may ask for it while nobody there will ever unlock the list.
    is_used: AtomicBool,
    list: Mutex<List>,
    /// The same functions, for the collector.
    pub(crate) anchored: Arc<AnchoredCallbacks>,
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
            anchored: Arc::default(),
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
        self.anchored.add(&callback);
        // In order with `tell`, which is called on the I/O thread. That never waits for the interpreter.
        let mut list = lock_ignoring_poison(&self.list);
        if let Some(state) = list.state {
            self.call(callback.clone(), state);
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
        if state == ConnectionState::Closed {
            // The last call takes the callback along, so that it is let go in the interpreter.
            list.callbacks.drain(..).for_each(|callback| self.call(callback, state));
        } else {
            list.callbacks.iter().for_each(|callback| self.call(callback.clone(), state));
        }
    }

    /// They are to be told of the end, even if nothing keeps the client by then: somebody asked for it.
    pub(crate) fn keep_until_closed(&self, py: Python<'_>) {
        self.anchored.keep(py);
    }

    /// The anchor of these callbacks, which all objects share that keep the client.
    pub(crate) fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        self.anchored.anchor(py)
    }

    fn call(&self, callback: Callback, state: ConnectionState) {
        let anchored = self.anchored.clone();
        // Without a thread nothing can be called; the client says its state all the same.
        let _ = call_strand_later(&CALLBACKS, self.strand, move |py| {
            let state = (value::connection_state(py, state)?,).into_pyobject(py)?.unbind();
            // A client that is forgotten or collected tells nothing, not even that it is closed.
            let callback = if anchored.may_be_called(py) { callback.get(py) } else { None };
            Ok(callback.map(|callback| (callback, state)))
        });
    }
}
