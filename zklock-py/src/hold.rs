//! The proof that a lock is held.

use crate::coroutine::warn;
use crate::dispatch::call_later;
use crate::error::{raised, unpicklable};
use crate::exit::{is_over, stay_if_over};
use crate::guarded::Guarded;
use crate::log;
use crate::loss::Loss;
use crate::place::{Callback, Held, locked};
use crate::value;
use crate::wait::detached;
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::{Arc, Mutex, Weak};
use zklock_core::blocking::is_forked;
use zklock_core::{Error, ErrorKind, HoldState};

/// What a `Hold` and an `AsyncHold` have in common.
#[pyclass(frozen, subclass, weakref, module = "zklock")]
pub(crate) struct BaseHold {
    pub(crate) held: Arc<Held>,
    /// Whether nobody else keeps the hold, so that it ends with this object.
    is_value: bool,
    /// For the garbage collector to see: a callback may well be a method of who has the hold.
    callbacks: Mutex<Vec<WeakCallback>>,
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

type WeakCallback = Weak<Mutex<Option<Py<PyAny>>>>;

impl BaseHold {
    pub(crate) fn new(held: Arc<Held>, is_value: bool) -> Self {
        Self { held, is_value, callbacks: Mutex::default() }
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
    /// It is called on a thread for such calls, where others wait until it has come back. In asyncio, let it call
    /// ``loop.call_soon_threadsafe``.
    fn on_lost(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<()> {
        if !callback.bind(py).is_callable() {
            let message = "on_lost takes a function, which is called with the reason of the loss";
            return Err(pyo3::exceptions::PyTypeError::new_err(message));
        }
        let callback: Callback = Arc::new(Mutex::new(Some(callback)));
        let kept = callback.clone();
        let told = move |reason| {
            // Without a thread for it nobody can be told; the state says it all the same.
            let _ = call_later(move |py| {
                let reason = (value::reason(py, reason)?,).into_pyobject(py)?.unbind();
                let callback = locked(&callback).take();
                Ok(callback.map(|callback| (callback, reason)))
            });
        };
        let watch = self.held.hold.on_lost(told).map_err(|error| raised(py, &error))?;
        locked(&self.callbacks).push(Arc::downgrade(&kept));
        locked(&self.held.watches).push((watch, kept));
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(callbacks) = self.callbacks.try_lock() else { return Ok(()) };
        for callback in callbacks.iter().filter_map(Weak::upgrade) {
            if let Ok(Some(callback)) = callback.try_lock().as_deref() {
                visit.call(callback)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let callbacks = std::mem::take(&mut *locked(&self.callbacks));
        for callback in callbacks.iter().filter_map(Weak::upgrade) {
            let callback = locked(&callback).take();
            drop(callback);
        }
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
        if self.is_value && held.is_live() && !held.is_released() && !is_over() && !is_forked() {
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
        let held = slf.as_super().get().held.clone();
        detached(slf.py(), || held.hold.confirm()).map(|valid_for| valid_for.as_secs_f64())
    }

    /// Writes to ZooKeeper that are done only if the lock is still held when the quorum commits them.
    ///
    /// >>> with zk.mutex("/locks/doc") as hold:
    /// ...     hold.guarded().create("/doc-state", b"begun").set_data("/doc-state", b"done").commit()
    /// ...     hold.guarded().delete("/doc-state").commit()
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
        let _ = (exception, traceback);
        leave(slf.py(), &slf.as_super().get().held, !kind.is_none())
    }
}

/// Releases, and raises what came of it.
pub(crate) fn release(py: Python<'_>, held: &Held) -> PyResult<()> {
    let released = detached(py, || held.hold.release());
    held.forget_callbacks(py);
    released
}

/// Releases at the end of a `with` block.
pub(crate) fn leave(py: Python<'_>, held: &Held, has_failed: bool) -> PyResult<bool> {
    if held.is_released() {
        return Ok(false);
    }
    let released = py.detach(|| held.hold.release().inspect(|()| stay_if_over()));
    held.forget_callbacks(py);
    left(py, released, has_failed).map(|()| false)
}

/// What the end of a `with` block raises. Never anything in the place of the block's own exception; and
/// not that the ensemble is late to confirm: that would look as if the lock had not been acquired.
pub(crate) fn left(py: Python<'_>, released: Result<(), Error>, has_failed: bool) -> PyResult<()> {
    let Err(error) = released else { return Ok(()) };
    match error.kind() {
        ErrorKind::Interrupted => return Err(raised(py, &error)),
        // Another thread was faster.
        ErrorKind::NotHeld => return Ok(()),
        _ => {}
    }
    match error.kind() {
        kind if has_failed || kind == ErrorKind::Timeout => {
            log::warn(py, &error.to_string());
            Ok(())
        }
        _ => Err(raised(py, &error)),
    }
}
