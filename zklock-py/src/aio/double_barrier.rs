//! Double barriers in asyncio.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::bell::Bell;
use crate::calls::coroutine::{Begun, Coroutine, nothing};
use crate::calls::task::current_or_unique;
use crate::guest::error::{raised, unpicklable};
use crate::guest::value;
use crate::shared::block::Block;
use crate::shared::double_barrier::{SharedDoubleBarrier, SharedMember};
use crate::shared::patience::Given;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;
use std::time::Duration;
use zklock_core::{Error, Owner};

/// A ``DoubleBarrier`` for asyncio. Get one from ``AsyncClient.double_barrier`` or from ``DoubleBarrier.aio``.
///
/// >>> async def take_part():
/// ...     async with zk.aio.double_barrier("/barriers/doc-too", 1, timeout=5) as member:
/// ...         return member.loss
/// >>> print(asyncio.run(take_part()))
/// None
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct AsyncDoubleBarrier {
    anchor: Py<CallbackAnchor>,
    shared: Arc<SharedDoubleBarrier>,
}

/// A ``Member`` for asyncio. Get one from ``AsyncDoubleBarrier.enter`` or from ``async with`` on the barrier.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct AsyncMember {
    anchor: Py<CallbackAnchor>,
    pub(crate) shared: Arc<SharedMember>,
    timeout: Option<Duration>,
}

impl SharedDoubleBarrier {
    /// Starts to enter, for an owner if it is for a block.
    pub(crate) fn start(
        self: &Arc<Self>,
        what: &'static str,
        timeout: Option<Duration>,
        block: Option<(Owner, Block)>,
    ) -> Coroutine {
        let (shared, barrier) = (self.clone(), self.barrier.clone());
        let begin = move |bell: &Arc<Bell>| barrier.start(timeout, bell.ringer());
        self.shared.coroutine(what, begin, move |py, entered| {
            let entered = entered.map_err(|error| raised(py, &error))?;
            let member = SharedMember::of(entered, &shared.shared);
            let anchor = member.anchored.anchor(py)?;
            let given = AsyncMember { anchor, shared: member.clone(), timeout: shared.timeout };
            let given = Py::new(py, given)?.into_any();
            if let Some((owner, block)) = block {
                shared.keep(owner, block, &member);
            }
            Ok(given)
        })
    }

    /// `__aenter__`.
    pub(crate) fn start_block(self: &Arc<Self>, py: Python<'_>) -> PyResult<Coroutine> {
        let block = (current_or_unique(py)?, Block::of_caller(py));
        Ok(self.start("AsyncDoubleBarrier.__aenter__", self.timeout, Some(block)))
    }

    /// `__aexit__`.
    pub(crate) fn end_block(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let py = kind.py();
        self.take(py, current_or_unique(py)?, Block::of_caller(py))?.end_block(kind, exception, self.timeout)
    }
}

impl SharedMember {
    /// Starts to leave at once.
    pub(crate) fn start_leave(
        &self,
        py: Python<'_>,
        what: &'static str,
        timeout: Option<Duration>,
        convert: impl FnOnce(Python<'_>, Result<(), Error>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Coroutine> {
        let member = self.member(py)?;
        Coroutine::begun(what, |bell| {
            let core = member.core();
            let leaving = core.get().and_then(|member| member.begin_to_leave(timeout.into()));
            let call = leaving.and_then(|rest| core.start(bell.ringer(), |_| rest));
            let call = call.map_err(|error| raised(py, &error))?;
            Ok(Begun::call(call, convert))
        })
        .map(|leaving| leaving.keeping(&self.anchored))
    }

    /// `__aexit__`.
    fn end_block(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        timeout: Option<Duration>,
    ) -> PyResult<Coroutine> {
        const WHAT: &str = "AsyncDoubleBarrier.__aexit__";
        let py = kind.py();
        if !kind.is_none() {
            self.fail(exception);
            return Ok(Coroutine::done(WHAT, value::boolean(py, false)));
        }
        self.start_leave(py, WHAT, timeout, |py, left| {
            left.map(|()| value::boolean(py, false)).map_err(|error| raised(py, &error))
        })
    }
}

impl AsyncDoubleBarrier {
    pub(crate) fn of(py: Python<'_>, shared: Arc<SharedDoubleBarrier>) -> PyResult<Py<Self>> {
        let anchor = shared.shared.callbacks.anchor(py)?;
        Py::new(py, Self { shared, anchor })
    }
}

#[pymethods]
impl AsyncDoubleBarrier {
    /// The path of the node whose children are the members.
    #[getter]
    fn path(&self) -> &str {
        self.shared.barrier.path()
    }

    /// How many members open the barrier.
    #[getter]
    fn members(&self) -> u32 {
        self.shared.barrier.members()
    }

    /// Enters as a new member, and waits until all members have entered. If it is cancelled, it is no longer a member. See
    /// ``DoubleBarrier.enter``.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn enter(&self, py: Python<'_>, timeout: Given) -> PyResult<Coroutine> {
        let timeout = timeout.patience(py, self.shared.timeout)?;
        Ok(self.shared.start("AsyncDoubleBarrier.enter", timeout, None))
    }

    fn __aenter__(&self, py: Python<'_>) -> PyResult<Coroutine> {
        self.shared.start_block(py)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __aexit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let _ = traceback;
        self.shared.end_block(kind, exception)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(&self) -> String {
        self.shared.describe("AsyncDoubleBarrier")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable(
            "DoubleBarrier",
            "send its path, and make a Client and a DoubleBarrier in each process",
        ))
    }
}

#[pymethods]
impl AsyncMember {
    /// The path of the barrier.
    #[getter]
    fn path(&self) -> &str {
        &self.shared.path
    }

    /// The path of this member's node.
    #[getter]
    fn node(&self) -> &str {
        &self.shared.node
    }

    /// Why the member is lost, or ``None`` if it is not lost. See ``Member.loss``.
    #[getter]
    fn loss(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.shared.loss(py)
    }

    /// Starts to leave at once; await it to wait until all members have left. See ``Member.leave``.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn leave(&self, py: Python<'_>, timeout: Given) -> PyResult<Coroutine> {
        let timeout = timeout.patience(py, self.timeout)?;
        self.shared.start_leave(py, "AsyncMember.leave", timeout, nothing)
    }

    fn __aenter__(slf: Py<Self>) -> Coroutine {
        Coroutine::done("AsyncMember.__aenter__", slf.into_any())
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __aexit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let _ = traceback;
        self.shared.end_block(kind, exception, self.timeout)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(&self) -> String {
        self.shared.describe("AsyncMember")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Member", "enter in each process"))
    }
}
