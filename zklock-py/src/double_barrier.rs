//! Double barriers: no member begins before all have entered, and none goes on before all are done.

use crate::block::Block;
use crate::calls::anchor::{AnchoredCallbacks, CallbackAnchor};
use crate::calls::coroutine::Coroutine;
use crate::calls::owner;
use crate::client_inner::ClientInner;
use crate::guest::error::{not_held, raised};
use crate::guest::number::{self, Timeout};
use crate::guest::sync::lock_ignoring_poison;
use crate::guest::value;
use crate::hold::note;
use crate::inside::Inside;
use crate::noun::{Class, Inner, Noun, noun};
use crate::patience::Given;
use crate::verb::{Convert, Verb, nothing, or_raise};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zklock::further::Owner;

/// A double barrier at a path, and the members inside.
pub(crate) struct DoubleBarrierInner {
    client: Arc<ClientInner>,
    core: zklock::further::DoubleBarrier,
    timeout: Option<Duration>,
    /// The members of blocks, and their owners.
    inside: Inside<Arc<MemberInner>>,
}

/// A member, until it has left.
pub(crate) struct MemberInner {
    /// How long it waits for the others as it leaves.
    timeout: Option<Duration>,
    path: String,
    node: String,
    /// The collector's view of the client's callbacks, since a member keeps the client.
    anchored: Arc<AnchoredCallbacks>,
    /// `None` once it was given up.
    member: Mutex<Option<Arc<zklock::further::Member>>>,
}

impl DoubleBarrierInner {
    pub(crate) fn new(
        py: Python<'_>,
        client: &Arc<ClientInner>,
        path: &str,
        members: i64,
        timeout: Option<Timeout>,
    ) -> PyResult<Arc<Self>> {
        let members = number::count(py, "members", members)?;
        let core = client.core.double_barrier(path, members).map_err(|error| raised(py, &error))?;
        let timeout = number::patience(py, timeout)?;
        Ok(Arc::new(Self { client: client.clone(), core, timeout, inside: Inside::default() }))
    }

    /// Enters as a new member.
    fn start(
        self: &Arc<Self>,
        timeout: Option<Duration>,
    ) -> Verb<zklock::further::Member, impl Convert<zklock::further::Member, Arc<MemberInner>> + use<>> {
        let (core, client, usual) = (self.core.clone(), self.client.clone(), self.timeout);
        let member = or_raise(move |_, member| Ok(MemberInner::of(member, &client, usual)));
        Verb::timed(move || core.enter_within(timeout), member).of_client(&self.client)
    }

    fn enter_now(self: &Arc<Self>, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Arc<MemberInner>> {
        let entered = self.start(timeout).run(py)?;
        // As with a lock: if a handler that is due raises, the member leaves.
        py.check_signals()?;
        Ok(entered)
    }

    fn enter(self: &Arc<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let block = Block::of_caller(py);
        let member = self.enter_now(py, self.timeout)?;
        self.inside.keep(owner::of_caller(py)?, block, member.clone());
        Ok(Member::of(py, member)?.into_any())
    }

    fn exit(&self, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = exception.py();
        self.take(py, owner::of_caller(py)?, Block::of_caller(py))?.exit(exception)
    }

    fn begin_block(self: &Arc<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (owner, block, inner) = (owner::of_task_or_unique(py)?, Block::of_caller(py), self.clone());
        let deliver = move |py: Python<'_>, member: Arc<MemberInner>| {
            let given = AsyncMember::of(py, member.clone())?.into_any();
            inner.inside.keep(owner, block, member);
            Ok(given)
        };
        let entering = self.start(self.timeout).and_then(deliver);
        entering.coroutine("AsyncDoubleBarrier.__aenter__").into_py_any(py)
    }

    fn end_block(&self, exception: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = exception.py();
        let member = self.take(py, owner::of_task_or_unique(py)?, Block::of_caller(py))?;
        member.end_block(exception)
    }

    /// Returns the member that the end of a block leaves with.
    fn take(&self, py: Python<'_>, owner: Owner, block: Block) -> PyResult<Arc<MemberInner>> {
        self.inside.take(owner, block).ok_or_else(|| {
            not_held(
                py,
                format!("no member is inside the barrier {}: there is nothing to leave", self.core.path()),
            )
        })
    }
}

impl Inner for DoubleBarrierInner {
    fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        self.client.callbacks.anchor(py)
    }

    fn describe(&self, class: &str) -> String {
        format!("<zklock.{class} {:?} of {} members>", self.core.path(), self.core.members())
    }
}

impl Inner for MemberInner {
    fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        self.anchored.anchor(py)
    }

    fn describe(&self, class: &str) -> String {
        let node = self.node.rsplit('/').next().unwrap_or_default();
        format!("<zklock.{class} of {:?}, node {node}>", self.path)
    }
}

impl MemberInner {
    fn of(member: zklock::further::Member, client: &ClientInner, timeout: Option<Duration>) -> Arc<Self> {
        let (path, node) = (member.path().to_owned(), member.node().to_owned());
        let anchored = client.callbacks.anchored.clone();
        Arc::new(Self { timeout, path, node, anchored, member: Mutex::new(Some(Arc::new(member))) })
    }

    fn member(&self, py: Python<'_>) -> PyResult<Arc<zklock::further::Member>> {
        let member = lock_ignoring_poison(&self.member).clone();
        member
            .ok_or_else(|| not_held(py, format!("this member of the barrier {} has already left", self.path)))
    }

