//! The event that others wait for what a hold has.

use crate::calls::coroutine::Coroutine;
use crate::guest::error::unpicklable;
use crate::guest::number::{self, Timeout};
use crate::held::Held;
use crate::verb::{Verb, boolean, in_time};
use pyo3::prelude::*;
use zklock::further::Wait;

/// The event that others wait for what a hold has. You can check it, wait for it or await it.
///
/// >>> with zk.mutex("/locks/doc") as hold:
/// ...     hold.wanted.is_set(), bool(hold.wanted), hold.wanted.wait(timeout=0.01)
/// (False, False, False)
///
/// It is true once others are known to be waiting, in any process and with any library, so
/// ``while not hold.wanted:`` runs until then. It shows the state that was seen last, so it may stay true after the other has
/// given up. It is false once the hold is released or lost. In asyncio, ``await hold.wanted`` returns ``True``, or
/// ``False`` if the hold ends first. A ``Wanted`` does not keep its hold alive.
///
/// Readers do not wait for readers, so other readers do not make a hold of the read side wanted. A single-node lock
/// has no queue: there, only waiters of this client and requests by ``Lock.request_release`` are seen.
#[pyclass(frozen, weakref, module = "zklock")]
pub(crate) struct Wanted {
    wanted: zklock::further::Wanted,
}

impl Wanted {
    pub(crate) fn of(held: &Held) -> Self {
        Self { wanted: held.hold.watch_wanted() }
    }
}

#[pymethods]
impl Wanted {
    /// Whether others are known to be waiting. It does not ask the servers: right after the first use of ``Hold.wanted``,
    /// their answer has not arrived yet.
    fn is_set(&self) -> bool {
        self.wanted.is_set()
    }

    fn __bool__(&self) -> bool {
        self.is_set()
    }

    /// Waits until others wait for what the hold has. Returns ``True`` then, and ``False`` if the hold ends first or no
    /// others wait within ``timeout`` seconds.
    ///
    /// A negative ``timeout`` counts as zero, and ``None`` waits for ever. Raises ``Forked`` if this process was
    /// forked from the one that holds the lock.
    #[pyo3(signature = (timeout=None), text_signature = "($self, timeout=None)")]
    fn wait(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<bool> {
        // Like that of threading.Event: a negative timeout counts as zero.
        let timeout = number::patience(py, timeout.map(|Timeout(seconds)| Timeout(seconds.max(0.0))))?;
        let convert = |py: Python<'_>, wanted| Ok(in_time(py, wanted)? == Some(true));
        Verb::new(self.wanted.wanted().within(Wait::at_most(timeout)), convert).run(py)
    }

    /// Awaits it: returns ``True``, or ``False`` if the hold ended first.
    fn __await__(&self) -> Coroutine {
        Verb::new(self.wanted.wanted(), boolean).coroutine("Wanted.__await__")
    }

    fn __repr__(&self) -> &'static str {
        if self.is_set() { "<zklock.Wanted set>" } else { "<zklock.Wanted not set>" }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Wanted", "look at it where the lock is held"))
    }
}
