//! The handlers that are told of a loss, one after the other.

use crate::dispatch::{LOSSES, call_strand_later, strand};
use crate::sync::lock_ignoring_poison;
use crate::value;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};
use zklock_core::blocking::{Hold, Watch};
use zklock_core::{Error, LossReason};

/// What is called when a hold is lost. It is taken out then, or when nobody is to be told any more.
pub(crate) type Callback = Arc<Mutex<Option<Py<PyAny>>>>;

/// The handlers of a hold's loss.
pub(crate) struct Told {
    strand: u64,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    watches: Vec<Watch>,
    callbacks: Vec<Callback>,
    /// How many of them have been told.
    told: usize,
}

impl Told {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { strand: strand(), list: Mutex::default() })
    }

    pub(crate) fn add(self: &Arc<Self>, hold: &Hold, callback: Callback) -> Result<(), Error> {
        if hold.process().is_forked() {
            // Its list may be locked for ever: this is refused by the hold.
            return hold.on_lost(|_| ()).map(drop);
        }
        let told = Arc::downgrade(self);
        let mut list = lock_ignoring_poison(&self.list);
        // Watches of one hold are woken in any order. Whichever is the first tells all, in theirs.
        let watch = hold.on_lost(move |reason| {
            if let Some(told) = told.upgrade() {
                told.tell(reason);
            }
        })?;
        list.watches.push(watch);
        list.callbacks.push(callback);
        Ok(())
    }

    /// After this nobody is told of anything any more.
    pub(crate) fn forget(&self, _: Python<'_>) {
        let mut list = lock_ignoring_poison(&self.list);
        let List { watches, callbacks, .. } = std::mem::take(&mut *list);
        drop(list);
        drop(watches);
        for callback in callbacks {
            let callback = lock_ignoring_poison(&callback).take();
            drop(callback);
        }
    }

    fn tell(&self, reason: LossReason) {
        let mut list = lock_ignoring_poison(&self.list);
        for callback in &list.callbacks[list.told..] {
            let callback = callback.clone();
            // Without a thread for it nobody can be told; the state says it all the same.
            let _ = call_strand_later(&LOSSES, self.strand, move |py| {
                let reason = (value::reason(py, reason)?,).into_pyobject(py)?.unbind();
                let callback = lock_ignoring_poison(&callback).take();
                Ok(callback.map(|callback| (callback, reason)))
            });
        }
        list.told = list.callbacks.len();
    }
}
