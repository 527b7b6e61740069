//! A hold in asyncio.

use crate::calls::bell::Bell;
use crate::calls::coroutine::{Begun, Coroutine, nothing};
use crate::calls::task::current_or_unique;
use crate::guest::error::raised;
use crate::guest::value::{self, boolean};
use crate::shared::base_hold::{BaseHold, left, unless_over};
use crate::shared::block::is_generator_exit;
use crate::shared::guarded::AsyncGuarded;
use crate::shared::hold::SharedHold;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::Arc;
use zklock_core::face::Call;
use zklock_core::{Error, Owner};

/// The proof that a lock is held, for asyncio. Get one from ``async with`` on a lock, or from ``AsyncLock.hold``.
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
    pub(crate) fn of(py: Python<'_>, held: Arc<SharedHold>, is_value: bool) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(BaseHold::new(py, held, is_value)?).add_subclass(Self))
    }
}

#[pymethods]
impl AsyncHold {
    /// Asks the servers whether the lock is still held. See ``Hold.confirm``.
    fn confirm(slf: &Bound<'_, Self>) -> Coroutine {
        confirm(slf.as_super().get().held.clone())
    }

    /// Reads a node. See ``Hold.read``.
    fn read(slf: &Bound<'_, Self>, path: String) -> Coroutine {
        read(slf.as_super().get().held.clone(), path)
    }

    /// Starts a list of writes to ZooKeeper that are only done if the lock is still held. See ``Hold.guarded``.
    fn guarded(slf: &Bound<'_, Self>) -> PyResult<Py<AsyncGuarded>> {
        AsyncGuarded::of(slf.py(), slf.as_super().get().held.clone())
    }

    /// Releases the lock. The release starts at once; await it to wait until the servers have confirmed it. See
    /// ``Hold.release`` for what it raises.
    fn release(slf: &Bound<'_, Self>) -> PyResult<Coroutine> {
        let py = slf.py();
        release(py, &slf.as_super().get().held, current_or_unique(py)?)
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
        let _ = traceback;
        leave(kind, exception, &slf.as_super().get().held)
    }
}

pub(crate) fn confirm(held: Arc<SharedHold>) -> Coroutine {
    let anchored = held.anchored().clone();
    Coroutine::new("AsyncHold.confirm", move |py, bell| {
        let call = held.hold.core().start(bell.ringer(), |hold| async move { hold.confirm().await });
        let call = call.map_err(|error| raised(py, &error))?;
        Ok(Begun::call(call, |py, confirmed| match confirmed {
            Ok(valid_for) => Ok(valid_for.as_secs_f64().into_pyobject(py)?.into_any().unbind()),
            Err(error) => Err(raised(py, &error)),
        }))
    })
    .keeping(&anchored)
}

pub(crate) fn read(held: Arc<SharedHold>, path: String) -> Coroutine {
    let anchored = held.anchored().clone();
    Coroutine::new("AsyncHold.read", move |py, bell| {
        let call = held.hold.core().start(bell.ringer(), |hold| async move { hold.read(&path).await });
        let call = call.map_err(|error| raised(py, &error))?;
        Ok(Begun::call(call, |py, read| match read {
            Ok(node) => value::node(py, node),
            Err(error) => Err(raised(py, &error)),
        }))
    })
    .keeping(&anchored)
}

/// Releases at once; `None` if there is nothing to wait for, because other holds of the owner go on.
fn begin_release(held: &SharedHold, owner: Owner, bell: &Arc<Bell>) -> Result<Option<Call<()>>, Error> {
    let core = held.hold.core();
    core.get()?.begin_release(owner)?.map(|rest| core.start(bell.ringer(), |_| rest)).transpose()
}

/// Starts the release.
pub(crate) fn release(py: Python<'_>, held: &SharedHold, owner: Owner) -> PyResult<Coroutine> {
    Coroutine::begun("AsyncLock.release", |bell| {
        let begun = begin_release(held, owner, bell);
        held.forget_callbacks(py);
        let call = begun.or_else(|error| unless_over(error).map(|()| None));
        let call = call.map_err(|error| raised(py, &error))?;
        let done = |py: Python<'_>, released: Result<(), Error>| nothing(py, released.or_else(unless_over));
        Ok(call.map_or_else(|| Begun::Done(py.None()), |call| Begun::call(call, done)))
    })
    .map(|releasing| releasing.keeping(held.anchored()))
}

/// The exception of a block. A coroutine that waits for the release must not keep the exception alive: it refers to its
/// frames, and the frames to the coroutine, so nothing would ever collect them.
#[derive(Clone, Copy)]
pub(crate) struct Failed(Option<usize>);

impl Failed {
    pub(crate) fn of(exception: &Bound<'_, PyAny>) -> Self {
        Self((!exception.is_none()).then_some(exception.as_ptr() as usize))
    }

    /// As long as the block is being left because of it, it is the exception that is being handled. If it is not, some
    /// other exception is still found, but nobody sees that.
    pub(crate) fn find(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let Some(address) = self.0 else { return Ok(py.None().into_bound(py)) };
        static HANDLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let find = || py.import("sys")?.getattr("exc_info").map(Bound::unbind);
        let handled = HANDLED.get_or_try_init(py, find)?.bind(py).call0()?.get_item(1)?;
        if handled.as_ptr() as usize == address {
            return Ok(handled);
        }
        PyRuntimeError::new_err("the block failed").into_bound_py_any(py)
    }
}

/// Starts the release at the end of an `async with` block. The coroutine returns `False`, so that the block's own
/// exception propagates.
pub(crate) fn leave(
    kind: &Bound<'_, PyAny>,
    exception: &Bound<'_, PyAny>,
    held: &Arc<SharedHold>,
) -> PyResult<Coroutine> {
    let py = kind.py();
    if held.is_released() {
        return Ok(Coroutine::done("AsyncLock.__aexit__", boolean(py, false)));
    }
    if is_generator_exit(kind)? {
        // The event loop is closing this coroutine, so it must not wait any longer.
        held.hold.let_go();
        held.forget_callbacks(py);
        return Ok(Coroutine::done("AsyncLock.__aexit__", boolean(py, false)));
    }
    begin_to_leave(py, held, current_or_unique(py)?, exception)
}

/// Starts the release at the end of a block.
pub(crate) fn begin_to_leave(
    py: Python<'_>,
    held: &SharedHold,
    owner: Owner,
    exception: &Bound<'_, PyAny>,
) -> PyResult<Coroutine> {
    let failed = Failed::of(exception);
    let done = move |py: Python<'_>, released| left(released, &failed.find(py)?).map(|()| boolean(py, false));
    Coroutine::begun("AsyncLock.__aexit__", |bell| {
        let begun = begin_release(held, owner, bell);
        held.forget_callbacks(py);
        match begun {
            Ok(None) => Ok(Begun::Done(done(py, Ok(()))?)),
            Err(error) => Ok(Begun::Done(done(py, Err(error))?)),
            Ok(Some(call)) => Ok(Begun::call(call, done)),
        }
    })
    .map(|leaving| leaving.keeping(held.anchored()))
}
