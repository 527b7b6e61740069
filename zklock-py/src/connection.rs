//! The functions that are called when a client is connected, loses its connection or its session, or is closed.

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
}

#[derive(Default)]
struct List {
    /// What was told last.
    state: Option<ConnectionState>,
    callbacks: Vec<Callback>,
}

impl ConnectionCallbacks {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { strand: strand(), is_used: AtomicBool::new(false), list: Mutex::default() })
    }

    /// Sees to it that they can be called: when one is added, and when the client connects, which may be in another process.
    pub(crate) fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_used.load(Ordering::Relaxed) { CALLBACKS.start_in_a_greenlet(py) } else { Ok(()) }
    }

    /// From now on this one is called, too: first with the present state, if there is one.
    pub(crate) fn add(&self, py: Python<'_>, callback: Callback) -> PyResult<()> {
        self.is_used.store(true, Ordering::Relaxed);
        self.prepare(py)?;
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

    fn call(&self, callback: &Callback, state: ConnectionState) {
        let callback = callback.clone();
        // Without a thread nothing can be called; the client says its state all the same.
        let _ = call_strand_later(&CALLBACKS, self.strand, move |py| {
            let state = (value::connection_state(py, state)?,).into_pyobject(py)?.unbind();
            Ok(callback.get(py).map(|callback| (callback, state)))
        });
    }
}
