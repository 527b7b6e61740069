//! A lock.

use crate::block::{Block, is_generator_exit};
use crate::calls::anchor::CallbackAnchor;
use crate::calls::coroutine::Coroutine;
use crate::calls::owner;
use crate::client_inner::ClientInner;
use crate::guest::error::{invalid, raised};
use crate::guest::log;
use crate::guest::number::{self, Timeout};
use crate::guest::value;
use crate::held::Held;
use crate::hold::BaseHold;
use crate::holds::Holds;
use crate::noun::{Class, Face, Inner, noun};
use crate::observer::{AsyncObserver, Observer, ObserverInner};
use crate::patience::{Blocking, Given, Seconds, patience};
use crate::scope::Scope;
use crate::verb::{Convert, Verb, boolean, or_raise};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use zklock::further::{Owner, Wait};
use zklock::{Call, Error, ErrorKind, LockSpec};

/// A lock, and the holds of it.
pub(crate) struct LockInner {
    client: Arc<ClientInner>,
    holds: Arc<Holds>,
    path: String,
    timeout: Option<Duration>,
    is_reentrant: bool,
    /// Whether a loss cancels an `async with` block.
    cancels: bool,
    /// Whether it can be acquired without waiting: again by its owner, or on a node that the client has kept.
    may_be_at_once: bool,
    pub(crate) core: zklock::Lock,
}

impl LockInner {
    pub(crate) fn new(
        py: Python<'_>,
        client: &Arc<ClientInner>,
        spec: &LockSpec,
        timeout: Option<Timeout>,
        cancels: bool,
    ) -> PyResult<Arc<Self>> {
        let timeout = number::patience(py, timeout)?;
        let core = client.core.lock(spec).map_err(|error| raised(py, &error))?;
        Ok(Arc::new(Self {
            client: client.clone(),
            holds: client.holds(&spec.key(), spec.path()),
            path: spec.path().to_owned(),
            timeout,
            cancels,
            is_reentrant: spec.is_reentrant(),
            may_be_at_once: spec.is_reentrant() || spec.is_passed_on(),
            core,
        }))
    }

