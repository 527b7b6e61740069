//! The common part of blocking and asyncio holds, and the outcome of their release.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::callback::Callback;
use crate::calls::coroutine::warn;
use crate::guest::dispatch::CALLBACKS;
use crate::guest::error::{raised, unpicklable};
use crate::guest::exit::is_over;
use crate::guest::log;
use crate::guest::value;
use crate::shared::hold::SharedHold;
use crate::shared::loss::Loss;
use crate::shared::wanted::Wanted;
use pyo3::exceptions::PyResourceWarning;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;
use zklock_core::{Error, ErrorKind, HoldState, LossReason};

/// The methods that a `Hold` and an `AsyncHold` share.
#[pyclass(frozen, subclass, weakref, module = "zklock")]
pub(crate) struct BaseHold {
    anchor: Py<CallbackAnchor>,
    pub(crate) held: Arc<SharedHold>,
    /// Whether this object is the only one that keeps the hold, so that the hold ends with it.
    is_value: bool,
}

impl BaseHold {
    pub(crate) fn new(py: Python<'_>, held: Arc<SharedHold>, is_value: bool) -> PyResult<Self> {
        if is_value {
            held.become_value();
        }
        Ok(Self { anchor: held.anchored().anchor(py)?, held, is_value })
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        let hold = &self.held.hold;
        let (path, token, node) = (hold.path(), hold.token(), hold.node());
        let state = match hold.state() {
            HoldState::Held => format!("held for {:.3} s at least", hold.valid_for().as_secs_f64()),
            HoldState::AtRisk => format!("at risk, held for {:.3} s", hold.valid_for().as_secs_f64()),
            HoldState::Released => "released".to_owned(),
            HoldState::Lost(reason) => format!("lost: {reason}"),
            _ => "in an unknown state".to_owned(),
        };
        let name = node.rsplit('/').next().unwrap_or_default();
        format!("<zklock.{class} of {path:?} {state}, token {token}, node {name}>")
    }
}

#[pymethods]
impl BaseHold {
    /// The fencing token of this grant. If two grants at one path exclude each other, the later one has the larger token.
    ///
    /// A lock that was made with ``linger`` or ``local_turns`` may be passed on within its client, and then the later grant
    /// has the same token. So the resource that such a lock guards must accept a token equal to the largest that it has
    /// seen.
    ///
    /// Grants that do not exclude each other may get their tokens in any order: two readers with no writer between them, or
    /// two permits of a semaphore. So compare a reader's token only with those of writers.
    #[getter]
    fn token(&self) -> u64 {
        self.held.hold.token().value()
    }

    /// The path of the lock.
    #[getter]
    fn path(&self) -> &str {
        self.held.hold.path()
    }

    /// The path of this hold's node.
    #[getter]
    fn node(&self) -> &str {
        self.held.hold.node()
    }

