//! The proof that a lock is held.

use crate::aio::hold;
use crate::calls::greenlet::Greenlet;
use crate::guest::exit::stay_if_over;
use crate::guest::value;
use crate::guest::wait::detached;
use crate::shared::base_hold::{BaseHold, left, unless_over};
use crate::shared::guarded::Guarded;
use crate::shared::hold::SharedHold;
use pyo3::prelude::*;
use std::sync::Arc;

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
/// Every call that reaches the servers raises ``ForkedError`` if this process was forked from the one that holds the
/// lock.
#[pyclass(frozen, extends = BaseHold, module = "zklock")]
pub(crate) struct Hold;

impl Hold {
    pub(crate) fn of(py: Python<'_>, held: Arc<SharedHold>, is_value: bool) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(BaseHold::new(py, held, is_value)?).add_subclass(Self))
    }
}

#[pymethods]
impl Hold {
    /// Asks the servers whether the lock is still held. Returns how many seconds it is now certain to be held.
    ///
    /// >>> with zk.mutex("/locks/doc") as hold:
    /// ...     hold.confirm() > 0
    /// True
    ///
    /// Raises ``LockLost`` if the lock is no longer held, ``NotHeld`` if the hold was released, and ``Unreachable`` if the
    /// servers do not answer while the lease lasts, or within a second if less than that is left.
    fn confirm(slf: &Bound<'_, Self>) -> PyResult<f64> {
        let (py, held) = (slf.py(), slf.as_super().get().held.clone());
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(hold::confirm(held))?.extract(py);
        }
        detached(py, || held.hold.confirm()).map(|valid_for| valid_for.as_secs_f64())
    }

    /// Reads a node: a ``NodeData`` with its ``data`` and ``version``, or ``None`` if the node does not exist.
    ///
    /// >>> with zk.mutex("/locks/doc") as hold:
    /// ...     hold.read("/doc-state") is None
    /// True
    ///
    /// The answer includes everything that the servers had committed when this was called, and the final outcome of this
    /// hold's earlier guarded writes. So after ``Uncertain``, read, then decide. It works as long as the client is open,
    /// even after the hold was lost or released.
    ///
    /// Raises ``Unreachable`` if the servers do not answer within a session timeout or two seconds, whichever is longer;
    /// ``Refused`` if the access list does not allow it; ``InvalidInput`` if the path is invalid; ``Closed`` if the client
    /// is closed.
    fn read(slf: &Bound<'_, Self>, path: &str) -> PyResult<Py<PyAny>> {
        let held = slf.as_super().get().held.clone();
        if let Some(greenlet) = Greenlet::current(slf.py())? {
            return greenlet.wait_for(hold::read(held, path.to_owned()));
        }
        let node = detached(slf.py(), || held.hold.read(path))?;
        value::node(slf.py(), node)
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
    fn guarded(slf: &Bound<'_, Self>) -> PyResult<Py<Guarded>> {
        Guarded::of(slf.py(), slf.as_super().get().held.clone())
    }

    /// Releases the lock, and waits until the servers have confirmed it.
    ///
    /// Raises ``LockLost`` if the hold was lost before; ``NotHeld`` if this hold was already released; ``NotOwner`` if the
    /// lock is reentrant and belongs to another thread, in which case nothing changes; ``Timeout`` if the servers do not
    /// answer within a session timeout, in which case the release goes on in the background; ``Unreachable`` if the client
    /// can no longer connect to its session, for example after a change of passwords, in which case the lock is free once
    /// the servers end the session, a session timeout after they last heard from it; ``Refused`` if the access list does
    /// not allow deleting its node, in which case the client's session was ended to remove the node, and its other holds
    /// are lost too.
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

/// Releases, and raises if that fails.
pub(crate) fn release(py: Python<'_>, held: &SharedHold) -> PyResult<()> {
    if let Some(greenlet) = Greenlet::current(py)? {
        return greenlet.wait_for(hold::release(py, held, greenlet.owner)?).map(drop);
    }
    let released = detached(py, || held.hold.release().or_else(unless_over));
    held.forget_callbacks(py);
    released
}

/// Releases at the end of a `with` block. The exception is that of the block, or `None`.
pub(crate) fn leave(held: &SharedHold, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = exception.py();
    if held.is_released() {
        return Ok(false);
    }
    if let Some(greenlet) = Greenlet::current(py)? {
        let left = hold::begin_to_leave(py, held, greenlet.owner, exception)?;
        return greenlet.wait_for(left).map(|_| false);
    }
    let released = py.detach(|| held.hold.release().inspect(|()| stay_if_over()));
    held.forget_callbacks(py);
    left(released, exception).map(|()| false)
}
