//! A lock.

use crate::aio::lock::AsyncLock;
use crate::calls::coroutine::Coroutine;
use crate::calls::greenlet::{self, Greenlet};
use crate::guest::error::raised;
use crate::guest::log;
use crate::guest::value;
use crate::hold::{Hold, leave, release};
use crate::observer::Observer;
use crate::shared::base_lock::BaseLock;
use crate::shared::block::{Block, is_generator_exit};
use crate::shared::hold::SharedHold;
use crate::shared::lock::SharedLock;
use crate::shared::patience::{Blocking, Given, Patience, Seconds};
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use zklock_core::{Error, ErrorKind, Owner, Wait};

/// A lock of any kind, at a path. Threads can share it. The object itself holds nothing: a ``with`` block does.
///
/// >>> lock = zk.mutex("/locks/doc", timeout=5)
/// >>> with lock as hold:
/// ...     hold.token > 0
/// True
///
/// On Python 3.14, an exception raised by a signal handler may come just before the block is entered, as with any lock,
/// and then the lock is not released. If your handlers raise, write ``with lock.hold() as hold``, which is safe.
///
/// The block raises ``Timeout`` if the lock was not free in time, ``Unreachable`` if no server could be reached, and at
/// its end ``LockLost`` if the hold was lost meanwhile. If the block itself raises, a note about the loss is added to
/// that exception. The block releases what it acquired, even if several blocks of one lock in one thread end in another
/// order than they began, as can happen with generators.
///
/// ``acquire``, ``release`` and ``locked`` work as those of ``threading.Lock`` or, if the lock is reentrant, of
/// ``threading.RLock``. So any thread may release the lock, and a thread that acquires it again waits until it is
/// released; the log has a warning about that. If the lock is reentrant, it belongs to the thread that acquired it.
/// What ``acquire`` got is held until it is released or the client is closed, even if the lock object is gone.
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
    /// This lock for asyncio.
    #[getter]
    fn aio(slf: &Bound<'_, Self>) -> PyResult<Py<AsyncLock>> {
        AsyncLock::of(slf.py(), Self::core(slf).clone())
    }

    /// Acquires the lock, and returns whether it did, as ``threading.Lock.acquire`` does.
    ///
    /// >>> lock = zk.mutex("/locks/doc")
    /// >>> lock.acquire(timeout=5)
    /// True
    /// >>> lock.acquire(blocking=False)
    /// False
    /// >>> lock.release()
    ///
    /// Without a ``timeout`` argument, it waits for the timeout that the lock was made with, and then raises ``Timeout``;
    /// -1 or ``None`` waits for ever. With ``blocking=False`` it only waits for the servers' answer, for up to the client's
    /// ``try_timeout``. ``False`` means that others have the lock, or that the time was too short for an answer; the reason
    /// is logged.
    ///
    /// You may poll with ``blocking=False``. After this lock object was found busy twice, further tries send no request
    /// until the servers report that the contender ahead has gone. (Semaphores, sets, choices and exclusive locks ask each
    /// time.) So just after another client's release, a try may still return ``False`` until that report arrives, for a
    /// tenth of the session timeout at most. A call with a short timeout always asks the servers.
    ///
    /// Clients get the lock in the order in which they queue, and the callers within a client in the order in which they
    /// call. However many callers a client has, clients take turns. If a caller gives up, the next caller of its client
    /// takes its place.
    ///
    /// Raises ``Deadlock`` if this thread holds the lock by another object that is reentrant, so that no other thread can
    /// release it; ``Unreachable`` if there is no connection when the time is over, or no server answered within the
    /// ``try_timeout``, so that it is not known who has the lock; ``ForeignContender`` if a contender of another library
    /// cannot see ours; ``LockLost`` if the lock is reentrant and the outer hold is lost; ``Refused`` if the access list
    /// does not allow it; ``Closed`` if the client is closed.
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

    /// Acquires the lock and returns the hold, which you must release.
    ///
    /// >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
    /// >>> hold.release()
    ///
    /// It waits for up to ``timeout`` seconds; ``None`` waits for ever, and zero tries once. By default it waits for the
    /// timeout that the lock was made with. Then it raises ``Timeout``, or ``Unreachable`` as ``acquire`` does. The message of
    /// ``Timeout`` names the holder, if the servers say who that is.
    #[pyo3(signature = (timeout=Given::Usual), text_signature = "($self, timeout=...)")]
    fn hold(slf: &Bound<'_, Self>, timeout: Given) -> PyResult<Py<Hold>> {
        let (py, core) = (slf.py(), Self::core(slf));
        let timeout = timeout.patience(py, core.timeout)?;
        let held = core.wait(py, timeout)?.map_err(|error| raised(py, &error))?;
        core.kept.know(&held);
        Hold::of(py, held, true)
    }

    /// Releases what this thread acquired last with ``acquire`` or a ``with`` block. If this thread has acquired nothing
    /// and the lock is not reentrant, it releases what another thread acquired.
    ///
    /// Raises ``NotHeld``, which is a ``RuntimeError``, if there is nothing to release. See also ``Hold.release``.
    fn release(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, core) = (slf.py(), Self::core(slf));
        let held = core.kept.release(py, greenlet::owner(py)?, core.is_reentrant)?;
        release(py, &held)
    }

    /// The hold that this thread acquired last with ``acquire`` or a ``with`` block and has not released yet, or ``None``.
    #[getter]
    fn current(slf: &Bound<'_, Self>) -> PyResult<Option<Py<Hold>>> {
        let held = Self::core(slf).kept.current(greenlet::owner(slf.py())?);
        held.map(|held| Hold::of(slf.py(), held, false)).transpose()
    }

    /// The contenders in the queue, holders first: a list of ``Contender``. Those of other libraries are included.
    ///
    /// >>> lock = zk.mutex("/locks/doc")
    /// >>> with lock as hold:
    /// ...     [contender.token == hold.token for contender in lock.contenders()]
    /// [True]
    ///
    /// For a set of locks, it lists the queues of its locks one after the other. A set that is first in one queue but still
    /// waits for another of its locks is listed first there, but does not hold the lock.
    fn contenders(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, core) = (slf.py(), Self::core(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(AsyncLock::contenders(Self::aio(slf)?.bind(py)));
        }
        let queue = core.shared.call(py, || core.lock.contenders())?;
        value::contenders(py, queue)
    }

    /// Takes any contender out of the queue by deleting its node. ``False`` if the node was already gone.
    ///
    /// >>> lock = zk.mutex("/locks/doc")
    /// >>> hold = lock.hold()
    /// >>> [lock.evict(contender.node) for contender in lock.contenders() if contender.identity == "db7/4711"]
    /// []
    /// >>> hold.release()
    ///
    /// A holder learns that its hold is lost, if its library reports that. A waiter queues again. Evicting a holder breaks
    /// the protection of the lock, unless the holder is known to have stopped: until it learns of the loss, it believes
    /// that it holds the lock, and another already does. Raises ``InvalidInput`` if the node is not a contender of this
    /// lock.
    ///
    /// All nodes of an exclusive lock have the same path. There, this evicts the current holder, which may not be the one
    /// that was listed. ``break_lock`` avoids that.
    fn evict(slf: &Bound<'_, Self>, node: &str) -> PyResult<bool> {
        let (py, core) = (slf.py(), Self::core(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            let evicted = AsyncLock::evict(Self::aio(slf)?.bind(py), node.to_owned());
            return greenlet.wait_for(evicted)?.is_truthy(py);
        }
        core.shared.call(py, || core.lock.evict(node))
    }

    /// Takes the lock away from all its holders, and returns a list of them, each a ``Contender``.
    ///
    /// >>> zk.mutex("/locks/doc").break_lock()
    /// []
    ///
    /// See ``evict`` for what this breaks. Waiters stay in the queue, and so does a set of locks that is first in this
    /// queue but still waits for another of its locks. The next holder of an exclusive lock is spared. It can be hit only if
    /// the servers are of version 3.4, or another library holds the lock, and if its node is created just between the
    /// request that reads the node and the one that deletes it.
    fn break_lock(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, core) = (slf.py(), Self::core(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(AsyncLock::break_lock(Self::aio(slf)?.bind(py)));
        }
        let broken = core.shared.call(py, || core.lock.break_lock())?;
        value::contenders(py, broken)
    }

    /// Asks all holders to release the lock, and returns a list of them, each a ``Contender``.
    ///
    /// >>> hold = zk.mutex("/locks/doc").hold()
    /// >>> [holder.node == hold.node for holder in zk.mutex("/locks/doc").revoke()], hold.wanted.wait(timeout=5)
    /// ([True], True)
    /// >>> hold.release()
    ///
    /// Nothing is taken away: a holder that watches ``Hold.wanted`` learns of the request, and keeps the lock until it
    /// releases it. The request is written as Curator's ``Revoker`` writes it: the data of the holder's node becomes
    /// ``__REVOKE__``. So it reaches holders of zklock, and holders of a Curator ``InterProcessMutex`` that called
    /// ``makeRevocable``. Other libraries ignore it. Below that word, the node of a holder of zklock keeps its identity;
    /// for a holder of another library, the word replaces it. Raises ``Refused`` if the access list does not allow
    /// writing to a holder's node; all other holders are still asked.
    fn revoke(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, core) = (slf.py(), Self::core(slf));
        if let Some(greenlet) = Greenlet::current(py)? {
            return greenlet.wait_for(AsyncLock::revoke(Self::aio(slf)?.bind(py)));
        }
        let asked = core.shared.call(py, || core.lock.revoke())?;
        value::contenders(py, asked)
    }

    /// Observes who holds the lock or, for an election, who leads, without taking part.
    ///
    /// >>> lead = zk.election("/locks/doc")
    /// >>> with lead as hold:
    /// ...     for leader in lead.observe():
    /// ...         if leader is not None:
    /// ...             break
    /// ...     leader.token == hold.token
    /// True
    ///
    /// It returns an ``Observer``, an iterator that waits for each change and never ends. Many can observe one lock without
    /// waking each other. If there are several holders, it reports the first. The first contender in the queue is reported
    /// as the holder, even if it is a set of locks that still waits for another of its locks. Raises ``InvalidInput`` for a
    /// semaphore or a set of locks.
    fn observe(slf: &Bound<'_, Self>) -> PyResult<Observer> {
        Observer::new(slf.py(), Self::core(slf))
    }

    fn __enter__(slf: &Bound<'_, Self>) -> PyResult<Py<Hold>> {
        let (py, core) = (slf.py(), Self::core(slf));
        let block = Block::of_caller(py);
        let held = core.wait(py, core.timeout)?.map_err(|error| raised(py, &error))?;
        let hold = Hold::of(py, held.clone(), false)?;
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
    /// Waits until the lock is held. An error of its own means that the time ran out.
    pub(crate) fn wait(
        self: &Arc<Self>,
        py: Python<'_>,
        timeout: Option<Duration>,
    ) -> PyResult<Result<Arc<SharedHold>, Error>> {
        let held = self.wait_deaf(py, timeout)?;
        // A signal may have come since the wait last looked. Its handler would run just after this call, where the
        // caller has not entered its `try` or `with` block yet. So run it here: if it raises, the hold is released.
        py.check_signals()?;
        Ok(held)
    }

    /// Like [`wait`](Self::wait), but the handlers of signals that come with the grant run after it.
    fn wait_deaf(
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
        // One deadline for everything. Connecting may take a part of it.
        let wait = Wait::from(timeout);
        loop {
            let granted = self.shared.call(py, || match self.lock.acquire_within(wait, None) {
                Err(error) if error.kind() == ErrorKind::Timeout => Ok(Err(error)),
                granted => granted.map(Ok),
            })?;
            match granted {
                // Returning to the interpreter took so long that the hold was lost meanwhile: queue again.
                Ok(hold) if hold.valid_for().is_zero() => drop(hold),
                granted => return Ok(granted.map(|hold| self.granted(hold, owner))),
            }
        }
    }
}
