import os
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Final, Literal, final, overload

from typing_extensions import Self, disjoint_base

from ._values import Contender, HoldState, LossReason, Stats

# The docstrings are those of the native module: tests/python/face/stub.py writes and checks them.
#
# What is `async` here is to be awaited: it gives a coroutine, if not one of a Python function. What begins at once gives an
# `Awaitable`, which need not be.

__all__ = [
    "AsyncClient",
    "AsyncGuarded",
    "AsyncHold",
    "AsyncLock",
    "BaseGuarded",
    "BaseHold",
    "Client",
    "Guarded",
    "Hold",
    "Lock",
    "Loss",
    "Tls",
    "__version__",
]

__version__: Final[str]

@final
class Client:
    """One logical connection to an ensemble, at ``hosts``: ``host:port,host:port``, and perhaps a ``/chroot``.

    >>> with zklock.Client(hosts, session_timeout=10) as zk:
    ...     with zk.mutex("/locks/doc", timeout=5):
    ...         pass

    It connects when it is first needed, or entered, or by ``connect()``; so a program may make one at the top of a
    module, and fork before it is used. It outlives sessions: when one expires it opens the next. Share one client
    among all threads and tasks of a process; each process needs one of its own. What is wrong with an argument is
    said at once, with ``InvalidInput``; that no server answers, when it connects, with ``Unreachable``.

    Times are in seconds. ``session_timeout`` is for how long a lock stays taken when its holder has crashed, and
    about how long the network may fail without a hold being lost; the servers may grant another. ``connect_timeout``
    bounds the try to reach a server. ``chroot`` puts all paths below that node. ``identity`` is what others see as
    this contender's name, by default ``host/pid``. ``tls`` is a ``Tls``.

    At the end of the program clients are closed, which frees their locks; but not where a daemon thread may still
    be using one: then those of its client are free when the session has timed out.
    """
    def __new__(
        cls,
        hosts: str,
        *,
        session_timeout: float = 10.0,
        connect_timeout: float = 10.0,
        chroot: str | None = None,
        identity: str | None = None,
        tls: Tls | None = None,
    ) -> Self: ...
    @property
    def aio(self) -> AsyncClient:
        """The same client for asyncio."""
    def connect(self, timeout: float | None = None) -> None:
        """Connects, unless that has been done.

        Raises ``Unreachable`` if no server answers within the connect timeout, or none of the hosts is known;
        ``Timeout`` if ``timeout`` seconds are over before.
        """
    def close(self) -> None:
        """Closes the client, which frees every lock that it holds, and waits until the ensemble has confirmed it, or a
        second has passed. Holds are lost then, waits end with ``Closed``. Closing twice is no mistake.
        """
    def mutex(self, path: str, *, timeout: float | None = None, reentrant: bool = False) -> Lock:
        """The mutex at ``path``: one holder at a time, in the order of arrival.

        >>> lock = zk.mutex("/locks/doc", timeout=5, reentrant=True)
        >>> with lock as outer, lock as inner:
        ...     outer.token == inner.token
        True

        ``timeout`` is how many seconds to wait for it where nothing else is said; ``None`` is for ever, 0 tries
        once. It costs no request.
        """
    def stats(self) -> Stats:
        """What this client has done, and what it still owes: a ``Stats``.

        >>> zk.stats().owed
        0
        """
    @property
    def session_id(self) -> int | None:
        """The number of the session, if there is one now."""
    @property
    def session_timeout(self) -> float | None:
        """The session timeout in seconds, as the servers granted it, if there is a session now."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
    async def __aenter__(self) -> AsyncClient: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class AsyncClient:
    """A ``Client`` for asyncio. ``async with`` gives one, and so does ``Client.aio``.

    >>> async def report():
    ...     async with zklock.Client(hosts) as zk:
    ...         async with zk.mutex("/locks/doc", timeout=5) as hold:
    ...             return hold.token > 0
    >>> asyncio.run(report())
    True
    """
    async def connect(self, timeout: float | None = None) -> None:
        """Connects, unless that has been done. As ``Client.connect``."""
    def close(self) -> Awaitable[None]:
        """Closes the client. As ``Client.close``; it begins at once, and to await it is to wait for the end."""
    def mutex(self, path: str, *, timeout: float | None = None, reentrant: bool = False) -> AsyncLock:
        """The mutex at ``path``. As ``Client.mutex``."""
    def stats(self) -> Stats:
        """What this client has done, and what it still owes: a ``Stats``."""
    @property
    def session_id(self) -> int | None:
        """The number of the session, if there is one now."""
    @property
    def session_timeout(self) -> float | None:
        """The session timeout in seconds, as the servers granted it, if there is a session now."""
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class Lock:
    """A lock at a path. It can be shared by threads, and holds nothing itself: a ``with`` block does.

    >>> lock = zk.mutex("/locks/doc", timeout=5)
    >>> with lock as hold:
    ...     hold.token > 0
    True

    On Python 3.14 a signal's exception may come just before the block is entered, as with any lock, and then the block is
    not left either: where handlers raise, write ``with lock.hold() as hold``, which is safe there.

    The block raises ``Timeout`` if the lock was not to be had in time, and at its end ``LockLost`` if it was lost
    meanwhile, unless it raises something itself.

    ``acquire``, ``release`` and ``locked`` are those of ``threading.Lock``; or of ``threading.RLock``, if the
    lock is reentrant. What differs: where this thread itself holds the lock, and it is not reentrant, ``acquire`` raises
    ``Deadlock`` at once, whatever the timeout, unless it is not to block. What ``acquire`` got is held until it is
    released, or the client is closed, also if the lock object is gone.
    """
    @property
    def path(self) -> str:
        """The path of the lock."""
    @property
    def aio(self) -> AsyncLock:
        """The same lock for asyncio."""
    def acquire(self, blocking: bool = True, timeout: float = ...) -> bool:
        """Acquires the lock, and says whether it did, as ``threading.Lock.acquire`` does.

        >>> lock = zk.mutex("/locks/doc")
        >>> lock.acquire(timeout=5)
        True
        >>> lock.acquire(blocking=False)
        False
        >>> lock.release()

        Without a timeout it waits as long as the lock was made to, and raises ``Timeout`` then; -1 is for ever. With
        ``blocking=False`` it waits for the ensemble's answer, and for nothing else. Why it was ``False`` is logged.

        Raises ``Deadlock`` if this thread holds the lock already; ``Unreachable`` if the ensemble does not answer, and
        no timeout ends the wait before; ``ForeignContender``, ``LockLost``, ``Refused`` and ``Closed`` as they say.
        """
    def hold(self, timeout: float | None = ...) -> Hold:
        """Acquires the lock and gives the hold as a value, which is to be released.

        >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
        >>> hold.release()

        It waits for ``timeout`` seconds at most, for ever if that is ``None``, or else as long as the lock was
        made to; zero tries once. Raises ``Timeout`` then.
        """
    def release(self) -> None:
        """Releases what this thread acquired last with ``acquire`` or a ``with`` block, or if the lock is not
        reentrant, what any thread did.

        Raises ``NotHeld``, which is a ``RuntimeError``, if there is nothing to release; else as ``Hold.release``.
        """
    def locked(self) -> bool:
        """Whether this client holds the lock. It asks nobody: for others see ``contenders``."""
    @property
    def current(self) -> Hold | None:
        """What this thread acquired last with ``acquire`` or a ``with`` block and has not released yet, or
        ``None``.
        """
    def contenders(self) -> list[Contender]:
        """Who is in the queue, the holder first, of whatever library: a list of ``Contender``.

        >>> lock = zk.mutex("/locks/doc")
        >>> with lock as hold:
        ...     [contender.token == hold.token for contender in lock.contenders()]
        [True]
        """
    def __enter__(self) -> Hold: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
    async def __aenter__(self) -> AsyncHold: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class AsyncLock:
    """A ``Lock`` for asyncio. ``AsyncClient.mutex`` gives one, and so does ``Lock.aio``.

    >>> async def once():
    ...     lock = zk.aio.mutex("/locks/doc", timeout=5)
    ...     if await lock.acquire(blocking=False):
    ...         await lock.release()
    ...     return lock.locked()
    >>> asyncio.run(once())
    False

    The lock belongs to the task that calls ``acquire``, ``hold`` or ``async with``, be it that another awaits it, as
    ``asyncio.wait_for`` and ``create_task`` do. Where that task holds it already, ``Deadlock`` is raised, or if it is reentrant, it
    is counted. Keep a reference to a task that waits: the loop has only a weak one. A wait that is cancelled leaves the queue; if the lock was granted meanwhile, it is released.
    """
    @property
    def path(self) -> str:
        """The path of the lock."""
    async def acquire(self, blocking: bool = True, timeout: float = ...) -> bool:
        """Acquires the lock, and says whether it did. As ``Lock.acquire``."""
    async def hold(self, timeout: float | None = ...) -> AsyncHold:
        """Acquires the lock and gives the hold as a value, which is to be released. As ``Lock.hold``."""
    def release(self) -> Awaitable[None]:
        """Releases what this task acquired last, or if the lock is not reentrant, what anybody did. As ``Lock.release``;
        it begins at once, and to await it is to wait until the ensemble has confirmed it.
        """
    def locked(self) -> bool:
        """Whether this client holds the lock. It asks nobody: for others see ``contenders``."""
    @property
    def current(self) -> AsyncHold | None:
        """What this task acquired last with ``acquire`` or ``async with`` and has not released yet, or ``None``."""
    async def contenders(self) -> list[Contender]:
        """Who is in the queue, the holder first, of whatever library: a list of ``Contender``."""
    async def __aenter__(self) -> AsyncHold: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@disjoint_base
class BaseHold:
    """What a `Hold` and an `AsyncHold` have in common."""
    @property
    def token(self) -> int:
        """The fencing token of this grant: of two grants of one path, the later has the greater one."""
    @property
    def path(self) -> str:
        """The path of the lock."""
    @property
    def node(self) -> str:
        """The path of the node that stands for this hold."""
    @property
    def state(self) -> HoldState:
        """How the hold stands: a ``HoldState``."""
    @property
    def lost(self) -> Loss:
        """The event that the hold is lost."""
    def valid_for(self) -> float:
        """For how many seconds the lock is certain to be held, even if the ensemble is not heard from again.

        Zero means that others may hold it. It costs no request. It is the state of now: a process that
        is paused between this call and what it guards may find it changed. Against that help the
        ``token``, and ``guarded`` writes.
        """
    def on_lost(self, callback: Callable[[LossReason], object]) -> None:
        """Calls ``callback(reason)`` when the hold is lost, unless it is released before.

        It is called on a thread for such calls, where others wait until it has come back. In asyncio, let it call
        ``loop.call_soon_threadsafe``.
        """

@final
class Hold(BaseHold):
    """The proof that a lock is held. A ``with`` block gives one, and so does ``Lock.hold``.

    >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
    >>> hold.token > 0, hold.state
    (True, <HoldState.HELD: 'held'>)
    >>> hold.release()
    >>> hold.state
    <HoldState.RELEASED: 'released'>

    It is a context manager, too. One that came from ``Lock.hold`` and is forgotten is released by the
    garbage collector, with a ``ResourceWarning``.
    """
    def confirm(self) -> float:
        """Asks the quorum whether the lock is still held: for how many seconds it is certain to be.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.confirm() > 0
        True

        Raises ``LockLost`` if it is not, ``Unreachable`` if the ensemble does not answer while the lease
        lasts, ``NotHeld`` after a release.
        """
    def guarded(self) -> Guarded:
        """Writes to ZooKeeper that are done only if the lock is still held when the quorum commits them.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.guarded().create("/doc-state", b"begun").set_data("/doc-state", b"done").commit()
        ...     hold.guarded().delete("/doc-state").commit()
        """
    def release(self) -> None:
        """Releases the lock, and waits until the ensemble has confirmed it.

        Raises ``LockLost`` if the hold was found to be lost, ``NotOwner`` if the lock is reentrant and
        belongs to another thread, ``NotHeld`` if it was released before, ``Timeout`` if the ensemble has
        not answered within a session timeout: then the release goes on in the background.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class AsyncHold(BaseHold):
    """The proof that a lock is held, in asyncio. ``async with`` gives one, and so does ``AsyncLock.hold``.

    >>> async def watch():
    ...     async with zk.mutex("/locks/doc") as hold:
    ...         lost = asyncio.ensure_future(hold.lost)
    ...         await asyncio.wait({lost}, timeout=0.01)
    ...         return lost.done(), lost.cancel(), await hold.confirm() > 0
    >>> asyncio.run(watch())
    (False, True, True)
    """
    async def confirm(self) -> float:
        """Asks the quorum whether the lock is still held. As ``Hold.confirm``."""
    def guarded(self) -> AsyncGuarded:
        """Writes to ZooKeeper that are done only if the lock is still held. As ``Hold.guarded``."""
    def release(self) -> Awaitable[None]:
        """Releases the lock. As ``Hold.release``; it begins at once, and to await it is to wait until the ensemble has
        confirmed it.
        """
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class Loss:
    """The event that a hold is lost: to be asked, waited for, or awaited.

    >>> with zk.mutex("/locks/doc") as hold:
    ...     hold.lost.is_set(), hold.lost.wait(timeout=0.01)
    (False, False)

    It does not keep the hold.
    """
    def is_set(self) -> bool:
        """Whether the hold is lost. One that was released is not."""
    @property
    def reason(self) -> LossReason | None:
        """Why the hold was lost; ``None`` if it is not."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the hold is lost: ``True`` then, ``False`` if the time is over or it was released."""
    def __await__(self) -> Generator[Any, Any, LossReason | None]: ...

