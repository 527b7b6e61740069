//! A hold in asyncio.

use super::owner;
use crate::coroutine::{Begun, Coroutine};
use crate::error::raised;
use crate::guarded::AsyncGuarded;
use crate::hold::{BaseHold, left};
use crate::place::Held;
use crate::value::boolean;
use pyo3::prelude::*;
use std::sync::Arc;
use zklock_core::Owner;

/// The proof that a lock is held, in asyncio. ``async with`` gives one, and so does ``AsyncLock.hold``.
///
/// >>> async def watch():
/// ...     async with zk.mutex("/locks/doc") as hold:
/// ...         lost = asyncio.ensure_future(hold.lost)
/// ...         await asyncio.wait({lost}, timeout=0.01)
/// ...         return lost.done(), lost.cancel(), await hold.confirm() > 0
/// >>> asyncio.run(watch())
/// (False, True, True)
#[pyclass(frozen, extends = BaseHold, module = "zklock")]
pub(crate) struct AsyncHold;

impl AsyncHold {
    pub(crate) fn of(py: Python<'_>, held: Arc<Held>, is_value: bool) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(BaseHold::new(held, is_value)).add_subclass(Self))
    }
}

#[pymethods]
impl AsyncHold {
    /// Asks the quorum whether the lock is still held. As ``Hold.confirm``.
    fn confirm(slf: &Bound<'_, Self>) -> Coroutine {
        let held = slf.as_super().get().held.clone();
        Coroutine::new("AsyncHold.confirm", move |py, bell| {
            let call = held.hold.start_confirm(bell.ringer()).map_err(|error| raised(py, &error))?;
            Ok(Begun::call(call, |py, confirmed| match confirmed {
                Ok(valid_for) => Ok(valid_for.as_secs_f64().into_pyobject(py)?.into_any().unbind()),
                Err(error) => Err(raised(py, &error)),
            }))
        })
    }

    /// Writes to ZooKeeper that are done only if the lock is still held. As ``Hold.guarded``.
    fn guarded(slf: &Bound<'_, Self>) -> PyResult<Py<AsyncGuarded>> {
        AsyncGuarded::of(slf.py(), slf.as_super().get().held.clone())
    }

    /// Releases the lock. As ``Hold.release``; it begins at once, and to await it is to wait until the ensemble has
    /// confirmed it.
    fn release(slf: &Bound<'_, Self>) -> PyResult<Coroutine> {
        let py = slf.py();
        release(py, &slf.as_super().get().held, owner(py)?)
    }

    fn __aenter__(slf: Py<Self>) -> PyResult<Coroutine> {
        Ok(Coroutine::done("AsyncHold.__aenter__", slf.into_any()))
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __aexit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let _ = (exception, traceback);
        leave(kind, &slf.as_super().get().held)
    }
}

/// Begins the release.
pub(crate) fn release(py: Python<'_>, held: &Held, owner: Owner) -> PyResult<Coroutine> {
    Coroutine::begun("AsyncLock.release", |bell| {
        let begun = held.hold.start_release(owner, bell.ringer());
        held.forget_callbacks(py);
        let call = begun.map_err(|error| raised(py, &error))?;
        Ok(call.map_or_else(|| Begun::Done(py.None()), |call| Begun::call(call, crate::coroutine::nothing)))
    })
}

/// Begins the release at the end of an `async with` block. The coroutine gives `False`: what the block raised
/// goes on.
pub(crate) fn leave(kind: &Bound<'_, PyAny>, held: &Arc<Held>) -> PyResult<Coroutine> {
    let py = kind.py();
    let has_failed = !kind.is_none();
    let done = move |py: Python<'_>, released| left(py, released, has_failed).map(|()| boolean(py, false));
    if held.is_released() {
        return Ok(Coroutine::done("AsyncLock.__aexit__", boolean(py, false)));
    }
    if super::is_generator_exit(kind)? {
        // Its coroutine is being closed, and must not wait any more.
        held.hold.let_go();
        held.forget_callbacks(py);
        return Ok(Coroutine::done("AsyncLock.__aexit__", boolean(py, false)));
    }
    Coroutine::begun("AsyncLock.__aexit__", |bell| {
        let begun = held.hold.start_release(owner(py)?, bell.ringer());
        held.forget_callbacks(py);
        match begun {
            Ok(None) => Ok(Begun::Done(done(py, Ok(()))?)),
            Err(error) => Ok(Begun::Done(done(py, Err(error))?)),
            Ok(Some(call)) => Ok(Begun::call(call, done)),
        }
    })
}
