//! Greenlets: many callers in one thread.
//!
//! A greenlet cannot wait inside the core. A wait of the core has its state on the stack, other threads know its
//! address, and greenlets that take turns move each other's stacks away. So its call goes on in the background, as in
//! asyncio, and waits in the loop of gevent or eventlet until a descriptor is readable. If those do not
//! run there, it waits in `poll`, with its whole thread.

use crate::calls::owner;
use crate::calls::waker::Waker;
use crate::guest::dispatch::LOG;
use crate::guest::error::{refused, signalled};
use crate::guest::exit;
use crate::guest::patched::{has_loop, is_patched};
use crate::guest::platform::is_main_thread;
use crate::guest::sync::intern;
use crate::guest::wait::Doorbell;
use pyo3::exceptions::PyInterruptedError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock::face::{Park, Parked};
use zklock::{Call, Error};

/// The greenlet that makes the call.
pub(crate) struct Greenlet<'py> {
    py: Python<'py>,
    /// How it waits so that others run.
    waits: Option<Bound<'py, PyAny>>,
}

impl<'py> Greenlet<'py> {
    /// Returns the calling greenlet; `None` if the thread itself should wait.
    pub(crate) fn current(py: Python<'py>) -> PyResult<Option<Self>> {
        let Some(current) = owner::current_greenlet(py)? else { return Ok(None) };
        let mut waits = None;
        if is_patched(py)? && (is_main_thread() || has_loop(py)?) {
            let way = py.import("zklock._greenlets")?.call_method0(intern!(py, "waiter"))?;
            waits = Some(way).filter(|way| !way.is_none());
        }
        if waits.is_some() {
            // Python may have been patched since a client was made.
            LOG.start_in_a_greenlet(py)?;
        } else if owner::is_first(&current)? {
            return Ok(None);
        }
        Ok(Some(Self { py, waits }))
    }

    /// Whether other greenlets of its thread run while it waits.
    pub(crate) fn lets_others_run(&self) -> bool {
        self.waits.is_some()
    }

    /// Waits for this call.
    pub(crate) fn wait_for<T: Send + 'static>(&self, mut call: Call<T>) -> PyResult<Result<T, Error>> {
        if let Some(result) = call.at_once() {
            return Ok(result);
        }
        let waker = Arc::<Waker>::default();
        // Dropping it ends the call, even if the greenlet is killed.
        let started = match call.detach(waker.on_ready()) {
            Ok(started) => started,
            Err(error) => return Ok(Err(error)),
        };
        let doorbell = self.doorbell()?;
        loop {
            waker.clear();
            if let Some(result) = started.fetch() {
                return Ok(result);
            }
            if waker.wakes_greenlet(&doorbell) {
                self.wait(&doorbell, started.due())?;
            }
        }
    }

    fn doorbell(&self) -> PyResult<Arc<Doorbell>> {
        Doorbell::new().map(Arc::new).map_err(|error| {
            let message =
                format!("the system has no descriptor left ({error}): raise the limit of open files");
            refused(self.py, message)
        })
    }

    /// Waits until it rings, or until this time.
    fn wait(&self, doorbell: &Arc<Doorbell>, deadline: Option<Instant>) -> PyResult<()> {
        let Some(waits) = &self.waits else { return self.park(doorbell, deadline) };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        waits.call1((doorbell.descriptor(), left.as_ref().map(Duration::as_secs_f64)))?;
        // A copy of it that runs on in a child leaves the bell to its parent, and what it waited for refuses it.
        doorbell.clear();
        Ok(())
    }

    /// Waits with the whole thread.
    fn park(&self, doorbell: &Arc<Doorbell>, deadline: Option<Instant>) -> PyResult<()> {
        let parked = self.py.detach(|| {
            let parked = doorbell.park(deadline);
            exit::stay_if_over();
            parked
        });
        match parked {
            Parked::Woken | Parked::Late => Ok(()),
            Parked::Interrupted => {
                Err(signalled().unwrap_or_else(|| PyInterruptedError::new_err("the wait was interrupted")))
            }
        }
    }
}
