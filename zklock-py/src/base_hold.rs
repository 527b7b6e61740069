//! What the holds of both faces have in common, and what comes of their release.

use crate::callback::{self, Callback};
use crate::connection::CallbackAnchor;
use crate::coroutine::warn;
use crate::dispatch::CALLBACKS;
use crate::error::{raised, unpicklable};
use crate::exit::is_over;
use crate::log;
use crate::loss::Loss;
use crate::shared_hold::SharedHold;
use crate::value;
use pyo3::exceptions::PyResourceWarning;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;
use zklock_core::{Error, ErrorKind, HoldState, LossReason};

/// What a `Hold` and an `AsyncHold` have in common.
#[pyclass(frozen, subclass, weakref, module = "zklock")]
pub(crate) struct BaseHold {
    pub(crate) held: Arc<SharedHold>,
    /// Whether nobody else keeps the hold, so that it ends with this object.
    is_value: bool,
    callbacks: callback::Given,
    anchor: Py<CallbackAnchor>,
}

impl BaseHold {
    pub(crate) fn new(py: Python<'_>, held: Arc<SharedHold>, is_value: bool) -> PyResult<Self> {
        let anchor = held.of_client.anchor(py)?;
        Ok(Self { held, is_value, callbacks: callback::Given::default(), anchor })
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
    /// The fencing token of this grant: of two grants of one path that exclude each other, the later has the greater one.
    ///
    /// Those who can hold together are told of it in any order: of two readers without a writer between them the later
    /// may have the smaller token, and so may the later of two permits. So compare a reader's token with those of
    /// writers alone.
    #[getter]
    fn token(&self) -> u64 {
        self.held.hold.token().value()
    }

    /// The path of the lock.
    #[getter]
    fn path(&self) -> &str {
        self.held.hold.path()
    }

    /// The path of the node that stands for this hold.
    #[getter]
    fn node(&self) -> &str {
        self.held.hold.node()
    }

    /// How the hold stands: a ``HoldState``.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        value::state(py, self.held.hold.state())
    }

    /// The event that the hold is lost.
    #[getter]
    fn lost(&self) -> Loss {
        Loss::of(&self.held)
    }

    /// For how many seconds the lock is certain to be held, even if the ensemble is not heard from again.
    ///
    /// Zero means that others may hold it. It costs no request. It is the state of now: a process that
    /// is paused between this call and what it guards may find it changed. Against that help the
    /// ``token``, and ``guarded`` writes.
    fn valid_for(&self) -> f64 {
        self.held.hold.valid_for().as_secs_f64()
    }

    /// Calls ``callback(reason)`` when the hold is lost, unless it is released before.
    ///
    /// Callbacks of one hold are called one after the other, on a thread for such calls. Those of other holds do not
    /// wait for them, unless 32 run already. Under gevent and eventlet a greenlet of the main thread calls them. In
    /// asyncio, let it call ``loop.call_soon_threadsafe``.
    fn on_lost(&self, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = callback.py();
        let callback = Callback::new(callback, "on_lost", "the reason of the loss")?;
        CALLBACKS.start_in_a_greenlet(py)?;
        let held = &self.held;
        held.callbacks.add(&held.hold, callback.clone()).map_err(|error| raised(py, &error))?;
        self.callbacks.add(&callback);
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)?;
        self.callbacks.traverse(&visit)
    }

    fn __clear__(&self) {
        self.callbacks.clear();
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

/// At the interpreter's end its clients are closed, which has freed their locks. What is still released then (by a
/// generator that is taken down in the middle of a block) has not been lost.
pub(crate) fn unless_over(error: Error) -> Result<(), Error> {
    let is_closed = matches!(error.kind(), ErrorKind::Closed | ErrorKind::Lost(LossReason::ClientClosed));
    if is_closed && is_over() { Ok(()) } else { Err(error) }
}

/// What the end of a `with` block raises. Never anything in the place of the block's own exception, which is told in a
/// note that the lock was lost; and not that the ensemble is late to confirm: that would look as if the lock had not been
/// acquired.
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
            // At its end the interpreter can start no thread for the log.
            if !is_over() {
                log::warn(py, &error.to_string());
            }
            Ok(())
        }
        _ => Err(raised(py, &error)),
    }
}

/// Adds a note to what a block raised. Before Python 3.11 a traceback does not show it, but it is there.
pub(crate) fn note(exception: &Bound<'_, PyAny>, text: &str) {
    let py = exception.py();
    let text = format!("zklock: {text}; so what the block did may have met with what others did");
    let noted = if exception.hasattr(intern!(py, "add_note")).unwrap_or_default() {
        exception.call_method1(intern!(py, "add_note"), (&text,)).map(drop)
    } else if let Ok(notes) = exception.getattr(intern!(py, "__notes__")) {
        notes.call_method1(intern!(py, "append"), (&text,)).map(drop)
    } else {
        exception.setattr(intern!(py, "__notes__"), [&text])
    };
    // An exception that takes no notes is not to be hidden by another; the log tells of the loss all the same.
    drop(noted);
}
