//! Double barriers: no member begins before all have entered, and none goes on before all are done.

use crate::aio::double_barrier::{AsyncDoubleBarrier, AsyncMember};
use crate::calls::anchor::CallbackAnchor;
use crate::calls::coroutine::{Coroutine, nothing};
use crate::calls::greenlet::{self, Greenlet};
use crate::guest::error::unpicklable;
use crate::guest::wait::detached;
use crate::shared::block::Block;
use crate::shared::double_barrier::{SharedDoubleBarrier, SharedMember};
use crate::shared::patience::Given;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;
use std::time::Duration;

/// A double barrier: entering waits until all members have entered, and leaving waits until all have left. See
/// ``Client.double_barrier``.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct DoubleBarrier {
    anchor: Py<CallbackAnchor>,
    shared: Arc<SharedDoubleBarrier>,
}

/// A member of a double barrier, from entering to leaving. Get one from ``DoubleBarrier.enter`` or from a ``with``
/// block on the barrier.
///
/// It is itself a context manager, which leaves at the end of the block. A member that is dropped leaves in the
/// background.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Member {
    anchor: Py<CallbackAnchor>,
    shared: Arc<SharedMember>,
    timeout: Option<Duration>,
}

impl SharedDoubleBarrier {
    fn enter(self: &Arc<Self>, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Arc<SharedMember>> {
        if let Some(greenlet) = Greenlet::current(py)? {
            let entered = greenlet.wait_for(self.start("DoubleBarrier.enter", timeout, None))?;
            return Ok(entered.bind(py).cast::<AsyncMember>()?.get().shared.clone());
        }
        let entered = self.shared.call(py, || self.barrier.enter_within(timeout, None))?;
        // As with a lock: if a handler that is due raises, the member leaves.
        py.check_signals()?;
        Ok(SharedMember::of(entered, &self.shared))
    }
}

impl SharedMember {
    fn leave(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.start_leave(py, "Member.leave", timeout, nothing)?).map(drop);
        }
        let member = self.member(py)?;
        detached(py, || member.leave_within(timeout, None))
    }

    /// Leaves at the end of a block. If the block failed, it does not wait for the others.
    fn exit(&self, exception: &Bound<'_, PyAny>, timeout: Option<Duration>) -> PyResult<bool> {
        if !exception.is_none() {
            self.fail(exception);
            return Ok(false);
        }
        self.leave(exception.py(), timeout).map(|()| false)
    }
}

impl Member {
    fn of(py: Python<'_>, shared: Arc<SharedMember>, timeout: Option<Duration>) -> PyResult<Self> {
        Ok(Self { anchor: shared.anchored.anchor(py)?, shared, timeout })
    }
}

impl DoubleBarrier {
    pub(crate) fn of(py: Python<'_>, shared: Arc<SharedDoubleBarrier>) -> PyResult<Py<Self>> {
        let anchor = shared.shared.callbacks.anchor(py)?;
        Py::new(py, Self { shared, anchor })
    }
}

#[pymethods]
impl DoubleBarrier {
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

    /// This double barrier for asyncio.
    #[getter]
    fn aio(&self, py: Python<'_>) -> PyResult<Py<AsyncDoubleBarrier>> {
        AsyncDoubleBarrier::of(py, self.shared.clone())
    }

    /// Enters as a new member, and waits until all members have entered.
    ///
    /// >>> member = zk.double_barrier("/barriers/doc", 1).enter(timeout=5)
    /// >>> member.leave()
    ///
    /// It waits for up to ``timeout`` seconds; ``None`` waits for ever. By default it waits for the timeout that the
    /// barrier was made with. Then it raises ``Timeout``, and is no longer a member.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn enter(&self, py: Python<'_>, timeout: Given) -> PyResult<Member> {
        let usual = self.shared.timeout;
        let shared = self.shared.enter(py, timeout.patience(py, usual)?)?;
        Member::of(py, shared, usual)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Member> {
        let timeout = self.shared.timeout;
        let block = Block::of_caller(py);
        let shared = self.shared.enter(py, timeout)?;
        self.shared.keep(greenlet::owner(py)?, block, &shared);
        Member::of(py, shared, timeout)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (kind, traceback);
        let py = exception.py();
        let member = self.shared.take(py, greenlet::owner(py)?, Block::of_caller(py))?;
        member.exit(exception, self.shared.timeout)
    }

    fn __aenter__(&self, py: Python<'_>) -> PyResult<Coroutine> {
        self.shared.clone().start_block(py)
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
        self.shared.describe("DoubleBarrier")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable(
            "DoubleBarrier",
            "send its path, and make a Client and a DoubleBarrier in each process",
        ))
    }
}

#[pymethods]
impl Member {
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

    /// Why the member is lost: a ``LossReason``, or ``None`` if it is not lost. A member is lost when its session ends,
    /// because its node goes with the session. The others then consider it to have left.
    #[getter]
    fn loss(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.shared.loss(py)
    }

    /// Leaves, and waits until all members that are inside now have left.
    ///
    /// It waits for up to ``timeout`` seconds; ``None`` waits for ever, and zero does not wait for the others. By default
    /// it waits for the timeout that the barrier was made with. Then it raises ``Timeout``. Raises ``LockLost`` if the
    /// member's session ended before it left, so that the others may have gone on without it, and ``NotHeld`` if it has
    /// already left. In any case the member has left, or is leaving in the background.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn leave(&self, py: Python<'_>, timeout: Given) -> PyResult<()> {
        self.shared.leave(py, timeout.patience(py, self.timeout)?)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (kind, traceback);
        self.shared.exit(exception, self.timeout)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
    }

    fn __repr__(&self) -> String {
        self.shared.describe("Member")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Member", "enter in each process"))
    }
}