    /// The state of the hold: a ``HoldState``.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        value::state(py, self.held.hold.state())
    }

    /// The event that the hold is lost: a ``Loss``. You can check it, wait for it or await it.
    #[getter]
    fn lost(&self) -> Loss {
        Loss::of(&self.held)
    }

    /// How many more seconds the lock is certain to be held, even if the client hears nothing more from the servers.
    ///
    /// Zero means that others may hold it. That is the answer after a loss, after a release, and in a forked process. The
    /// call sends no request, and never raises. An answer stays true to its end, whatever the network and the servers do, unless the
    /// hold is released or an operator ends it. But if the process is paused before it does what the lock guards, that end may
    /// have passed by then. The ``token`` and ``guarded`` writes protect against that.
    fn valid_for(&self) -> f64 {
        self.held.hold.valid_for().as_secs_f64()
    }

    /// Calls ``callback(reason)`` once, with a ``LossReason``, when the hold is lost. If it is already lost, the call comes
    /// at once. If it is released first, the call never comes.
    ///
    /// The callbacks of one hold are called one at a time, on a thread for callbacks. Those of different holds do not wait
    /// for each other, unless 32 are running. If a callback raises, the exception goes to ``sys.unraisablehook``. Under
    /// gevent and eventlet, a greenlet of the main thread calls them. In asyncio, let the callback use
    /// ``loop.call_soon_threadsafe``. A callback is not called if the garbage collector takes it apart together with its
    /// hold.
    ///
    /// Raises ``TypeError`` if ``callback`` is not callable, and ``ForkedError`` if this process was forked from the one
    /// that holds the lock.
    fn on_lost(&self, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = callback.py();
        let callback = Callback::new(callback, "on_lost", "the reason of the loss")?;
        CALLBACKS.start_in_a_greenlet(py)?;
        let held = &self.held;
        held.callbacks().add_lost(&held.hold, callback.clone()).map_err(|error| raised(py, &error))?;
        held.anchored().add(&callback);
        Ok(())
    }

    /// The event that others wait for what this hold has: a ``Wanted``. You can check it, wait for it or await it. Use it
    /// to finish early, or to release the lock between two pieces of work.
    ///
    /// A request by ``Lock.revoke``, or by Curator's ``Revoker``, counts as a waiter.
    ///
    /// The first use of this property starts to watch for others: the client lists the queue and reads the hold's own nodes
    /// once, and leaves watches, which the next contender or request triggers. A hold whose ``wanted`` is never used costs
    /// nothing.
    #[getter]
    fn wanted(&self) -> Wanted {
        Wanted::of(&self.held)
    }

    /// Calls ``callback()`` once, when others wait for what this hold has. If they already do, the call comes at once. If
    /// the hold is released or lost first, the call never comes.
    ///
    /// See ``wanted`` for what this costs, and ``on_lost`` for how callbacks are called.
    ///
    /// Raises ``TypeError`` if ``callback`` is not callable, and ``ForkedError`` if this process was forked from the one
    /// that holds the lock.
    fn on_wanted(&self, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = callback.py();
        let callback = Callback::new(callback, "on_wanted", "nothing")?;
        CALLBACKS.start_in_a_greenlet(py)?;
        let held = &self.held;
        held.callbacks().add_wanted(&held.hold, callback.clone()).map_err(|error| raised(py, &error))?;
        held.anchored().add(&callback);
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.get().describe(&slf.get_type().name()?.to_cow()?))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("hold", "send its token instead"))
    }
}

impl Drop for BaseHold {
    fn drop(&mut self) {
        let held = &self.held;
        let is_kept = self.is_value && held.is_live() && !held.is_released();
        if is_kept && !is_over() && !held.hold.process().is_forked() {
            let (path, token) = (held.hold.path(), held.hold.token());
            warn::<PyResourceWarning>(&format!(
                "the hold of {path} with token {token} was never released: use `with`, or call release()"
            ));
        }
    }
}

/// Forgives the loss of a hold at the end of the interpreter. Its clients are closed then, which has freed their locks. A
/// hold that is only released after that (by a generator that is taken down in the middle of a block) was not lost.
pub(crate) fn unless_over(error: Error) -> Result<(), Error> {
    let is_closed = matches!(error.kind(), ErrorKind::Closed | ErrorKind::Lost(LossReason::ClientClosed));
    if is_closed && is_over() { Ok(()) } else { Err(error) }
}

/// Returns the exception at the end of a `with` block. It never replaces the block's own exception, which gets a note that
/// the lock was lost. It is also not raised if the servers are slow to confirm the release: that would look as if the lock
/// had not been acquired.
pub(crate) fn left(released: Result<(), Error>, exception: &Bound<'_, PyAny>) -> PyResult<()> {
    let Err(error) = released.or_else(unless_over) else { return Ok(()) };
    let (py, has_failed) = (exception.py(), !exception.is_none());
    match error.kind() {
        ErrorKind::Interrupted => return Err(raised(py, &error)),
        // Another thread was faster.
        ErrorKind::NotHeld => return Ok(()),
        ErrorKind::Lost(_) if has_failed => note(exception, &error.to_string()),
        _ => {}
    }
    match error.kind() {
        kind if has_failed || kind == ErrorKind::Timeout => {
            // When the interpreter is ending, no thread can be started for the log.
            if !is_over() {
                log::warn(py, &error.to_string());
            }
            Ok(())
        }
        _ => Err(raised(py, &error)),
    }
}

/// Adds a note to an exception of a block. Before Python 3.11 a traceback does not show it, but it is there.
pub(crate) fn note(exception: &Bound<'_, PyAny>, text: &str) {
    let py = exception.py();
    let text = format!("zklock: {text}; while the block ran, others may have held the lock too");
    let noted = if exception.hasattr(intern!(py, "add_note")).unwrap_or_default() {
        exception.call_method1(intern!(py, "add_note"), (&text,)).map(drop)
    } else if let Ok(notes) = exception.getattr(intern!(py, "__notes__")) {
        notes.call_method1(intern!(py, "append"), (&text,)).map(drop)
    } else {
        exception.setattr(intern!(py, "__notes__"), [&text])
    };
    // If the exception takes no notes, do not hide it behind another one. The loss is logged in any case.
    drop(noted);
}