@disjoint_base
class BaseGuarded:
    """What ``Guarded`` and ``AsyncGuarded`` have in common."""
    def create(self, path: str, data: bytes | bytearray = b"") -> Self:
        """Create a persistent node. Its parent must be there."""
    def set_data(self, path: str, data: bytes | bytearray, version: int | None = None) -> Self:
        """Set a node's data, if it has this version, or whatever version it has."""
    def delete(self, path: str, version: int | None = None) -> Self:
        """Delete a node, if it has this version, or whatever version it has."""

@final
class Guarded(BaseGuarded):
    """Writes to ZooKeeper that are done together, and only if the lock is held. See ``Hold.guarded``."""
    def commit(self) -> None:
        """Does the writes, all or none.

        Raises ``LockLost`` if the lock was not held any more and ``Conflict`` if a node was not as it had
        to be: nothing was written then; ``Uncertain`` if the reply was lost: all or nothing was written;
        ``InvalidInput`` for a bad path, or for more than 512 KiB in all; ``NotHeld`` after a release.
        """

@final
class AsyncGuarded(BaseGuarded):
    """As ``Guarded``, for asyncio. See ``AsyncHold.guarded``."""
    async def commit(self) -> None:
        """Does the writes, all or none. As ``Guarded.commit``; where it is cancelled, they may be done."""

@final
class Tls:
    """How to connect with TLS: PEM files of the authorities of the servers' certificates and, if the servers want
    one, of a client certificate and its key.

    ``zklock.Client("zk1:2281", tls=zklock.Tls("ca.pem", "client.pem", "client.key"))``

    The files are read at once, and what is wrong with one is said. The servers' certificates must be for the names
    that stand among the hosts. None of these checks can be switched off.
    """
    @overload
    def __new__(cls, authorities: str | os.PathLike[str], certificate: None = None, key: None = None) -> Self: ...
    @overload
    def __new__(
        cls,
        authorities: str | os.PathLike[str],
        certificate: str | os.PathLike[str],
        key: str | os.PathLike[str],
    ) -> Self: ...
