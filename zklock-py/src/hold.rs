//! The proof that a lock is held.

use crate::block::is_generator_exit;
use crate::calls::anchor::CallbackAnchor;
use crate::calls::callback::Callback;
use crate::calls::coroutine::{Coroutine, warn};
use crate::calls::owner;
use crate::guarded::BaseGuarded;
use crate::guest::dispatch::CALLBACKS;
use crate::guest::error::{raised, unpicklable};
use crate::guest::exit::is_over;
use crate::guest::log;
use crate::guest::number;
use crate::guest::sync::{Found, intern};
use crate::guest::value::{self, boolean};
use crate::held::Held;
use crate::loss::Loss;
use crate::noun::{Class, Face, noun};
use crate::scope::Alarm;
use crate::verb::{Verb, nothing, or_raise};
use crate::wanted::Wanted;
use pyo3::exceptions::{PyResourceWarning, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit};
use std::sync::Arc;
use std::time::Duration;
use zklock::Call;
use zklock::further::Owner;
use zklock::{Error, ErrorKind, HoldState, LossReason};

/// The methods that a `Hold` and an `AsyncHold` share.
#[pyclass(frozen, subclass, weakref, module = "zklock")]
pub(crate) struct BaseHold {
    anchor: Py<CallbackAnchor>,
    pub(crate) inner: Arc<Held>,
    /// Whether this object is the only one that keeps the hold, so that the hold ends with it.
    is_value: bool,
}

impl BaseHold {
    /// Makes the object of a face, which may be the only one that keeps the hold.
    pub(crate) fn object(
        py: Python<'_>,
        face: Face,
        inner: Arc<Held>,
        is_value: bool,
    ) -> PyResult<Py<PyAny>> {
        if is_value {
            inner.become_value();
        }
        let base = Self { anchor: inner.anchored().anchor(py)?, inner, is_value };
        match face {
            Face::Threads => Py::new(py, Hold::from_base(base)).map(Py::into_any),
            Face::Asyncio => Py::new(py, AsyncHold::from_base(base)).map(Py::into_any),
        }
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        let hold = &self.inner.hold;
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

/// What both classes ask of the core.
impl Held {
    /// A call that may go on without the client.
    fn ask<T: Send + 'static, F>(
        &self,
        ask: impl FnOnce(&zklock::Hold) -> Call<T>,
        convert: F,
    ) -> Verb<T, F> {
        Verb::new(ask(&self.hold), convert).of_anchored(self.anchored())
    }

    /// Releases, or starts to, and raises if that fails.
    pub(crate) fn release<C: Class>(&self, py: Python<'_>, owner: Owner) -> PyResult<Py<PyAny>> {
        let release = Verb::new(self.hold.release_as(owner), released).begins_first();
        let released = C::make(py, "release", release.of_anchored(self.anchored()));
        self.forget_callbacks(py);
        released
    }

    /// Releases at the end of a `with` block. The exception is that of the block, or `None`.
    pub(crate) fn exit(&self, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = exception.py();
        if self.is_released() {
            return Ok(false);
        }
        self.leave_by(self.hold.release_as(owner::of_caller(py)?), exception)
    }

    /// Releases at the end of a `with` block by this call.
    pub(crate) fn leave_by(&self, release: Call<()>, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = exception.py();
        let convert = |_: Python<'_>, released| left(released, exception);
        let left = Verb::new(release, convert).begins_first().of_anchored(self.anchored()).run(py);
        self.forget_callbacks(py);
        left.map(|()| false)
    }

    /// Starts the release at the end of an `async with` block. The coroutine returns `False`, so that the block's own
    /// exception propagates.
    pub(crate) fn end_block(&self, exception: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        const WHAT: &str = "AsyncLock.__aexit__";
        let py = exception.py();
        if self.is_released() {
            return Coroutine::done(WHAT, boolean(py, false)).into_py_any(py);
        }
        self.end_block_by(WHAT, self.hold.release_as(owner::of_task_or_unique(py)?), exception)
    }

    /// Starts the release at the end of an `async with` block by this call.
    pub(crate) fn end_block_by(
        &self,
        what: &'static str,
        release: Call<()>,
        exception: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let py = exception.py();
        if is_generator_exit(exception) {
            // The event loop is closing this coroutine, so it must not wait any longer.
            self.hold.let_go();
            self.forget_callbacks(py);
            return Coroutine::done(what, boolean(py, false)).into_py_any(py);
        }
        let failed = Failed::of(exception);
        let convert =
            move |py: Python<'_>, released| left(released, &failed.find(py)?).map(|()| boolean(py, false));
        let leaving = Verb::new(release, convert).begins_first().of_anchored(self.anchored()).begun(py, what);
        self.forget_callbacks(py);
        leaving?.into_py_any(py)
    }
}

#[pymethods]
impl BaseHold {
    /// The fencing token of this grant. If two grants at one path exclude each other, the later one has the larger token.
    ///
    /// A lock that was made with ``linger`` or ``max_local_handoffs`` may be passed on within its client, and then the later grant
    /// has the same token. So the resource that such a lock guards must accept a token equal to the largest that it has
    /// seen.
    ///
    /// Grants that do not exclude each other may get their tokens in any order: two readers with no writer between them, or
    /// two permits of a semaphore. So compare a reader's token only with those of writers.
    #[getter]
    fn token(&self) -> u64 {
        self.inner.hold.token().value()
    }