    /// Waits until the lock is held.
    fn wait(self: &Arc<Self>, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Granted> {
        let owner = owner::of_caller(py)?;
        // One deadline for everything. Connecting may take a part of it.
        let wait = Wait::from(timeout);
        let granted = loop {
            let core = self.core.clone();
            match self.acquire(move || core.acquire_as(owner, wait), or_late).run(py)? {
                // Returning to the interpreter took so long that the hold was lost meanwhile: queue again.
                Ok(hold) if hold.valid_for().is_zero() => drop(hold),
                granted => break granted,
            }
        };
        // A signal may have come since the wait last looked. Its handler would run just after this call, where the
        // caller has not entered its `try` or `with` block yet. So run it here: if it raises, the hold is released.
        py.check_signals()?;
        Ok(granted.map(|hold| self.granted(hold, owner)))
    }

    /// The same for a task.
    fn start(
        self: &Arc<Self>,
        py: Python<'_>,
        timeout: Option<Duration>,
    ) -> PyResult<Verb<zklock::Hold, impl Convert<zklock::Hold, Granted> + use<>>> {
        // The task that makes the call is the owner, even if another task awaits it.
        let task = owner::of_task(py)?;
        if task.is_none() && self.is_reentrant {
            let message = "a reentrant lock belongs to the task that acquires it: call this within one";
            return Err(invalid(py, message.to_owned()));
        }
        let (owner, inner, core) = (task.unwrap_or_else(Owner::unique), self.clone(), self.core.clone());
        let granted =
            move |py: Python<'_>, granted| Ok(or_late(py, granted)?.map(|hold| inner.granted(hold, owner)));
        Ok(self.acquire(move || core.acquire_as(owner, timeout), granted))
    }

    /// Acquires it by a method of this class, and converts the outcome.
    fn by<C: Class>(
        self: &Arc<Self>,
        py: Python<'_>,
        method: &str,
        timeout: Option<Duration>,
        convert: impl FnOnce(Python<'_>, Granted) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Py<PyAny>> {
        match C::FACE {
            Face::Threads => convert(py, self.wait(py, timeout)?),
            Face::Asyncio => {
                let name = format!("{}.{method}", C::NAME);
                self.start(py, timeout)?.and_then(convert).coroutine(name).into_py_any(py)
            }
        }
    }

    /// Gives a hold as a value.
    fn value(&self, py: Python<'_>, face: Face, held: Arc<Held>) -> PyResult<Py<PyAny>> {
        self.holds.know(&held);
        BaseHold::object(py, face, held, true)
    }

    fn acquire<F>(
        &self,
        make: impl FnOnce() -> Call<zklock::Hold> + Send + 'static,
        convert: F,
    ) -> Verb<zklock::Hold, F> {
        Verb::timed(make, convert).of_client(&self.client).maybe_at_once(self.may_be_at_once)
    }

    fn granted(&self, hold: zklock::Hold, owner: Owner) -> Arc<Held> {
        Held::new(hold, owner, self.is_reentrant, &self.client.callbacks.anchored)
    }

    fn enter(self: &Arc<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let block = Block::of_caller(py);
        let held = self.wait(py, self.timeout)?.map_err(|error| raised(py, &error))?;
        let hold = BaseHold::object(py, Face::Threads, held.clone(), false)?;
        self.holds.keep(&held, Some(block), None);
        Ok(hold)
    }

    fn exit(&self, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = exception.py();
        match self.holds.leave(owner::of_caller(py)?, Block::of_caller(py)).0 {
            Some(entry) => {
                let left = entry.held.exit(exception);
                self.holds.keep_on(entry, is_generator_exit(exception));
                left
            }
            None if !exception.is_none() => Ok(false),
            None => Err(self.holds.released_before(py)),
        }
    }

    fn begin_block(self: &Arc<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let scope = if self.cancels { Scope::of_caller(py, &self.path, self.is_reentrant)? } else { None };
        let (inner, block) = (self.clone(), Block::of_caller(py));
        Scope::entering(py, scope, |mut scope| {
            let deliver = move |py: Python<'_>, granted: Granted| {
                let held = granted.map_err(|error| raised(py, &error))?;
                let hold = BaseHold::object(py, Face::Asyncio, held.clone(), false)?;
                if let Some(scope) = &mut scope {
                    scope.watch(py, &held)?;
                }
                inner.holds.keep(&held, Some(block), scope);
                Ok(hold)
            };
            Ok(self.start(py, self.timeout)?.and_then(deliver).coroutine("AsyncLock.__aenter__"))
        })
    }

    fn end_block(&self, exception: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = exception.py();
        let (entry, scope) = self.holds.leave(owner::of_task_or_unique(py)?, Block::of_caller(py));
        let left = Scope::leaving(scope, exception, || match &entry {
            Some(entry) => entry.held.end_block(exception),
            None if exception.is_none() => Err(self.holds.released_before(py)),
            None => Coroutine::done("AsyncLock.__aexit__", value::boolean(py, false)).into_py_any(py),
        });
        if let Some(entry) = entry {
            self.holds.keep_on(entry, is_generator_exit(exception));
        }
        left
    }

    /// Asks the servers.
    fn ask<T: Send + 'static, F>(
        &self,
        ask: impl FnOnce(&zklock::Lock) -> Call<T>,
        convert: F,
    ) -> Verb<T, F> {
        Verb::new(ask(&self.core), convert).of_client(&self.client)
    }
}

impl Inner for LockInner {
    fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>> {
        self.client.callbacks.anchor(py)
    }

    fn describe(&self, class: &str) -> String {
        // For a mutex, the most common kind, the class name is enough.
        let kind = Some(self.core.spec().kind()).filter(|kind| kind != "mutex");
        let kind = kind.map_or_else(String::new, |kind| format!(" {kind}"));
        let reentrant = if self.is_reentrant { " reentrant" } else { "" };
        let held = self.holds.held();
        let state = match held.last() {
            Some(held) => {
                let (token, seconds) = (held.hold.token(), held.hold.valid_for().as_secs_f64());
                format!("held with token {token} for {seconds:.3} s at least")
            }
            None => "not held here".to_owned(),
        };
        format!("<zklock.{class}{kind}{reentrant} {:?} {state}>", self.path)
    }
}

/// An error of its own means that the time ran out.
type Granted = Result<Arc<Held>, Error>;

