//! What cancels an `async with` block when its hold is lost. The half that asyncio and trio know is `_cancelling.py`.

use crate::calls::coroutine::Coroutine;
use crate::calls::waker::start_thread;
use crate::guest::error::raised;
use crate::guest::exit::later;
use crate::guest::sync::{Found, intern};
use crate::guest::value;
use crate::held::Held;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use std::sync::Arc;
use zklock::further::Watch;

/// Calls `wake()` of a block when its hold is lost, for as long as this exists.
///
/// It is no callback of the user's: those of one hold wait for each other, and a block that waited for them would be cancelled late.
/// The block must not be kept alive by what waits for the loss, so the reference to it is weak.
#[pyclass(frozen, module = "zklock")]
pub(crate) struct Alarm {
    _watch: Watch,
}

impl Alarm {
    pub(crate) fn set(held: &Held, block: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = block.py();
        start_thread().map_err(|error| raised(py, &error))?;
        let block = PyWeakrefReference::new(block)?.unbind();
        let wake = move |py: Python<'_>| {
            let Some(block) = block.bind(py).upgrade() else { return };
            if let Err(error) = block.call_method0(intern!(py, "wake")) {
                error.write_unraisable(py, Some(&block));
            }
        };
        let watch = held.hold.on_lost(move |_| drop(later(wake))).map_err(|error| raised(py, &error))?;
        Ok(Self { _watch: watch })
    }
}

/// What cancels a block of a lock or a job, from its beginning to its end.
pub(crate) struct Scope {
    scope: Py<PyAny>,
    /// The hold, once there is one.
    watched: Option<(Alarm, Arc<Held>)>,
}

impl Scope {
    /// Returns that of the block which the caller of `__aenter__` begins. `None` without an event loop: to await says why not.
    pub(crate) fn of_caller(py: Python<'_>, path: &str, is_reentrant: bool) -> PyResult<Option<Self>> {
        static SCOPE: Found<Py<PyAny>> = Found::new();
        let find = || py.import("zklock._cancelling")?.getattr("scope").map(Bound::unbind);
        let scope = SCOPE.or_find(find)?.call1(py, (path, is_reentrant))?;
        Ok((!scope.is_none(py)).then_some(Self { scope, watched: None }))
    }

    /// From now on, the loss of this hold cancels the block.
    pub(crate) fn watch(&mut self, py: Python<'_>, held: &Arc<Held>) -> PyResult<()> {
        self.watched = Some((Alarm::set(held, self.scope.bind(py))?, held.clone()));
        Ok(())
    }

    /// Returns what `__aenter__` gives: a task of trio awaits a coroutine of ours by way of another thread.
    pub(crate) fn entering(
        py: Python<'_>,
        scope: Option<Self>,
        entering: impl FnOnce(Option<Self>) -> PyResult<Coroutine>,
    ) -> PyResult<Py<PyAny>> {
        let given = scope.as_ref().map(|scope| scope.scope.clone_ref(py));
        let entering = entering(scope)?.into_py_any(py)?;
        match given {
            Some(given) => given.call_method1(py, intern!(py, "entering"), (entering,)),
            None => Ok(entering),
        }
    }

    /// Ends the block, and returns what `__aexit__` gives. The release begins in any case.
    pub(crate) fn leaving(
        scope: Option<Self>,
        exception: &Bound<'_, PyAny>,
        leave: impl FnOnce() -> PyResult<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = exception.py();
        let Some(Self { scope, watched: Some((alarm, held)) }) = scope else {
            return leave();
        };
        drop(alarm);
        let is_own = scope.call_method1(py, intern!(py, "leave"), (exception,));
        let (leaving, is_own) = (leave()?, is_own?);
        let reason = held.hold.loss().reason().map(|reason| value::reason(py, reason)).transpose()?;
        let arguments = (is_own, leaving, held.hold.path(), reason, exception);
        scope.call_method1(py, intern!(py, "leaving"), arguments)
    }
}