    /// The path of the lock.
    #[getter]
    fn path(&self) -> &str {
        self.inner.hold.path()
    }

    /// The path of this hold's node.
    #[getter]
    fn node(&self) -> &str {
        self.inner.hold.node()
    }

    /// The state of the hold: a ``HoldState``.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        value::state(py, self.inner.hold.state())
    }

    /// The event that the hold is lost: a ``Loss``. You can check it, wait for it or await it.
    #[getter]
    fn lost(&self) -> Loss {
        Loss::of(&self.inner)
    }

    /// How many more seconds the lock is certain to be held, even if the client hears nothing more from the servers.
    ///
    /// Zero means that others may hold it. That is the answer after a loss, after a release, and in a forked process. The call
    /// sends no request, and never raises. An answer stays true for that time, whatever the network and the servers do, unless
    /// the hold is released or an operator ends it. But if the process is paused before it does the guarded work, that time may
    /// be over by then. The ``token`` and ``guarded`` writes protect against that.
    fn valid_for(&self) -> f64 {
        self.inner.hold.valid_for().as_secs_f64()
    }

    /// Checks that the lock is certain to be held for this many seconds plus a hundredth of the session timeout, even if the
    /// client hears nothing more from the servers. Call it before work that takes this long, so that you begin nothing that
    /// cannot end in time. It sends no request and does not wait.
    ///
    /// >>> with zk.mutex("/locks/doc") as hold:
    /// ...     hold.ensure(0.5)
    ///
    /// A lease is never longer than half of the session timeout, and in normal operation seldom shorter than four tenths of
    /// it. If the process is paused after the call, its work may still be late: a fence (``zklock.fence``) refuses late
    /// writes.
    ///
    /// Raises ``AtRisk`` if the lease is shorter: ask again later, or ``confirm`` it; ``LockLost`` if the hold is lost;
    /// ``NotHeld`` if it was released; ``InvalidInput`` if no lease of this session can be that long; ``Forked`` if this process
    /// was forked from the one that holds the lock.
    fn ensure(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let needs = number::seconds(py, "seconds", seconds)?;
        self.inner.hold.ensure(needs).map_err(|error| raised(py, &error))
    }

    /// Calls ``callback(reason)`` once, with a ``LossReason``, when the hold is lost. If it is already lost, the call comes
    /// at once. If it is released first, the call never comes.
    ///
    /// The callbacks of one hold are called one at a time, on a thread for callbacks. Those of different holds do not wait
    /// for each other, unless 32 are running. If a callback raises, the exception goes to ``sys.unraisablehook``. Under
    /// gevent and eventlet, a greenlet of the main thread calls them. In asyncio, have the callback use
    /// ``loop.call_soon_threadsafe``. A callback is not called if the garbage collector takes it apart together with its
    /// hold.
    ///
    /// Raises ``TypeError`` if ``callback`` is not callable, and ``Forked`` if this process was forked from the one
    /// that holds the lock.
    fn on_lost(&self, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = callback.py();
        let callback = Callback::new(callback, "on_lost", "the reason of the loss")?;
        CALLBACKS.start_in_a_greenlet(py)?;
        let held = &self.inner;
        held.callbacks().add_lost(&held.hold, callback.clone()).map_err(|error| raised(py, &error))?;
        held.anchored().add(&callback);
        Ok(())
    }

