//! The server, which is kept until it is closed.

use crate::guest::error::{closed, forked, invalid, refused};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use pyo3::prelude::*;
use std::error::Error;
use std::io;
use std::process;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use zklock_testkit::{Builder, StartError};

/// A server that may be closed.
pub(super) struct Embedded {
    server: RwLock<Option<zklock_testkit::Server>>,
    pub(super) hosts: String,
    /// The process that started it.
    home: u32,
}

impl Embedded {
    pub(super) fn start(py: Python<'_>, builder: Builder) -> PyResult<Arc<Self>> {
        let started = py.detach(|| without_signals(|| builder.start()));
        let server = started.map_err(|error| not_started(py, &error))?;
        let hosts = server.connect_string();
        Ok(Arc::new(Self { server: RwLock::new(Some(server)), hosts, home: process::id() }))
    }

    pub(super) fn refuse_forked(&self, py: Python<'_>) -> PyResult<()> {
        if process::id() == self.home {
            return Ok(());
        }
        let message = "this process was forked from the one in which the embedded server runs: here, clients \
                       can use it by its hosts, but only that process can control it";
        Err(forked(py, message.to_owned()))
    }

    /// `None` once it is closed. Calls of one thread do not wait for those of another, but closing it does.
    pub(super) fn call<T>(&self, call: impl FnOnce(&zklock_testkit::Server) -> T) -> Option<T> {
        self.server.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(call)
    }

    /// Like [`call`](Self::call), but releases the interpreter.
    pub(super) fn ask<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&zklock_testkit::Server) -> T + Send,
    ) -> PyResult<T> {
        self.refuse_forked(py)?;
        py.detach(|| self.call(call)).ok_or_else(|| is_closed(py))
    }

    pub(super) fn close(&self) {
        drop(self.server.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let server = self.server.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if process::id() != self.home {
            // Its threads do not exist here, so they cannot be waited for.
            std::mem::forget(server);
        } else if server.is_some() {
            // The garbage collector must not wait for it.
            let _ = without_signals(|| thread::Builder::new().spawn(move || drop(server)));
        }
    }
}

pub(super) fn is_closed(py: Python<'_>) -> PyErr {
    closed(py, "the embedded server is closed: start another one".to_owned())
}

/// Threads that are started meanwhile block all signals except their own faults. The others are for the host, whose
/// waits they end.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut blocked = SigSet::all();
    for fault in [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL] {
        blocked.remove(fault);
    }
    let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let outcome = start();
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    outcome
}

fn not_started(py: Python<'_>, error: &StartError) -> PyErr {
    let reason = error.source().and_then(|reason| reason.downcast_ref::<io::Error>());
    // If it is not an error of the system, the text was not an address.
    match reason.and_then(io::Error::raw_os_error) {
        Some(_) => refused(py, error.to_string()),
        None => invalid(py, error.to_string()),
    }
}
