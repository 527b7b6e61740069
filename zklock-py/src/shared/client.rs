//! The common part of the blocking and the asyncio side of a client.

use crate::calls::bell::Bell;
use crate::calls::connection::ConnectionCallbacks;
use crate::calls::coroutine::{Begun, Coroutine};
use crate::guest::exit::CloseAtExit;
use crate::guest::log;
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::wait::detached;
use crate::shared::hold::{SharedHold, this_thread};
use crate::shared::kept::Kept;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use zklock_core::blocking::Client;
use zklock_core::face::Call;
use zklock_core::{ClientOptions, Error};

/// A client, which may not have connected yet.
pub(crate) struct SharedClient {
    pub(crate) client: Client,
    pub(crate) hosts: String,
    pub(crate) callbacks: Arc<ConnectionCallbacks>,
    kept: Mutex<HashMap<String, Arc<Kept>>>,
}

impl SharedClient {
    pub(crate) fn new(options: ClientOptions, hosts: String) -> Arc<Self> {
        let callbacks = ConnectionCallbacks::new();
        let told = callbacks.clone();
        let client = Client::lazy(options).with_listener(move |state| told.tell(state));
        Arc::new(Self { client, hosts, callbacks, kept: Mutex::default() })
    }

    /// Prepares to connect. Call it before anything that may need a connection.
    pub(crate) fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        if self.client.has_connected() {
            return Ok(());
        }
        log::prepare(py)?;
        self.callbacks.prepare(py)
    }

    /// Makes a call that waits. It connects first if necessary.
    pub(crate) fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce() -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.prepare(py)?;
        detached(py, call)
    }

    /// Makes a call that can be awaited. It connects first if necessary.
    pub(crate) fn coroutine<T: Send + 'static>(
        self: &Arc<Self>,
        what: &'static str,
        begin: impl FnOnce(&Arc<Bell>) -> Result<Call<T>, Error> + Send + 'static,
        convert: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Coroutine {
        let shared = self.clone();
        Coroutine::new(what, move |py, bell| {
            shared.prepare(py)?;
            match begin(bell) {
                Ok(call) => Ok(Begun::call(call, convert)),
                Err(error) => convert(py, Err(error)).map(Begun::Done),
            }
        })
        .keeping(&self.callbacks.anchored)
    }

    /// Prepares to close because somebody asks for it, which callbacks are told.
    pub(crate) fn prepare_to_close(&self, py: Python<'_>) {
        if !self.client.is_forked() {
            self.callbacks.keep_until_closed(py);
        }
    }

    /// Returns the holds under this key, which messages call `path`.
    pub(crate) fn kept(&self, key: &str, path: &str) -> Arc<Kept> {
        let mut all = lock_ignoring_poison(&self.kept);
        if let Some(kept) = all.get(key) {
            return kept.clone();
        }
        if all.len() == all.capacity() {
            all.retain(|_, kept| Arc::strong_count(kept) > 1 || !kept.is_empty());
        }
        let kept = Arc::new(Kept::new(path));
        all.insert(key.to_owned(), kept.clone());
        kept
    }

    /// Whether another thread, which still exists, holds something.
    fn is_held_by_others(&self) -> bool {
        let here = this_thread();
        let by_another =
            |held: &Arc<SharedHold>| held.thread.upgrade().is_some_and(|thread| !Arc::ptr_eq(&thread, &here));
        self.held().iter().any(by_another)
    }

    /// All holds.
    pub(crate) fn held(&self) -> Vec<Arc<SharedHold>> {
        lock_ignoring_poison(&self.kept).values().flat_map(|kept| kept.held()).collect()
    }
}

impl CloseAtExit for SharedClient {
    fn close_at_exit(&self, closed: Box<dyn FnOnce() + Send>) -> Option<Call<()>> {
        if self.client.is_forked() || self.is_held_by_others() {
            return None;
        }
        self.client.start_close(closed).ok()
    }
}
