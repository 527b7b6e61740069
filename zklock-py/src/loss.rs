//! The event that a hold is lost.

use crate::calls::coroutine::Coroutine;
use crate::guest::error::unpicklable;
use crate::guest::number::{self, Timeout};
use crate::guest::value;
use crate::held::Held;
use crate::verb::{Verb, in_time, or_raise};
use pyo3::prelude::*;
use zklock::LossReason;
use zklock::further::Wait;

/// The event that a hold is lost. You can check it, wait for it or await it.
///
/// >>> with zk.mutex("/locks/doc") as hold:
/// ...     hold.lost.is_set(), bool(hold.lost), hold.lost.wait(timeout=0.01)
/// (False, False, False)
///
/// It is true once the hold is lost, so ``while not hold.lost:`` runs until then. In asyncio, ``await hold.lost``
/// returns the reason, or ``None`` if the hold is released first. A ``Loss`` does not keep its hold alive.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Loss {
    loss: zklock::further::Loss,
}

impl Loss {
    pub(crate) fn of(held: &Held) -> Self {
        Self { loss: held.hold.loss() }
    }
}

#[pymethods]
impl Loss {
    /// Whether the hold is lost. It is false for a hold that was released in time.
    fn is_set(&self) -> bool {
        self.loss.reason().is_some()
    }

    fn __bool__(&self) -> bool {
        self.is_set()
    }

    /// Why the hold was lost: a ``LossReason``, or ``None`` if it is not lost.
    #[getter]
    fn reason(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.loss.reason().map(|reason| value::reason(py, reason)).transpose()
    }

    /// Waits until the hold is lost. Returns ``True`` then, and ``False`` if the hold is released first or is not lost
    /// within ``timeout`` seconds.
    ///
    /// A negative ``timeout`` counts as zero, and ``None`` waits for ever. Raises ``Forked`` if this process was
    /// forked from the one that holds the lock.
    #[pyo3(signature = (timeout=None), text_signature = "($self, timeout=None)")]
    fn wait(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<bool> {
        // Like that of threading.Event: a negative timeout counts as zero.
        let timeout = number::patience(py, timeout.map(|Timeout(seconds)| Timeout(seconds.max(0.0))))?;
        let lost = self.loss.lost().within(Wait::at_most(timeout));
        let convert = |py: Python<'_>, lost| Ok(in_time(py, lost)?.flatten().is_some());
        Verb::new(lost, convert).run(py)
    }

    /// Awaits it: returns the reason of the loss, or ``None`` if the hold was released.
    fn __await__(&self) -> Coroutine {
        let reason = or_raise(|py, lost: Option<LossReason>| {
            lost.map_or_else(|| Ok(py.None()), |reason| value::reason(py, reason))
        });
        Verb::new(self.loss.lost(), reason).coroutine("Loss.__await__")
    }

    fn __repr__(&self) -> String {
        match self.loss.reason() {
            Some(reason) => format!("<zklock.Loss set: {reason}>"),
            None => "<zklock.Loss not set>".to_owned(),
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Loss", "look at it where the lock is held"))
    }
}