    /// Wraps a function, so that each call first calls ``ensure`` with ``needs`` seconds. So no call begins that cannot end in
    /// time.
    ///
    /// >>> with zk.mutex("/locks/doc") as hold:
    /// ...     shout = hold.gate(str.upper, needs=0.5)
    /// ...     shout("written")
    /// 'WRITTEN'
    ///
    /// For a coroutine function, the check comes when its coroutine starts to run. For a transport of httpx, it comes
    /// before each request, sync or async: ``httpx.Client(transport=hold.gate(httpx.HTTPTransport(), needs=5))``. Retries
    /// inside of a transport do not check again.
    ///
    /// Raises ``InvalidInput`` for anything else, such as a class, a generator function, or a function that returns a
    /// coroutine (when it is called). The wrapped function raises what ``ensure`` raises.
    #[pyo3(signature = (target, needs=2.0))]
    fn gate<'py>(
        slf: &Bound<'py, Self>,
        target: &Bound<'py, PyAny>,
        needs: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let needs = number::seconds(py, "needs", needs)?.as_secs_f64();
        py.import("zklock._wrapping")?.call_method1(intern!(py, "gated"), (slf, target, needs))
    }

    /// A block that is cancelled when the hold is lost: ``async with hold.cancel_on_loss():``, in asyncio and under trio.
    ///
    /// >>> async def work(hold):
    /// ...     async with hold.cancel_on_loss():
    /// ...         await asyncio.sleep(0.01)
    /// ...         return "done"
    /// >>> with zk.mutex("/locks/doc").hold() as hold:
    /// ...     asyncio.run(work(hold))
    /// 'done'
    ///
    /// A block of the lock itself does this already: see ``AsyncLock``. This one is for a hold from ``hold`` or
    /// ``try_acquire``, for one that a thread has acquired, and for a part of a block with ``cancel=False``. After a loss, it
    /// raises ``LockLost`` too, but it does not release the hold.
    ///
    /// Entering the block raises ``LockLost`` if the hold is already lost, and ``NotHeld`` if it was released.
    fn cancel_on_loss<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        py.import("zklock._cancelling")?.call_method1(intern!(py, "CancelOnLoss"), (slf,))
    }

    /// Awaits a coroutine in a block of ``cancel_on_loss``, and returns its result: ``await hold.run(work())``.
    ///
    /// >>> async def work():
    /// ...     return "done"
    /// >>> async def main():
    /// ...     async with zk.mutex("/locks/doc") as hold:
    /// ...         return await hold.run(work())
    /// >>> asyncio.run(main())
    /// 'done'
    ///
    /// If the coroutine never starts, because the hold is already lost or the task is cancelled before, it is closed. Raises
    /// ``InvalidInput`` if the argument is not a coroutine.
    fn run<'py>(slf: &Bound<'py, Self>, coroutine: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        py.import("zklock._cancelling")?.call_method1(intern!(py, "run"), (slf, coroutine))
    }

    /// Calls `wake()` of an object on a thread of ours when the hold is lost, for as long as the result exists.
    fn _alarm(&self, block: &Bound<'_, PyAny>) -> PyResult<Alarm> {
        Alarm::set(&self.inner, block)
    }

    /// The event that others wait for what this hold has: a ``Wanted``. You can check it, wait for it or await it. Use it
    /// to finish early, or to release the lock between two pieces of work.
    ///
    /// A request by ``Lock.request_release``, or by Curator's ``Revoker``, counts as a waiter.
    ///
    /// The first use of this property starts to watch for others: the client lists the queue and reads the hold's own nodes
    /// once, and leaves watches, which the next contender or request triggers. A hold whose ``wanted`` is never used costs
    /// nothing.
    #[getter]
    fn wanted(&self) -> Wanted {
        Wanted::of(&self.inner)
    }

    /// Calls ``callback()`` once, when others wait for what this hold has. If they already do, the call comes at once. If
    /// the hold is released or lost first, the call never comes.
    ///
    /// See ``wanted`` for what this costs, and ``on_lost`` for how callbacks are called.
    ///
    /// Raises ``TypeError`` if ``callback`` is not callable, and ``Forked`` if this process was forked from the one
    /// that holds the lock.
    fn on_wanted(&self, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = callback.py();
        let callback = Callback::new(callback, "on_wanted", "nothing")?;
        CALLBACKS.start_in_a_greenlet(py)?;
        let held = &self.inner;
        held.callbacks().add_wanted(&held.hold, callback.clone()).map_err(|error| raised(py, &error))?;
        held.anchored().add(&callback);
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.anchor)
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
        let held = &self.inner;
        let is_kept = self.is_value && held.is_live() && !held.is_released();
        if is_kept && !is_over() && !held.hold.process().is_forked() {
            let (path, token) = (held.hold.path(), held.hold.token());
            warn::<PyResourceWarning>(&format!(
                "the hold of {path} with token {token} was never released: use `with`, or call release()"
            ));
        }
    }
}

