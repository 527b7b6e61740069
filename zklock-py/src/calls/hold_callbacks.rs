//! The functions that are called when a hold is lost, or wanted by others, one at a time.

use crate::calls::callback::Callback;
use crate::guest::dispatch::{CALLBACKS, call_in_lane_later, lane};
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::value;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex};
use zklock::Error;
use zklock::Hold;
use zklock::further::Watch;

/// The callbacks of one hold.
pub(crate) struct HoldCallbacks {
    lane: u64,
    lost: Mutex<List>,
    wanted: Mutex<List>,
}

#[derive(Default)]
struct List {
    watches: Vec<Watch>,
    callbacks: Vec<Callback>,
    /// How many of them have been called, or are about to be.
    called: usize,
}

impl List {
    fn add(&mut self, watch: Watch, callback: Callback) {
        self.watches.push(watch);
        self.callbacks.push(callback);
    }
}

impl HoldCallbacks {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { lane: lane(), lost: Mutex::default(), wanted: Mutex::default() })
    }

    /// Adds a callback that gets the reason when the hold is lost.
    pub(crate) fn add_lost(self: &Arc<Self>, hold: &Hold, callback: Callback) -> Result<(), Error> {
        if hold.process().is_forked() {
            // The list may be locked for ever in a forked child. The hold refuses the call there.
            return hold.on_lost(|_| ()).map(drop);
        }
        let callbacks = Arc::downgrade(self);
        let mut list = lock_ignoring_poison(&self.lost);
        // Watches of one hold are woken in any order. The first one calls all, in the order in which they were added.
        let watch = hold.on_lost(move |reason| {
            if let Some(callbacks) = callbacks.upgrade() {
                callbacks.call(&callbacks.lost, move |py| {
                    Ok((value::reason(py, reason)?,).into_pyobject(py)?.unbind())
                });
            }
        })?;
        list.add(watch, callback);
        Ok(())
    }

    /// Adds a callback for when others wait for what the hold has.
    pub(crate) fn add_wanted(self: &Arc<Self>, hold: &Hold, callback: Callback) -> Result<(), Error> {
        if hold.process().is_forked() {
            return hold.on_wanted(|| ()).map(drop);
        }
        let callbacks = Arc::downgrade(self);
        let mut list = lock_ignoring_poison(&self.wanted);
        let watch = hold.on_wanted(move || {
            if let Some(callbacks) = callbacks.upgrade() {
                callbacks.call(&callbacks.wanted, |py| Ok(PyTuple::empty(py).unbind()));
            }
        })?;
        list.add(watch, callback);
        Ok(())
    }

    /// Drops all callbacks, so that none of them is called any more.
    pub(crate) fn forget(&self, _: Python<'_>) {
        for list in [&self.lost, &self.wanted] {
            let List { watches, callbacks, .. } = std::mem::take(&mut *lock_ignoring_poison(list));
            drop(watches);
            for callback in callbacks {
                callback.forget();
            }
        }
    }

    /// Calls the callbacks of a list that have not been called yet, with what `arguments` gives.
    fn call(
        &self,
        list: &Mutex<List>,
        arguments: impl Fn(Python<'_>) -> PyResult<Py<PyTuple>> + Copy + Send + 'static,
    ) {
        let mut list = lock_ignoring_poison(list);
        for callback in &list.callbacks[list.called..] {
            let callback = callback.clone();
            // Without a thread nothing can be called. The hold still gives its state when it is asked.
            let _ = call_in_lane_later(&CALLBACKS, self.lane, move |py| {
                let arguments = arguments(py)?;
                Ok(callback.take(py).map(|callback| (callback, arguments)))
            });
        }
        list.called = list.callbacks.len();
    }
}
