//! The functions that are called when a client connects, loses its connection or its session, or is closed.

use crate::calls::anchor::{AnchoredCallbacks, CallbackAnchor};
use crate::calls::callback::Callback;
use crate::guest::dispatch::{CALLBACKS, call_in_lane_later, lane};
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::value;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use zklock::further::ConnectionState;

/// The callbacks of one client, which are called one at a time.
pub(crate) struct ConnectionCallbacks {
    lane: u64,
    /// Whether a callback was ever added. A forked child can check this even if nothing there will ever unlock the
    /// list.
    is_used: AtomicBool,
    list: Mutex<List>,
    /// The same functions, for the collector.
    pub(crate) anchored: Arc<AnchoredCallbacks>,
}

#[derive(Default)]
struct List {
    /// The state that was reported last.
    state: Option<ConnectionState>,
    callbacks: Vec<Callback>,
}

impl ConnectionCallbacks {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            lane: lane(),
            is_used: AtomicBool::new(false),
            list: Mutex::default(),
            anchored: Arc::default(),
        })
    }

    /// Makes sure that they can be called: when one is added, and when the client connects, which may happen in another
    /// process.
    pub(crate) fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_used.load(Ordering::Relaxed) { CALLBACKS.start_in_a_greenlet(py) } else { Ok(()) }
    }

    /// Adds a callback. Its first call gets the current state, if there is one.
    pub(crate) fn add(&self, py: Python<'_>, callback: Callback) -> PyResult<()> {
        self.is_used.store(true, Ordering::Relaxed);
        self.prepare(py)?;
        self.anchored.add(&callback);
        // In order with `tell`, which is called on the I/O thread. That thread never waits for the interpreter.
        let mut list = lock_ignoring_poison(&self.list);
        if let Some(state) = list.state {
            self.call(callback.clone(), state);
        }
        if list.state != Some(ConnectionState::Closed) {
            list.callbacks.push(callback);
        }
        Ok(())
    }

    /// Calls all of them.
    pub(crate) fn tell(&self, state: ConnectionState) {
        let mut list = lock_ignoring_poison(&self.list);
        list.state = Some(state);
        if state == ConnectionState::Closed {
            // The last call takes the callback along, so that it is dropped in the interpreter.
            list.callbacks.drain(..).for_each(|callback| self.call(callback, state));
        } else {
            list.callbacks.iter().for_each(|callback| self.call(callback.clone(), state));
        }
    }

    /// Keeps them until they have been told of the end, even if nothing keeps the client by then, because somebody
    /// asked for it.
    pub(crate) fn keep_until_closed(&self, py: Python<'_>) {
        self.anchored.keep(py);
    }

    /// Returns the anchor of these callbacks, shared by all objects that keep the client alive.
    pub(crate) fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        self.anchored.anchor(py)
    }

    fn call(&self, callback: Callback, state: ConnectionState) {
        let anchored = self.anchored.clone();
        // Without a thread nothing can be called. The client still gives its state when it is asked.
        let _ = call_in_lane_later(&CALLBACKS, self.lane, move |py| {
            let state = (value::connection_state(py, state)?,).into_pyobject(py)?.unbind();
            // A client that is dropped or collected reports nothing, not even that it is closed.
            let callback = if anchored.may_be_called(py) { callback.get(py) } else { None };
            Ok(callback.map(|callback| (callback, state)))
        });
    }
}