noun! {
    /// The proof that a lock is held. Get one from a ``with`` block on a lock, or from ``Lock.hold``.
    ///
    /// >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
    /// >>> hold.token > 0, hold.state
    /// (True, <HoldState.HELD: 'held'>)
    /// >>> hold.release()
    /// >>> hold.state
    /// <HoldState.RELEASED: 'released'>
    ///
    /// A hold is itself a context manager: the end of the block releases it, and raises ``LockLost`` if it was lost
    /// meanwhile. If a hold from ``Lock.hold`` is dropped without a release, it is released in the background, with a
    /// ``ResourceWarning``.
    ///
    /// Every call that reaches the servers raises ``Forked`` if this process was forked from the one that holds the
    /// lock.
    struct Hold;

    /// The proof that a lock is held, for asyncio. Get one from ``async with`` on a lock, or from ``AsyncLock.hold``.
    ///
    /// >>> async def watch():
    /// ...     async with zk.mutex("/locks/doc") as hold:
    /// ...         lost = asyncio.ensure_future(hold.lost)
    /// ...         await asyncio.wait({lost}, timeout=0.01)
    /// ...         return lost.done(), lost.cancel(), await hold.confirm() > 0
    /// >>> asyncio.run(watch())
    /// (False, True, True)
    struct AsyncHold;

    both(Held in BaseHold: ends) {
        /// Asks the servers whether the lock is still held. Returns how many seconds it is now certain to be held.
        ///
        /// >>> with zk.mutex("/locks/doc") as hold:
        /// ...     hold.confirm() > 0
        /// True
        ///
        /// Raises ``LockLost`` if the lock is no longer held, ``NotHeld`` if the hold was released, and ``Unreachable`` if the
        /// servers do not answer while the lease lasts, or within a second if less than that is left.
        fn confirm(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
            let seconds = or_raise(|py, left: Duration| left.as_secs_f64().into_py_any(py));
            Self::make(slf.py(), "confirm", Self::inner(slf).ask(zklock::Hold::confirm, seconds))
        }

        /// The identity of the ensemble, which a fence (``zklock.fence``) keeps together with the token. See
        /// ``Client.ensemble_id``.
        ///
        /// >>> with zk.mutex("/locks/doc") as hold:
        /// ...     hold.ensemble_id() == zk.ensemble_id()
        /// True
        fn ensemble_id(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
            let text = or_raise(|py, id: Arc<str>| id.into_py_any(py));
            Self::make(slf.py(), "ensemble_id", Self::inner(slf).ask(zklock::Hold::ensemble_id, text))
        }

        /// Reads a node: a ``NodeData`` with its ``data`` and ``version``, or ``None`` if the node does not exist.
        ///
        /// >>> with zk.mutex("/locks/doc") as hold:
        /// ...     hold.read("/doc-state") is None
        /// True
        ///
        /// The answer includes everything that the servers had committed when this was called. So after ``Uncertain``, read what
        /// should have been written. If it is not there, write again, with the version that was read: at most one of the two
        /// writes is done. (While the hold lasts, a server that was cut off may still do the first one.) Once the hold is
        /// released or lost, the answer is final. It works while the client is open.
        ///
        /// Raises ``Unreachable`` if the servers do not answer within a session timeout or two seconds, whichever is longer;
        /// ``Refused`` if the access list does not allow it; ``InvalidInput`` if the path is invalid; ``Closed`` if the client
        /// is closed.
        fn read(slf: &Bound<'_, Self>, path: &str) -> PyResult<Py<PyAny>> {
            Self::make(slf.py(), "read", Self::inner(slf).ask(|hold| hold.read(path), or_raise(value::node)))
        }

        /// Starts a list of writes to ZooKeeper that are only done if the lock is still held when the servers commit them.
        ///
        /// >>> with zk.mutex("/locks/doc") as hold:
        /// ...     hold.guarded().create("/doc-state", b"begun").set_data("/doc-state", b"done").commit()
        /// ...     hold.read("/doc-state")
        /// ...     hold.guarded().delete("/doc-state").commit()
        /// (0, 1)
        /// NodeData(data=b'done', version=1)
        /// (None,)
        ///
        /// Nothing is sent, and nothing can raise, before ``Guarded.commit``. If the list is dropped without a commit, there is
        /// a ``RuntimeWarning``.
        fn guarded(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
            BaseGuarded::object(slf.py(), Self::FACE, Self::inner(slf).clone())
        }

        /// Releases the lock, and waits until the servers have confirmed it. In asyncio, the release starts at once; await it to
        /// wait for that.
        ///
        /// Raises ``Deadlock`` if an asyncio event loop runs in this thread and there is something to wait for, in which case
        /// the release goes on in the background; ``LockLost`` if the hold was lost before; ``NotHeld`` if this hold was already
        /// released; ``NotOwner`` if the
        /// lock is reentrant and belongs to another thread, in which case nothing changes; ``Timeout`` if the servers do not
        /// answer within a session timeout, in which case the release goes on in the background; ``Unreachable`` if the client
        /// can no longer connect to its session, for example after a change of passwords, in which case the lock is free once
        /// the servers end the session, a session timeout after they last heard from it; ``Refused`` if the access list does
        /// not allow deleting its node, in which case the client's session was ended to remove the node, and its other holds
        /// are lost too.
        fn release(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
            Self::inner(slf).release::<Self>(slf.py(), Self::FACE.owner(slf.py())?)
        }
    }
}

