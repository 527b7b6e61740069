//! The proof that a lock is held.

use crate::aio;
use crate::callback::{self, Callback};
use crate::coroutine::warn;
use crate::dispatch::CALLBACKS;
use crate::error::{raised, unpicklable};
use crate::exit::{is_over, stay_if_over};
use crate::greenlet::Greenlet;
use crate::guarded::Guarded;
use crate::log;
use crate::loss::Loss;
use crate::place::Held;
use crate::value;
use crate::wait::detached;
use pyo3::exceptions::PyResourceWarning;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;
use zklock_core::{Error, ErrorKind, HoldState, LossReason};

/// What a `Hold` and an `AsyncHold` have in common.
#[pyclass(frozen, subclass, weakref, module = "zklock")]
pub(crate) struct BaseHold {
    pub(crate) held: Arc<Held>,
    /// Whether nobody else keeps the hold, so that it ends with this object.
    is_value: bool,
    callbacks: callback::Given,
}

/// The proof that a lock is held. A ``with`` block gives one, and so does ``Lock.hold``.
///
/// >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
/// >>> hold.token > 0, hold.state
/// (True, <HoldState.HELD: 'held'>)
/// >>> hold.release()
/// >>> hold.state
/// <HoldState.RELEASED: 'released'>
///
/// It is a context manager, too. One that came from ``Lock.hold`` and is forgotten is released by the
/// garbage collector, with a ``ResourceWarning``.
#[pyclass(frozen, extends = BaseHold, module = "zklock")]
pub(crate) struct Hold;

impl BaseHold {
    pub(crate) fn new(held: Arc<Held>, is_value: bool) -> Self {
        Self { held, is_value, callbacks: callback::Given::default() }
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

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it so")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
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

impl Hold {
    pub(crate) fn of(py: Python<'_>, held: Arc<Held>, is_value: bool) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(BaseHold::new(held, is_value)).add_subclass(Self))
    }
}

#[pymethods]
impl Hold {
    /// Asks the quorum whether the lock is still held: for how many seconds it is certain to be.
    ///
    /// >>> with zk.mutex("/locks/doc") as hold:
    /// ...     hold.confirm() > 0
    /// True
    ///
    /// Raises ``LockLost`` if it is not, ``Unreachable`` if the ensemble does not answer while the lease
    /// lasts, ``NotHeld`` after a release.
    fn confirm(slf: &Bound<'_, Self>) -> PyResult<f64> {
        let (py, held) = (slf.py(), slf.as_super().get().held.clone());
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(aio::hold::confirm(held))?.extract(py);
        }
        detached(py, || held.hold.confirm()).map(|valid_for| valid_for.as_secs_f64())
    }

    /// What is in a node: a ``NodeData`` with its ``data`` and ``version``, or ``None`` if there is no such node.
    ///
    /// >>> with zk.mutex("/locks/doc") as hold:
    /// ...     hold.read("/doc-state") is None
    /// True
    ///
    /// It is as new as anything that the ensemble had committed when this was called, and the outcome of a guarded write of
    /// this hold is certain by then: so after ``Uncertain`` read, then decide. It works while the client is open, also when
    /// the hold is lost or released.
    ///
    /// Raises ``Unreachable`` if the ensemble does not answer within a session timeout, or two seconds; ``Refused`` if the
    /// access list does not allow it; ``InvalidInput`` for a bad path; ``Closed``.
    fn read(slf: &Bound<'_, Self>, path: &str) -> PyResult<Py<PyAny>> {
        let held = slf.as_super().get().held.clone();
        if let Some(greenlet) = Greenlet::current(slf.py())? {
            return greenlet.wait_for(aio::hold::read(held, path.to_owned()));
        }
        let node = detached(slf.py(), || held.hold.read(path))?;
        value::node(slf.py(), node)
    }

    /// Writes to ZooKeeper that are done only if the lock is still held when the quorum commits them.
    ///
    /// >>> with zk.mutex("/locks/doc") as hold:
    /// ...     hold.guarded().create("/doc-state", b"begun").set_data("/doc-state", b"done").commit()
    /// ...     hold.read("/doc-state")
    /// ...     hold.guarded().delete("/doc-state").commit()
    /// (0, 1)
    /// NodeData(data=b'done', version=1)
    /// (None,)
    fn guarded(slf: &Bound<'_, Self>) -> PyResult<Py<Guarded>> {
        Guarded::of(slf.py(), slf.as_super().get().held.clone())
    }

    /// Releases the lock, and waits until the ensemble has confirmed it.
    ///
    /// Raises ``LockLost`` if the hold was found to be lost, ``NotOwner`` if the lock is reentrant and
    /// belongs to another thread, ``NotHeld`` if it was released before, ``Timeout`` if the ensemble has
    /// not answered within a session timeout: then the release goes on in the background.
    fn release(slf: &Bound<'_, Self>) -> PyResult<()> {
        release(slf.py(), &slf.as_super().get().held)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (kind, traceback);
        leave(&slf.as_super().get().held, exception)
    }
}

/// Releases, and raises what came of it.
pub(crate) fn release(py: Python<'_>, held: &Held) -> PyResult<()> {
    if let Some(greenlet) = Greenlet::current(py)? {
        return greenlet.wait_for(aio::hold::release(py, held, greenlet.owner)?).map(drop);
    }
    let released = detached(py, || held.hold.release().or_else(unless_over));
    held.forget_callbacks(py);
    released
}

/// At the interpreter's end its clients are closed, which has freed their locks. What is still released then (by a
/// generator that is taken down in the middle of a block) has not been lost.
pub(crate) fn unless_over(error: Error) -> Result<(), Error> {
    let is_closed = matches!(error.kind(), ErrorKind::Closed | ErrorKind::Lost(LossReason::ClientClosed));
    if is_closed && is_over() { Ok(()) } else { Err(error) }
}

/// Releases at the end of a `with` block. The exception is what the block raised, or `None`.
pub(crate) fn leave(held: &Held, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = exception.py();
    if held.is_released() {
        return Ok(false);
    }
    if let Some(greenlet) = Greenlet::current(py)? {
        let left = aio::hold::begin_to_leave(py, held, greenlet.owner, exception)?;
        return greenlet.wait_for(left).map(|_| false);
    }
    let released = py.detach(|| held.hold.release().inspect(|()| stay_if_over()));
    held.forget_callbacks(py);
    left(released, exception).map(|()| false)
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
