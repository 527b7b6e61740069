//! Double barriers: nobody begins before all are there, and nobody goes before all are done.

use crate::aio::double_barrier::{AsyncDoubleBarrier, AsyncMember};
use crate::barrier::Spot;
use crate::block::Block;
use crate::coroutine::{Coroutine, nothing};
use crate::error::{invalid, not_held, unpicklable};
use crate::greenlet::{self, Greenlet};
use crate::hold::note;
use crate::number;
use crate::patience::Given;
use crate::place::Shared;
use crate::sync::lock_ignoring_poison;
use crate::value;
use crate::wait::detached;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zklock_core::{Owner, blocking};

/// What both faces of a double barrier share.
pub(crate) struct Meeting {
    pub(crate) spot: Arc<Spot>,
    pub(crate) members: u32,
    pub(crate) timeout: Option<Duration>,
    /// Those of blocks, and whose they are.
    inside: Mutex<Vec<(Owner, Block, Arc<Seat>)>>,
}

/// What both faces of a member share.
pub(crate) struct Seat {
    pub(crate) path: String,
    pub(crate) node: String,
    /// Nothing when it was given up.
    member: Mutex<Option<Arc<blocking::Member>>>,
}

/// A double barrier: whoever enters waits until all members have, and whoever leaves waits until all have left. See
/// ``Client.double_barrier``.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct DoubleBarrier {
    meeting: Arc<Meeting>,
}

/// One that is within a double barrier. ``DoubleBarrier.enter`` gives one, and so does a ``with`` block.
///
/// It is a context manager, too, which leaves. One that is forgotten leaves in the background.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Member {
    seat: Arc<Seat>,
    timeout: Option<Duration>,
}

impl Meeting {
    pub(crate) fn new(
        py: Python<'_>,
        shared: &Arc<Shared>,
        path: &str,
        members: i64,
        timeout: Option<f64>,
    ) -> PyResult<Arc<Self>> {
        let spot = Spot::new(py, shared, path)?;
        let members = number::count(py, "members", members)?;
        if members == 0 {
            let message = format!("the barrier {path} without members would never be one: ask for 1 or more");
            return Err(invalid(py, message));
        }
        let timeout = number::patience(py, timeout)?;
        Ok(Arc::new(Self { spot, members, timeout, inside: Mutex::default() }))
    }

    fn enter(self: &Arc<Self>, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Arc<Seat>> {
        if let Some(greenlet) = Greenlet::current(py)? {
            let entered = greenlet.wait_for(self.start("DoubleBarrier.enter", timeout, None))?;
            return Ok(entered.bind(py).cast::<AsyncMember>()?.get().seat.clone());
        }
        self.spot.call(py, timeout, |client, left| {
            let barrier = client.double_barrier(&self.spot.path, self.members)?;
            left.map_or_else(|| barrier.enter(), |left| barrier.enter_timeout(left)).map(Seat::of)
        })
    }

    pub(crate) fn keep(&self, owner: Owner, block: Block, seat: &Arc<Seat>) {
        lock_ignoring_poison(&self.inside).push((owner, block, seat.clone()));
    }

    /// What the end of a block is to leave. Of one that is not known: the latest of this owner, or else of anybody, since
    /// a generator may be ended by another thread or task.
    pub(crate) fn take(&self, py: Python<'_>, owner: Owner, block: Block) -> PyResult<Arc<Seat>> {
        let last = {
            let mut inside = lock_ignoring_poison(&self.inside);
            let blocks = inside.iter().enumerate().map(|(index, (_, block, _))| (index, *block));
            let known = block.find(blocks);
            let own = || inside.iter().rposition(|(whose, ..)| *whose == owner);
            known.or_else(own).or(inside.len().checked_sub(1)).map(|last| inside.remove(last).2)
        };
        last.ok_or_else(|| {
            not_held(
                py,
                format!("nobody is within the barrier {}: there is nothing to leave", self.spot.path),
            )
        })
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        format!("<zklock.{class} {:?} of {} members>", self.spot.path, self.members)
    }
}

impl Seat {
    pub(crate) fn of(member: blocking::Member) -> Arc<Self> {
        let (path, node) = (member.path().to_owned(), member.node().to_owned());
        Arc::new(Self { path, node, member: Mutex::new(Some(Arc::new(member))) })
    }

    pub(crate) fn member(&self, py: Python<'_>) -> PyResult<Arc<blocking::Member>> {
        let member = lock_ignoring_poison(&self.member).clone();
        member
            .ok_or_else(|| not_held(py, format!("this member of the barrier {} has left before", self.path)))
    }

    /// Leaves in the background: others may wait for this one, but it does not wait for them.
    pub(crate) fn give_up(&self) {
        let member = lock_ignoring_poison(&self.member).take();
        drop(member);
    }