/// The exception of a block. A coroutine that waits for the release must not keep the exception alive: it refers to its
/// frames, and the frames to the coroutine, so nothing would ever collect them.
#[derive(Clone, Copy)]
struct Failed(Option<usize>);

impl Failed {
    fn of(exception: &Bound<'_, PyAny>) -> Self {
        Self((!exception.is_none()).then_some(exception.as_ptr() as usize))
    }

    /// As long as the block is being left because of it, it is the exception that is being handled. If it is not, some
    /// other exception is still found, but nobody sees that.
    fn find(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let Some(address) = self.0 else { return Ok(py.None().into_bound(py)) };
        static HANDLED: Found<Py<PyAny>> = Found::new();
        let find = || py.import("sys")?.getattr("exc_info").map(Bound::unbind);
        let handled = HANDLED.or_find(find)?.bind(py).call0()?.get_item(1)?;
        if handled.as_ptr() as usize == address {
            return Ok(handled);
        }
        PyRuntimeError::new_err("the block failed").into_bound_py_any(py)
    }
}

/// Converts the outcome of a release.
fn released(py: Python<'_>, result: Result<(), Error>) -> PyResult<Py<PyAny>> {
    nothing(py, result.or_else(unless_over))
}

/// Forgives the loss of a hold at the end of the interpreter. Its clients are closed then, which has freed their locks. A
/// hold that is only released after that (by a generator that is taken down in the middle of a block) was not lost.
fn unless_over(error: Error) -> Result<(), Error> {
    let is_closed = matches!(error.kind(), ErrorKind::Closed | ErrorKind::Lost(LossReason::ClientClosed));
    if is_closed && is_over() { Ok(()) } else { Err(error) }
}

/// Returns the exception at the end of a `with` block. It never replaces the block's own exception, which gets a note that
/// the lock was lost. It is also not raised if the servers are slow to confirm the release: that would look as if the lock
/// had not been acquired.
fn left(released: Result<(), Error>, exception: &Bound<'_, PyAny>) -> PyResult<()> {
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
            // When the interpreter is ending, no thread can be started for the log.
            if !is_over() {
                log::warn(py, &error.to_string());
            }
            Ok(())
        }
        _ => Err(raised(py, &error)),
    }
}

/// Adds a note to an exception of a block. Before Python 3.11 a traceback does not show it, but it is there.
pub(crate) fn note(exception: &Bound<'_, PyAny>, text: &str) {
    let py = exception.py();
    let text = format!("zklock: {text}; while the block ran, others may have held the lock too");
    let noted = if exception.hasattr(intern!(py, "add_note")).unwrap_or_default() {
        exception.call_method1(intern!(py, "add_note"), (&text,)).map(drop)
    } else if let Ok(notes) = exception.getattr(intern!(py, "__notes__")) {
        notes.call_method1(intern!(py, "append"), (&text,)).map(drop)
    } else {
        exception.setattr(intern!(py, "__notes__"), [&text])
    };
    // If the exception takes no notes, do not hide it behind another one. The loss is logged in any case.
    drop(noted);
}
