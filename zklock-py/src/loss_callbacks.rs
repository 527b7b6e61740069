//! The functions that are called when a hold is lost, one after the other.

use crate::callback::Callback;
use crate::dispatch::{CALLBACKS, call_strand_later, strand};
use crate::sync::lock_ignoring_poison;
use crate::value;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};
use zklock_core::blocking::{Hold, Watch};
use zklock_core::{Error, LossReason};

/// Those of one hold.
pub(crate) struct LossCallbacks {
    strand: u64,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    watches: Vec<Watch>,
    callbacks: Vec<Callback>,
    /// How many of them have been called, or are about to be.
    called: usize,
}

impl LossCallbacks {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { strand: strand(), list: Mutex::default() })
    }

    pub(crate) fn add(self: &Arc<Self>, hold: &Hold, callback: Callback) -> Result<(), Error> {
        if hold.process().is_forked() {
            // Its list may be locked for ever: this is refused by the hold.
            return hold.on_lost(|_| ()).map(drop);
        }
        let callbacks = Arc::downgrade(self);
        let mut list = lock_ignoring_poison(&self.list);
        // Watches of one hold are woken in any order. Whichever is the first calls all, in the order in which they were given.
        let watch = hold.on_lost(move |reason| {
            if let Some(callbacks) = callbacks.upgrade() {
                callbacks.call(reason);
            }
        })?;
        list.watches.push(watch);
        list.callbacks.push(callback);
        Ok(())
    }

    /// After this none of them is called any more.
    pub(crate) fn forget(&self, _: Python<'_>) {
        let mut list = lock_ignoring_poison(&self.list);
        let List { watches, callbacks, .. } = std::mem::take(&mut *list);
        drop(list);
        drop(watches);
        for callback in callbacks {
            callback.forget();
        }
    }

    fn call(&self, reason: LossReason) {
        let mut list = lock_ignoring_poison(&self.list);
        for callback in &list.callbacks[list.called..] {
            let callback = callback.clone();
            // Without a thread nothing can be called; the state says it all the same.
            let _ = call_strand_later(&CALLBACKS, self.strand, move |py| {
                let reason = (value::reason(py, reason)?,).into_pyobject(py)?.unbind();
                Ok(callback.take(py).map(|callback| (callback, reason)))
            });
        }
        list.called = list.callbacks.len();
    }
}
