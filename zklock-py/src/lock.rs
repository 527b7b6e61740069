//! A thing that can be acquired.

use crate::aio::lock::AsyncLock;
use crate::base_lock::BaseLock;
use crate::block::{Block, is_generator_exit};
use crate::coroutine::Coroutine;
use crate::error::raised;
use crate::greenlet::{self, Greenlet};
use crate::hold::{Hold, leave, release};
use crate::log;
use crate::observer::Observer;
use crate::patience::{Blocking, Given, Patience, Seconds};
use crate::shared_hold::SharedHold;
use crate::shared_lock::SharedLock;
use crate::value;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use zklock_core::{Error, ErrorKind, Owner, Wait};

/// A lock of any kind, at a path. It can be shared by threads, and holds nothing itself: a ``with`` block does.
///
/// >>> lock = zk.mutex("/locks/doc", timeout=5)
/// >>> with lock as hold:
/// ...     hold.token > 0
/// True
///
/// On Python 3.14 an exception raised by a signal handler may come just before the block is entered, as with any lock, and
/// then the block is not left either. If your handlers raise, write ``with lock.hold() as hold``, which is safe.
///
/// The block raises ``Timeout`` if the lock was not free in time, ``Unreachable`` if no server could be reached, and at its
/// end ``LockLost`` if the hold was lost meanwhile. If the block itself raises, that exception gets a note of the loss. It
/// releases what it got, even if several blocks of one lock in one thread end in another order than they began, as those of
/// generators may.
///
/// ``acquire``, ``release`` and ``locked`` are those of ``threading.Lock``; or of ``threading.RLock``, if the
/// lock is reentrant. So any thread may release it, and a thread that acquires it again waits until one does; a warning
/// in the log says so. If it is reentrant, it belongs to the thread that acquired it. What ``acquire`` got is held until it
/// is released or the client is closed, even if the lock object is gone.
#[pyclass(frozen, extends = BaseLock, module = "zklock")]
pub(crate) struct Lock;

impl Lock {
    pub(crate) fn of(py: Python<'_>, core: Arc<SharedLock>) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(BaseLock::new(py, core)?).add_subclass(Self))
    }

    fn core<'a>(slf: &'a Bound<'_, Self>) -> &'a Arc<SharedLock> {
        &slf.as_super().get().core
    }
}

#[pymethods]
impl Lock {
    /// The same lock for asyncio.
    #[getter]
    fn aio(slf: &Bound<'_, Self>) -> PyResult<Py<AsyncLock>> {
        AsyncLock::of(slf.py(), Self::core(slf).clone())
    }

    /// Acquires the lock, and says whether it did, as ``threading.Lock.acquire`` does.
    ///
    /// >>> lock = zk.mutex("/locks/doc")
    /// >>> lock.acquire(timeout=5)
    /// True
    /// >>> lock.acquire(blocking=False)
    /// False
    /// >>> lock.release()
    ///
    /// Without a timeout it waits as long as the lock was made to, and raises ``Timeout`` then; -1 or ``None`` is for ever.
    /// With ``blocking=False`` it waits only for the ensemble's answer, for the client's ``try_timeout`` at most. ``False``
    /// means that others have the lock, or that the time was too short for an answer; the reason is logged.
    ///
    /// With ``blocking=False`` it may be called again and again: from the second time on that this lock object was busy, further
    /// calls cost no request until the servers tell that the one in the way has gone (semaphores, sets, choices and exclusive
    /// locks ask each time). So right after another client's release it may still be ``False``, for the moment that this takes, a
    /// tenth of the session timeout at most. With a short timeout the servers are asked in any case.
    ///
    /// Grants follow the order in which clients queue, and within a client that of its callers: however many wait, clients
    /// take turns. A caller that gives up leaves its place to the next of its client.
    ///
    /// Raises ``Deadlock`` if this thread holds the lock by another object that is reentrant, so that no other thread can
    /// release it; ``Unreachable`` if there is no connection when the time is over, or no server has answered for the
    /// ``try_timeout``, so that nobody knows who has the lock; ``ForeignContender`` if a contender of another library cannot
    /// see ours; ``LockLost`` if the outer hold of a reentrant lock is lost; ``Refused`` if the access list does not allow it;
    /// ``Closed`` if the client is closed.
    #[pyo3(signature = (blocking=Blocking(true), timeout=Seconds::Usual), text_signature = "($self, blocking=True, timeout=...)")]
    #[expect(clippy::needless_pass_by_value, reason = "what Python gives is extracted by value")]
    fn acquire(slf: &Bound<'_, Self>, blocking: Blocking, timeout: Seconds) -> PyResult<bool> {
        let (py, core) = (slf.py(), Self::core(slf));
        let Patience { timeout, raises } = Patience::new(core.timeout, &blocking, &timeout)?;
        match core.wait(py, timeout)? {
            Ok(held) => {
                core.kept.keep(&held, None);
                Ok(true)
            }
            Err(error) if raises => Err(raised(py, &error)),
            Err(error) => {
                log::inform(py, &error.to_string());
                Ok(false)
            }
        }
    }