    /// Leaves, and waits for the others.
    fn leave<F>(&self, py: Python<'_>, timeout: Option<Duration>, convert: F) -> PyResult<Verb<(), F>> {
        let leaving = self.member(py)?.leave_within(timeout);
        Ok(Verb::new(leaving, convert).begins_first().of_anchored(&self.anchored))
    }

    /// Leaves at the end of a block. If the block failed, it does not wait for the others.
    fn exit(&self, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        if exception.is_none() {
            self.leave(exception.py(), self.timeout, nothing)?.run(exception.py())?;
        } else {
            self.fail(exception);
        }
        Ok(false)
    }

    fn end_block(&self, exception: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        const WHAT: &str = "AsyncDoubleBarrier.__aexit__";
        let (py, goes_on) = (exception.py(), |py: Python<'_>| value::boolean(py, false));
        let left = if exception.is_none() {
            self.leave(py, self.timeout, or_raise(move |py, ()| Ok(goes_on(py))))?.begun(py, WHAT)?
        } else {
            self.fail(exception);
            Coroutine::done(WHAT, goes_on(py))
        };
        left.into_py_any(py)
    }

    /// Leaves after a block that failed: others may wait for this member, but it does not wait for them.
    fn fail(&self, exception: &Bound<'_, PyAny>) {
        let member = lock_ignoring_poison(&self.member).take();
        if let Some(reason) = member.as_ref().and_then(|member| member.loss()) {
            note(exception, &format!("the member of the barrier {} is lost: {reason}", self.path));
        }
    }
}

noun! {
    /// A double barrier: entering waits until all members have entered, and leaving waits until all have left. See
    /// ``Client.double_barrier``.
    struct DoubleBarrier;

    /// A ``DoubleBarrier`` for asyncio. Get one from ``AsyncClient.double_barrier`` or from ``DoubleBarrier.aio``.
    ///
    /// >>> async def take_part():
    /// ...     async with zk.aio.double_barrier("/barriers/doc-too", 1, timeout=5) as member:
    /// ...         return member.loss
    /// >>> print(asyncio.run(take_part()))
    /// None
    struct AsyncDoubleBarrier;

    both(DoubleBarrierInner: aio, blocks) {
        /// The path of the node whose children are the members.
        #[getter]
        fn path(&self) -> &str {
            self.inner.core.path()
        }

        /// How many members open the barrier.
        #[getter]
        fn members(&self) -> u32 {
            self.inner.core.members()
        }
    }

    blocking {
        /// Enters as a new member, and waits until all members have entered.
        ///
        /// >>> member = zk.double_barrier("/barriers/doc", 1).enter(timeout=5)
        /// >>> member.leave()
        ///
        /// It waits for up to ``timeout`` seconds; ``None`` waits for ever. By default it waits for the timeout that the
        /// barrier was made with. Then it raises ``Timeout``, and is no longer a member.
        #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
        fn enter(&self, py: Python<'_>, timeout: Given) -> PyResult<Py<Member>> {
            Member::of(py, self.inner.enter_now(py, timeout.patience(py, self.inner.timeout)?)?)
        }
    }

    asyncio {
        /// Enters as a new member, and waits until all members have entered. If it is cancelled, it is no longer a member. See
        /// ``DoubleBarrier.enter``.
        #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
        fn enter(&self, py: Python<'_>, timeout: Given) -> PyResult<Coroutine> {
            let timeout = timeout.patience(py, self.inner.timeout)?;
            let member = |py: Python<'_>, member| Ok(AsyncMember::of(py, member)?.into_any());
            Ok(self.inner.start(timeout).and_then(member).coroutine("AsyncDoubleBarrier.enter"))
        }
    }
}

noun! {
    /// A member of a double barrier, from entering to leaving. Get one from ``DoubleBarrier.enter`` or from a ``with``
    /// block on the barrier.
    ///
    /// It is itself a context manager, which leaves at the end of the block. A member that is dropped leaves in the
    /// background.
    struct Member;

    /// A ``Member`` for asyncio. Get one from ``AsyncDoubleBarrier.enter`` or from ``async with`` on the barrier.
    struct AsyncMember;

    both(MemberInner: ends) {
        /// The path of the barrier.
        #[getter]
        fn path(&self) -> &str {
            &self.inner.path
        }

        /// The path of this member's node.
        #[getter]
        fn node(&self) -> &str {
            &self.inner.node
        }

        /// Why the member is lost: a ``LossReason``, or ``None`` if it is not lost. A member is lost when its session ends,
        /// because the servers then delete its node. The others consider it to have left.
        #[getter]
        fn loss(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
            let loss = lock_ignoring_poison(&self.inner.member).as_ref().and_then(|member| member.loss());
            loss.map(|reason| value::reason(py, reason)).transpose()
        }

        /// Leaves, and waits until all members that are inside now have left. In asyncio it starts at once, and you await it to
        /// wait for the others.
        ///
        /// It waits for up to ``timeout`` seconds; ``None`` waits for ever, and zero does not wait for the others. By default
        /// it waits for the timeout that the barrier was made with. Then it raises ``Timeout``. Raises ``LockLost`` if the
        /// member's session ended before it left, so that the others may have gone on without it, and ``NotHeld`` if it has
        /// already left. In any case the member has left, or is leaving in the background.
        #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
        fn leave(&self, py: Python<'_>, timeout: Given) -> PyResult<Py<PyAny>> {
            let timeout = timeout.patience(py, self.inner.timeout)?;
            Self::make(py, "leave", self.inner.leave(py, timeout, nothing)?)
        }
    }
}