/// Raises an error, unless it is that the time ran out.
fn or_late<T>(py: Python<'_>, granted: Result<T, Error>) -> PyResult<Result<T, Error>> {
    match granted {
        Err(error) if error.kind() != ErrorKind::Timeout => Err(raised(py, &error)),
        granted => Ok(granted),
    }
}

/// Returns nothing if the time ran out: the reason is logged.
fn or_logged(py: Python<'_>, granted: Granted) -> Option<Arc<Held>> {
    granted.map_err(|error| log::inform(py, &error.to_string())).ok()
}

noun! {
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
    /// its end ``LockLost`` if the hold was lost meanwhile. Nothing can interrupt a ``with`` block at a loss: call ``hold.ensure``
    /// before each piece of work, look at ``hold.lost``, or add a callback with ``hold.on_lost``. (``async with`` cancels its block:
    /// see ``AsyncLock``.) If the block itself raises, a note about the loss is added to that exception. Each block releases its own hold, even if several blocks of one lock in one thread end in another
    /// order than they began, as can happen with generators.
    ///
    /// ``acquire``, ``release`` and ``locked`` work as those of ``threading.Lock`` or, if the lock is reentrant, of
    /// ``threading.RLock``. So any thread may release the lock, and a thread that acquires it again waits until it is
    /// released; the log has a warning about that. If the lock is reentrant, it belongs to the thread that acquired it.
    /// After ``acquire`` the lock is held until it is released or the client is closed, even if the lock object is
    /// deleted.
    ///
    /// A lock is also a decorator, for a function or a coroutine function: each call runs in a block of its own.
    ///
    /// >>> @zk.mutex("/locks/doc", timeout=0)
    /// ... def report():
    /// ...     return "written"
    /// >>> report()
    /// 'written'
    ///
    /// A call raises what its block raises. In the function, the lock's ``current`` is the hold. Classes and generators raise
    /// ``InvalidInput``.
    struct Lock;

    /// A ``Lock`` for asyncio. Get one from ``AsyncClient.mutex`` and its siblings, or from ``Lock.aio``.
    ///
    /// >>> async def once():
    /// ...     lock = zk.aio.mutex("/locks/doc", timeout=5)
    /// ...     if await lock.acquire(blocking=False):
    /// ...         await lock.release()
    /// ...     return lock.locked()
    /// >>> asyncio.run(once())
    /// False
    ///
    /// The lock belongs to the task that calls ``acquire``, ``hold`` or ``async with``, even if another task awaits the
    /// result, as ``asyncio.wait_for`` and ``create_task`` do. If that task already holds the lock, it waits until that
    /// hold is released; if the lock is reentrant, it gets another hold at once. Keep a reference to a task that waits,
    /// because the event loop only has a weak one. A cancelled wait leaves the queue, and a lock that was granted meanwhile
    /// is released.
    ///
    /// When the hold of an ``async with`` block is lost, its task is cancelled, and cleans up. The block then raises ``LockLost`` in
    /// place of the ``CancelledError``, just as a block of ``asyncio.timeout`` raises ``TimeoutError``:
    ///
    /// >>> async def report():
    /// ...     async with zk.mutex("/locks/doc", timeout=5):
    /// ...         await asyncio.sleep(0.01)  # a loss ends it
    /// >>> asyncio.run(report())
    ///
    /// If the block raises an exception of its own, that exception goes on, with a note about the loss. If the block swallows the
    /// cancellation, its end raises ``LockLost``. If the task is cancelled for another reason, it stays cancelled, even if the hold
    /// is lost as well. After the block, nothing is cancelled. A task is only cancelled when it awaits something. A lock that was
    /// made with ``cancel=False`` cancels nothing.
    ///
    /// In an async generator, a loss would cancel the consumer, so the block raises ``InvalidInput`` there, unless
    /// ``contextlib.asynccontextmanager`` makes the consumer's block of the generator. Before Python 3.11, only the message shows
    /// which cancellation is ours. Ours counts as another one if something in between raises a ``CancelledError`` of its own.
    /// Another one counts as ours if both come before the task goes on.
    ///
    /// ``async with`` also works under trio. Another thread waits for the lock there, and the hold's own coroutines (``confirm``,
    /// ``read``, ``commit``) do not work, as elsewhere under trio. A reentrant lock raises ``InvalidInput`` there, because it belongs
    /// to a task of asyncio.
    ///
    /// It is also a decorator for coroutine functions, as ``Lock`` is.
    struct AsyncLock;

    both(LockInner: aio, calls, blocks) {
        /// The path of the lock, or all the paths of a set of locks.
        #[getter]
        fn path(&self) -> &str {
            &self.inner.path
        }

        /// Whether this client holds the lock. It does not ask the servers: to see other holders, use ``contenders``.
        fn locked(&self) -> bool {
            !self.inner.holds.held().is_empty()
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
            Self::make(slf.py(), "contenders", Self::inner(slf).ask(zklock::Lock::contenders, or_raise(value::contenders)))
        }

        /// Takes any contender out of the queue by deleting its node. ``False`` if the node no longer
        /// existed.
        ///
        /// >>> lock = zk.mutex("/locks/doc")
        /// >>> hold = lock.hold()
        /// >>> [lock.evict(contender.node) for contender in lock.contenders() if contender.identity == "db7/4711"]
        /// []
        /// >>> hold.release()
        ///
        /// A holder learns that its hold is lost, if its library reports that. A waiter queues again. Evicting a holder breaks
        /// the protection of the lock, unless the holder is known to have stopped: until it learns of the loss, it believes
        /// that it holds the lock, while another already does. Raises ``InvalidInput`` if the node is not a contender of this
        /// lock.
        ///
        /// All nodes of a single-node lock have the same path. There, this evicts the current holder, which may not be the one
        /// that was listed. ``break_lock`` avoids that.
        fn evict(slf: &Bound<'_, Self>, node: &str) -> PyResult<Py<PyAny>> {
            Self::make(slf.py(), "evict", Self::inner(slf).ask(|lock| lock.evict(node), boolean))
        }

        /// Takes the lock away from all its holders, and returns a list of them, each a ``Contender``.
        ///
        /// >>> zk.mutex("/locks/doc").break_lock()
        /// []
        ///
        /// See ``evict`` for what this breaks. Waiters stay in the queue, and so does a set of locks that is first in this queue
        /// but still waits for another of its locks. The next holder of a single-node lock keeps its lock, with one exception: if
        /// the servers are of version 3.4, or another library holds the lock, a node that is created just between the request
        /// that reads the node and the one that deletes it is deleted too.
        fn break_lock(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
            Self::make(slf.py(), "break_lock", Self::inner(slf).ask(zklock::Lock::break_lock, or_raise(value::contenders)))
        }

        /// Asks all holders to release the lock, and returns a list of them, each a ``Contender``.
        ///
        /// >>> hold = zk.mutex("/locks/doc").hold()
        /// >>> [holder.node == hold.node for holder in zk.mutex("/locks/doc").request_release()], hold.wanted.wait(timeout=5)
        /// ([True], True)
        /// >>> hold.release()
        ///
        /// Nothing is taken away: a holder that watches ``Hold.wanted`` learns of the request, and keeps the lock until it
        /// releases it. The request is written as Curator's ``Revoker`` writes it: the data of the holder's node becomes
        /// ``__REVOKE__``. So it reaches holders of zklock, and holders of a Curator ``InterProcessMutex`` that called
        /// ``makeRevocable``. Other libraries ignore it. Below that word, the node of a holder of zklock keeps its identity;
        /// for a holder of another library, the word replaces it. Raises ``Refused`` if the access list does not allow
        /// writing to a holder's node; all other holders are still asked.
        fn request_release(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
            Self::make(slf.py(), "request_release", Self::inner(slf).ask(zklock::Lock::request_release, or_raise(value::contenders)))
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
        /// Without a ``timeout`` argument, it waits for the timeout that the lock was made with; -1 or ``None`` waits for ever.
        /// With ``blocking=False`` it only waits for the servers' answer, for up to the client's ``try_timeout``. ``False`` means
        /// that others have the lock, or that the time was too short for an answer; the reason is logged. So always look at the
        /// result, or use ``hold`` or a block, which raise ``Timeout``.
        ///
        /// You may poll with ``blocking=False``. After two tries have found this lock object busy, further tries send no
        /// request until the servers report that the contender ahead has left. (Semaphores, sets, choices and single-node locks
        /// ask each time.) So just after another client's release, a try may still return ``False`` until that report arrives,
        /// for a tenth of the session timeout at most. A call with a short timeout always asks the servers.
        ///
        /// Clients get the lock in the order in which they queue, and the callers within a client in the order in which they
        /// call. However many callers a client has, clients take turns. If a caller gives up, the next caller of its client
        /// takes its place.
        ///
        /// It raises
        ///
        /// * ``Deadlock`` if this thread holds the lock by another object that is reentrant, so that no other thread can release
        ///   it, or if an asyncio event loop runs in this thread;
        /// * ``Unreachable`` if there is no connection when the time is over, or no server answered within the ``try_timeout``, so
        ///   that it is not known who has the lock;
        /// * ``ForeignContender`` if a contender of another library cannot see ours;
        /// * ``LockLost`` if the lock is reentrant and the outer hold is lost;
        /// * ``Refused`` if the access list does not allow it;
        /// * ``Closed`` if the client is closed.
        #[pyo3(signature = (blocking=Blocking(true), timeout=Seconds::Usual), text_signature = "($self, blocking=True, timeout=...)")]
        #[expect(clippy::needless_pass_by_value, reason = "what Python gives is extracted by value")]
        fn acquire(&self, py: Python<'_>, blocking: Blocking, timeout: Seconds) -> PyResult<Py<PyAny>> {
            let (timeout, inner) = (patience(self.inner.timeout, &blocking, &timeout)?, self.inner.clone());
            self.inner.by::<Self>(py, "acquire", timeout, move |py, granted| {
                let held = or_logged(py, granted);
                Ok(value::boolean(py, held.map(|held| inner.holds.keep(&held, None, None)).is_some()))
            })
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
        fn hold(&self, py: Python<'_>, timeout: Given) -> PyResult<Py<PyAny>> {
            let (timeout, inner) = (timeout.patience(py, self.inner.timeout)?, self.inner.clone());
            self.inner.by::<Self>(py, "hold", timeout, move |py, granted| {
                inner.value(py, Self::FACE, granted.map_err(|error| raised(py, &error))?)
            })
        }

        /// Tries once to acquire the lock, as ``acquire(blocking=False)`` does. Returns the hold, which you must release, or
        /// ``None`` if others have the lock.
        ///
        /// >>> hold = zk.mutex("/locks/doc").try_acquire()
        /// >>> print(zk.mutex("/locks/doc").try_acquire())
        /// None
        /// >>> hold.release()
        fn try_acquire(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            let inner = self.inner.clone();
            self.inner.by::<Self>(py, "try_acquire", Some(Duration::ZERO), move |py, granted| {
                or_logged(py, granted).map_or_else(|| Ok(py.None()), |held| inner.value(py, Self::FACE, held))
            })
        }

        /// Releases what this thread or task acquired last with ``acquire`` or a block. If it has acquired nothing
        /// and the lock is not reentrant, it releases what another acquired. In asyncio, the release
        /// starts at once; await it to wait until the servers have confirmed it.
        ///
        /// Raises ``NotHeld``, which is a ``RuntimeError``, if there is nothing to release. See also ``Hold.release``.
        fn release(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            let owner = Self::FACE.owner(py)?;
            self.inner.holds.release(py, owner, self.inner.is_reentrant)?.release::<Self>(py, owner)
        }

        /// The hold that this thread or task acquired last with ``acquire`` or a block and has not released yet, or ``None``.
        #[getter]
        fn current(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
            let held = self.inner.holds.current(Self::FACE.owner(py)?);
            held.map(|held| BaseHold::object(py, Self::FACE, held, false)).transpose()
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
        /// It returns an ``Observer``, an iterator (in asyncio for ``async for``) that waits for each change and never ends. Many can
        /// observe one lock without waking each other. If there are several holders, it reports the first. The first contender in the queue is reported
        /// as the holder, even if it is a set of locks that still waits for another of its locks. Raises ``InvalidInput`` for a
        /// semaphore or a set of locks.
        fn observe(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            let observer = ObserverInner::new(py, &self.inner.client, &self.inner.core)?;
            Self::FACE.object::<Observer, AsyncObserver>(py, observer)
        }
    }
}
