//! What the blocking and the asyncio face of one client share, with all that they make.

use crate::calls::connection::ConnectionCallbacks;
use crate::guest::exit::CloseAtExit;
use crate::guest::log;
use crate::guest::sync::lock_ignoring_poison;
use crate::held::{Held, this_thread};
use crate::holds::Holds;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use zklock::Client;
use zklock::ClientOptions;
use zklock::further::Started;

/// A client, which may not have connected yet.
pub(crate) struct ClientInner {
    pub(crate) core: Client,
    pub(crate) hosts: String,
    pub(crate) callbacks: Arc<ConnectionCallbacks>,
    holds: Mutex<HashMap<String, Arc<Holds>>>,
}

impl ClientInner {
    pub(crate) fn new(options: ClientOptions, hosts: String) -> Arc<Self> {
        let callbacks = ConnectionCallbacks::new();
        let told = callbacks.clone();
        let core = Client::lazy(options).with_listener(move |state| told.tell(state));
        Arc::new(Self { core, hosts, callbacks, holds: Mutex::default() })
    }

    /// Prepares to connect. Call it before anything that may need a connection.
    pub(crate) fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        if self.core.has_connected() {
            return Ok(());
        }
        log::prepare(py)?;
        self.callbacks.prepare(py)
    }

    /// Prepares to close the client on request, so that its callbacks are called for that.
    pub(crate) fn prepare_to_close(&self, py: Python<'_>) {
        if !self.core.is_forked() {
            self.callbacks.keep_until_closed(py);
        }
    }

    /// Returns the holds under this key, which messages call `path`.
    pub(crate) fn holds(&self, key: &str, path: &str) -> Arc<Holds> {
        let mut all = lock_ignoring_poison(&self.holds);
        if let Some(holds) = all.get(key) {
            return holds.clone();
        }
        if all.len() == all.capacity() {
            all.retain(|_, holds| Arc::strong_count(holds) > 1 || !holds.is_empty());
        }
        let holds = Arc::new(Holds::new(path));
        all.insert(key.to_owned(), holds.clone());
        holds
    }

    /// Whether another thread, which still exists, holds something.
    fn is_held_by_others(&self) -> bool {
        let here = this_thread();
        let by_another =
            |held: &Arc<Held>| held.thread.upgrade().is_some_and(|thread| !Arc::ptr_eq(&thread, &here));
        self.held().iter().any(by_another)
    }

    /// All holds.
    pub(crate) fn held(&self) -> Vec<Arc<Held>> {
        lock_ignoring_poison(&self.holds).values().flat_map(|holds| holds.held()).collect()
    }
}

impl CloseAtExit for ClientInner {
    fn close_at_exit(&self, closed: Box<dyn FnOnce() + Send>) -> Option<Started<()>> {
        if self.core.is_forked() || self.is_held_by_others() {
            return None;
        }
        self.core.close().detach(closed).ok()
    }
}