    /// After a block that has failed: others may wait for this one, but it does not wait for them.
    pub(crate) fn fail(&self, exception: &Bound<'_, PyAny>) {
        let loss = lock_ignoring_poison(&self.member).as_ref().and_then(|member| member.loss());
        if let Some(reason) = loss {
            note(exception, &format!("the member of the barrier {} is lost: {reason}", self.path));
        }
        self.give_up();
    }

    pub(crate) fn loss(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let loss = lock_ignoring_poison(&self.member).as_ref().and_then(|member| member.loss());
        loss.map(|reason| value::reason(py, reason)).transpose()
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        let node = self.node.rsplit('/').next().unwrap_or_default();
        format!("<zklock.{class} of {:?}, node {node}>", self.path)
    }

    fn leave(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(self.start_leave(py, "Member.leave", timeout, nothing)?).map(drop);
        }
        let member = self.member(py)?;
        detached(py, || timeout.map_or_else(|| member.leave(), |timeout| member.leave_timeout(timeout)))
    }

    /// Leaves at the end of a block. After one that has failed the others are not waited for.
    fn exit(&self, exception: &Bound<'_, PyAny>, timeout: Option<Duration>) -> PyResult<bool> {
        if !exception.is_none() {
            self.fail(exception);
            return Ok(false);
        }
        self.leave(exception.py(), timeout).map(|()| false)
    }
}

impl DoubleBarrier {
    pub(crate) fn of(py: Python<'_>, meeting: Arc<Meeting>) -> PyResult<Py<Self>> {
        Py::new(py, Self { meeting })
    }
}

#[pymethods]
impl DoubleBarrier {
    /// The path of the node below which the members are.
    #[getter]
    fn path(&self) -> &str {
        &self.meeting.spot.path
    }

    /// How many members it has.
    #[getter]
    fn members(&self) -> u32 {
        self.meeting.members
    }

    /// The same double barrier for asyncio.
    #[getter]
    fn aio(&self, py: Python<'_>) -> PyResult<Py<AsyncDoubleBarrier>> {
        AsyncDoubleBarrier::of(py, self.meeting.clone())
    }

    /// Enters, and waits until all members have.
    ///
    /// >>> member = zk.double_barrier("/barriers/doc", 1).enter(timeout=5)
    /// >>> member.leave()
    ///
    /// It waits for ``timeout`` seconds at most, for ever if that is ``None``, or else as long as the barrier was made to.
    /// Raises ``Timeout`` then: it is not a member any more.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn enter(&self, py: Python<'_>, timeout: Given) -> PyResult<Member> {
        let usual = self.meeting.timeout;
        let seat = self.meeting.enter(py, timeout.patience(py, usual)?)?;
        Ok(Member { seat, timeout: usual })
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Member> {
        let timeout = self.meeting.timeout;
        let block = Block::of_caller(py);
        let seat = self.meeting.enter(py, timeout)?;
        // As that of a lock.
        py.check_signals()?;
        self.meeting.keep(greenlet::owner(py)?, block, &seat);
        Ok(Member { seat, timeout })
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
        let seat = self.meeting.take(py, greenlet::owner(py)?, Block::of_caller(py))?;
        seat.exit(exception, self.meeting.timeout)
    }

    fn __aenter__(&self, py: Python<'_>) -> PyResult<Coroutine> {
        self.meeting.clone().start_block(py)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __aexit__(
        &self,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let _ = traceback;
        self.meeting.end_block(kind, exception)
    }

    fn __repr__(&self) -> String {
        self.meeting.describe("DoubleBarrier")
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
        &self.seat.path
    }

    /// The path of the node that stands for this member.
    #[getter]
    fn node(&self) -> &str {
        &self.seat.node
    }

    /// Why the member is lost, or ``None``: with its session its node is gone, and the others take it to have left.
    #[getter]
    fn loss(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.seat.loss(py)
    }

    /// Leaves, and waits until all have left who are within now.
    ///
    /// It waits for ``timeout`` seconds at most, for ever if that is ``None``, or else as long as the barrier was made to,
    /// and raises ``Timeout`` then; zero waits for nobody. Raises ``LockLost`` if its session ended before it left: the
    /// others may have gone on without it; ``NotHeld`` if it has left before. In any case it has left, or is leaving in
    /// the background.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn leave(&self, py: Python<'_>, timeout: Given) -> PyResult<()> {
        self.seat.leave(py, timeout.patience(py, self.timeout)?)
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
        self.seat.exit(exception, self.timeout)
    }

    fn __repr__(&self) -> String {
        self.seat.describe("Member")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Member", "enter in each process"))
    }
}