    /// Acquires the lock and gives the hold as a value, which is to be released.
    ///
    /// >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
    /// >>> hold.release()
    ///
    /// It waits for ``timeout`` seconds at most, for ever if that is ``None``, by default as long as the lock was
    /// made to; zero tries once. Raises ``Timeout`` then, or ``Unreachable`` as ``acquire`` does.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn hold(slf: &Bound<'_, Self>, timeout: Given) -> PyResult<Py<Hold>> {
        let (py, core) = (slf.py(), Self::core(slf));
        let timeout = timeout.patience(py, core.timeout)?;
        let held = core.wait(py, timeout)?.map_err(|error| raised(py, &error))?;
        core.kept.know(&held);
        Hold::of(py, held, true)
    }

    /// Releases what this thread acquired last with ``acquire`` or a ``with`` block, or if the lock is not
    /// reentrant, what any thread did.
    ///
    /// Raises ``NotHeld``, which is a ``RuntimeError``, if there is nothing to release; see also ``Hold.release``.
    fn release(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, core) = (slf.py(), Self::core(slf));
        let held = core.kept.release(py, greenlet::owner(py)?, core.is_reentrant)?;
        release(py, &held)
    }

    /// What this thread acquired last with ``acquire`` or a ``with`` block and has not released yet, or
    /// ``None``.
    #[getter]
    fn current(slf: &Bound<'_, Self>) -> PyResult<Option<Py<Hold>>> {
        let held = Self::core(slf).kept.current(greenlet::owner(slf.py())?);
        held.map(|held| Hold::of(slf.py(), held, false)).transpose()
    }

    /// The queue, holders first, of every library: a list of ``Contender``.
    ///
    /// >>> lock = zk.mutex("/locks/doc")
    /// >>> with lock as hold:
    /// ...     [contender.token == hold.token for contender in lock.contenders()]
    /// [True]
    ///
    /// Of a set of locks, those of one lock after the other. A set that is the first in a queue but waits for another of
    /// its locks is listed first there, and does not hold.
    fn contenders(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, core) = (slf.py(), Self::core(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(AsyncLock::contenders(Self::aio(slf)?.bind(py)));
        }
        let queue = core.shared.call(py, || core.lock.contenders())?;
        value::contenders(py, queue)
    }

    /// Takes any contender out of the queue by deleting its node; ``False`` if the node was already gone.
    ///
    /// >>> lock = zk.mutex("/locks/doc")
    /// >>> hold = lock.hold()
    /// >>> [lock.evict(contender.node) for contender in lock.contenders() if contender.identity == "db7/4711"]
    /// []
    /// >>> hold.release()
    ///
    /// A holder learns that its hold is lost, if its library reports that; a waiter queues again. This breaks what the lock
    /// guards, unless the contender is known to be at a standstill: until it learns of the loss it believes that it holds,
    /// and another already does. Raises ``InvalidInput`` if the node is not a contender of this lock.
    ///
    /// All nodes of an exclusive lock have one path. There it evicts the holder of that moment, which may not be the one that
    /// was listed. ``break_lock`` spares such a holder.
    fn evict(slf: &Bound<'_, Self>, node: &str) -> PyResult<bool> {
        let (py, core) = (slf.py(), Self::core(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            let evicted = AsyncLock::evict(Self::aio(slf)?.bind(py), node.to_owned());
            return greenlet.wait_for(evicted)?.is_truthy(py);
        }
        core.shared.call(py, || core.lock.evict(node))
    }

    /// Takes the lock away from all its holders, and gives a list of them, each a ``Contender``.
    ///
    /// >>> zk.mutex("/locks/doc").break_lock()
    /// []
    ///
    /// See ``evict`` for what that breaks. Waiters stay, even a set of locks that is first in the queue and waits for another
    /// of its locks. The next holder of an exclusive lock is spared, unless the servers are of version 3.4 or another
    /// library holds it, and the next comes between the look at its node and its deletion.
    fn break_lock(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, core) = (slf.py(), Self::core(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(AsyncLock::break_lock(Self::aio(slf)?.bind(py)));
        }
        let broken = core.shared.call(py, || core.lock.break_lock())?;
        value::contenders(py, broken)
    }

    /// Asks all holders to let the lock go, and gives a list of them, each a ``Contender``.
    ///
    /// >>> hold = zk.mutex("/locks/doc").hold()
    /// >>> [holder.node == hold.node for holder in zk.mutex("/locks/doc").revoke()], hold.wanted.wait(timeout=5)
    /// ([True], True)
    /// >>> hold.release()
    ///
    /// It takes nothing away: a holder is told by ``Hold.wanted`` if it wants to know, and holds until it releases the lock.
    /// Each is asked as Curator's ``Revoker`` does it: the data of its node becomes ``__REVOKE__``, which is its identity from
    /// then on. So it reaches the holders of Curator's ``InterProcessMutex`` that are ``makeRevocable``, and those of zklock;
    /// other libraries do not look. Raises ``Refused`` if the access list does not allow to write to a holder's node; all others
    /// have been asked then.
    fn revoke(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, core) = (slf.py(), Self::core(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(AsyncLock::revoke(Self::aio(slf)?.bind(py)));
        }
        let asked = core.shared.call(py, || core.lock.revoke())?;
        value::contenders(py, asked)
    }

    /// Observes the holder of the lock without taking part; of an election, the leader.
    ///
    /// >>> lead = zk.election("/locks/doc")
    /// >>> with lead as hold:
    /// ...     for leader in lead.observe():
    /// ...         if leader is not None:
    /// ...             break
    /// ...     leader.token == hold.token
    /// True
    ///
    /// It is an iterator, an ``Observer``, which waits for each change and never ends. Many may observe one lock without
    /// waking each other. If several hold at once, it reports the first. It takes the first in the queue for the holder, even
    /// a set of locks that still waits for another of its locks. Raises ``InvalidInput`` for a semaphore or a set of locks.
    fn observe(slf: &Bound<'_, Self>) -> PyResult<Observer> {
        Observer::new(slf.py(), Self::core(slf))
    }

    fn __enter__(slf: &Bound<'_, Self>) -> PyResult<Py<Hold>> {
        let (py, core) = (slf.py(), Self::core(slf));
        let block = Block::of_caller(py);
        let held = core.wait(py, core.timeout)?.map_err(|error| raised(py, &error))?;
        let hold = Hold::of(py, held.clone(), false)?;
        // CPython 3.14 runs the handlers of signals between this call and the block, which then is not left either:
        // those that are due run here, where the hold is released when they raise.
        py.check_signals()?;
        core.kept.keep(&held, Some(block));
        Ok(hold)
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = traceback;
        let (py, core) = (kind.py(), Self::core(slf));
        match core.kept.leave(greenlet::owner(py)?, Block::of_caller(py)) {
            Some(entry) => {
                let left = leave(&entry.held, exception);
                core.kept.keep_on(entry, is_generator_exit(kind)?);
                left
            }
            None if !kind.is_none() => Ok(false),
            None => Err(core.kept.released_before(py)),
        }
    }

    fn __aenter__(slf: &Bound<'_, Self>) -> PyResult<Coroutine> {
        Self::core(slf).enter(slf.py())
    }

    #[pyo3(signature = (kind, exception, traceback))]
    fn __aexit__(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Coroutine> {
        let _ = traceback;
        Self::core(slf).exit(kind, exception)
    }
}

impl SharedLock {
    /// Waits until the lock is held; an error of its own is that the time was over.
    pub(crate) fn wait(
        self: &Arc<Self>,
        py: Python<'_>,
        timeout: Option<Duration>,
    ) -> PyResult<Result<Arc<SharedHold>, Error>> {
        if let Some(greenlet) = Greenlet::current(py)? {
            return self.sit_through(&greenlet, timeout);
        }
        let owner = Owner::current();
        if let Some(held) = self.at_once(owner).map_err(|error| raised(py, &error))? {
            return Ok(Ok(held));
        }
        // One deadline, of which connecting may take a part.
        let wait = Wait::from(timeout);
        loop {
            let granted = self.shared.call(py, || match self.lock.acquire_within(wait, None) {
                Err(error) if error.kind() == ErrorKind::Timeout => Ok(Err(error)),
                granted => granted.map(Ok),
            })?;
            match granted {
                // It took so long to come back into the interpreter that the hold has died meanwhile: queue again.
                Ok(hold) if hold.valid_for().is_zero() => drop(hold),
                granted => return Ok(granted.map(|hold| self.granted(hold, owner))),
            }
        }
    }
}
