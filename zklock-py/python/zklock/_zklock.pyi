import os
from collections.abc import Awaitable, Callable, Generator, Iterable
from types import TracebackType
from typing import Any, Final, Generic, Literal, TypeVar, final, overload

from typing_extensions import Self, disjoint_base

from ._values import ConnectionState, Contender, HoldState, LossReason, NodeData, Session, Stats

# The docstrings are those of the native module: tests/python/face/stub.py writes and checks them.
#
# What is `async` here is to be awaited: it gives a coroutine, if not one of a Python function. What begins at once gives an
# `Awaitable`, which need not be.

__all__ = [
    "AsyncBarrier",
    "AsyncClient",
    "AsyncDoubleBarrier",
    "AsyncGuarded",
    "AsyncHold",
    "AsyncLock",
    "AsyncMember",
    "AsyncObserver",
    "Barrier",
    "BaseGuarded",
    "BaseHold",
    "Client",
    "Digest",
    "DoubleBarrier",
    "Guarded",
    "Hold",
    "Injected",
    "Kerberos",
    "Lock",
    "Loss",
    "Member",
    "Observer",
    "PassPhrase",
    "Sasl",
    "Server",
    "Tls",
    "Wanted",
    "__version__",
]

__version__: Final[str]

_AnyLock = TypeVar("_AnyLock", bound=_BaseLock)
_AnyBarrier = TypeVar("_AnyBarrier")
_AnyDoubleBarrier = TypeVar("_AnyDoubleBarrier")
_Foreign = Literal["refuse", "go-ahead"]
_Watching = Literal["nearest", "children"]
_Fault = Literal["lose-request", "cut-before-reply", "cut-after-reply", "drop-reply", "freeze", "expire", "bring-back"]
_Kind = Literal[
    "connect",
    "create",
    "delete",
    "exists",
    "get-data",
    "set-data",
    "get-children",
    "acl",
    "sync",
    "ping",
    "multi",
    "auth",
    "watches",
    "close",
    "event",
    "other",
]

@disjoint_base
class _BaseClient(Generic[_AnyLock, _AnyBarrier, _AnyDoubleBarrier]):
    """What a ``Client`` and an ``AsyncClient`` have in common: the kinds of lock. Those of a ``Client`` are a ``Lock``, those of
    an ``AsyncClient`` an ``AsyncLock``.

    To make one costs no request. ``timeout`` is how many seconds to wait for it by default: ``None`` is for ever, 0 tries
    once. ``reentrant`` lets the thread or task that holds it acquire it again, and nobody else release it. Do not use it if a
    thread may serve another user while the first one holds the lock, as the threads of a pool do between two calls: both
    would be inside together. For locks that have a queue, ``foreign`` says what to do about a contender of another library
    that cannot see ours: ``"refuse"`` raises ``ForeignContender``, ``"go-ahead"`` waits for it as for any other. ``watching``
    is ``"nearest"``, to be woken when it may be our turn, or ``"children"``, to be woken by every change of the queue, as
    simpler libraries are.

    A mutex, and both sides of a read/write lock, can be kept between two uses. ``linger`` is for how many seconds the lock's
    node stays after a release, as long as nobody else wants the lock: meanwhile nobody holds it, and this client takes it
    again without a request. When anybody else queues, by whatever library, the node is deleted: at once, or with the release if
    the lock is held. A try of another client that comes while the node lingers finds the lock busy, and makes it free. If the
    process is killed, others wait for its session timeout, as for any holder's. ``local_turns`` is how many holders of this
    client follow one another on one node while others wait, by default one; with more, or with ``linger``, threads and tasks
    pass the lock on without a request as long as nobody else waits. Grants on one node have the same token, so what the lock
    guards must accept one that is not smaller. In a set of locks both mean nothing.
    """
    def mutex(
        self,
        path: str,
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        dialect: Literal["curator", "kazoo", "writelock"] = "curator",
        foreign: _Foreign = "refuse",
        watching: _Watching = "nearest",
        linger: float | None = None,
        local_turns: int = 1,
    ) -> _AnyLock:
        """The mutex at ``path``: one holder at a time, in the order of arrival.

        >>> lock = zk.mutex("/locks/doc", timeout=5, reentrant=True)
        >>> with lock as outer, lock as inner:
        ...     outer.token == inner.token
        True

        One that is used often can be kept between two uses, as long as nobody else wants it:

        >>> often = zk.mutex("/locks/doc", linger=10)
        >>> with often as first:
        ...     pass
        >>> with often as second:
        ...     second.token == first.token
        True

        It stands in one queue with Curator's ``InterProcessMutex`` of that path. ``dialect`` is whose names its nodes
        have: ``"curator"``, ``"kazoo"`` for the queue of a ``kazoo.recipe.lock.Lock``, or ``"writelock"`` for that of
        ZooKeeper's own ``WriteLock``.
        """
    def read(
        self,
        path: str,
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        dialect: Literal["curator", "kazoo"] = "curator",
        foreign: _Foreign = "refuse",
        watching: _Watching = "nearest",
        linger: float | None = None,
        local_turns: int = 1,
    ) -> _AnyLock:
        """The read side of the read/write lock at ``path``: readers hold it together.

        >>> with zk.read("/locks/doc") as hold:
        ...     [contender.role for contender in zk.read("/locks/doc").contenders()]
        ['read']

        A thread that holds the read side and acquires the write side waits until the read side is released; if nobody else can do
        that, because it was made reentrant, it raises ``Deadlock`` instead. It stands in one queue with Curator's
        ``InterProcessReadWriteLock``, or with ``dialect="kazoo"`` with kazoo's ``ReadLock`` and ``WriteLock``. Tokens grow
        between a reader and a writer, both ways; among readers that hold together their order says nothing.
        """
    def write(
        self,
        path: str,
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        dialect: Literal["curator", "kazoo"] = "curator",
        foreign: _Foreign = "refuse",
        watching: _Watching = "nearest",
        linger: float | None = None,
        local_turns: int = 1,
    ) -> _AnyLock:
        """The write side of the read/write lock at ``path``: its holder is alone.

        >>> with zk.write("/locks/doc", reentrant=True):
        ...     reading = zk.read("/locks/doc").hold()
        >>> reading.valid_for() > 0
        True
        >>> reading.release()

        A thread that holds the write side by a lock with ``reentrant=True`` may take the read side as well, at once, and keep it when
        the write side is released, as here: no other writer comes between, and the reader's hold has the writer's token. The
        lock that it reads by may be reentrant or not. A write hold that is not reentrant may be in use by any thread or
        task: until it is released, its acquirer waits to read as all others do. A writer that waits is not starved by
        readers that come later.
        """
    def semaphore(
        self,
        path: str,
        limit: int,
        *,
        permits: int = 1,
        limit_at: str | None = None,
        timeout: float | None = None,
        foreign: _Foreign = "refuse",
        watching: _Watching = "nearest",
    ) -> _AnyLock:
        """The semaphore at ``path`` with ``limit`` permits, of which a hold has one, or ``permits``.

        >>> licence = zk.semaphore("/locks/doc-licences", 5)
        >>> with licence, licence, zk.semaphore("/locks/doc-licences", 5, permits=3):
        ...     licence.acquire(blocking=False)
        False

        A permit belongs to nobody: a thread or task may hold several, and any may ``release()``, which gives back what this
        one acquired last, or if it has nothing, what another did. All users must agree on the limit. With ``limit_at`` it is
        read from the node of that path, which ``set_limit`` writes, and all waiters notice when it changes.

        It is Curator's ``InterProcessSemaphoreV2`` of that path, and with a limit of 1 its ``InterProcessSemaphoreMutex``.
        """
    def election(
        self,
        path: str,
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        foreign: _Foreign = "refuse",
        watching: _Watching = "nearest",
    ) -> _AnyLock:
        """The lead of the election at ``path``: one leads, the others stand by.

        >>> with zk.election("/locks/doc") as lead:
        ...     lead.lost.is_set()
        False

        To campaign is to acquire, to resign is to release, and ``Lock.observe`` reports the leader. It stands in one queue
        with Curator's ``LeaderLatch``.
        """
    def exclusive(self, path: str, *, timeout: float | None = None, reentrant: bool = False) -> _AnyLock:
        """The exclusive lock at ``path``: one plain node, which is there or not. For jobs that are tried once.

        >>> job = zk.exclusive("/locks/doc", timeout=0)
        >>> with job as hold:
        ...     hold.node
        '/locks/doc/lock'

        There is no queue: when the node goes, all waiters are woken, and the first to create it again has the lock. To wait
        in order, use a mutex.
        """
    def all(self, locks: Iterable[_BaseLock], *, timeout: float | None = None, reentrant: bool = False) -> _AnyLock:
        """The set of these locks, which are acquired and released together: all or none.

        >>> both = zk.all([zk.mutex("/locks/doc"), zk.write("/locks/doc-too")], timeout=5)
        >>> with both as hold:
        ...     hold.path
        '/locks/doc, /locks/doc-too'

        One transaction queues everywhere, so no order of arrival can make two sets wait for each other. Mutexes, read and
        write sides, semaphores and elections of this client may be mixed, but none of one path. Their own options stay,
        but ``timeout`` and ``reentrant`` are those of the set.
        """
    def any(self, locks: Iterable[_BaseLock], *, timeout: float | None = None) -> _AnyLock:
        """Any one of these locks: the first that comes is held, and the rest are left.

        >>> jobs = [zk.mutex("/jobs/doc-1"), zk.mutex("/jobs/doc-2")]
        >>> with zk.any(jobs, timeout=5) as hold:
        ...     hold.path
        '/jobs/doc-1'

        For a worker that takes any free job out of many; ``hold.path`` says which lock it is. All queues are looked at
        first, in one round trip that changes nothing, and of the locks that are free the one that is named first is
        acquired. If none is, it queues for all. Locks of any kind that has a queue may be mixed, but none of one path. Each
        is acquired as it is alone, with its own options but for ``timeout``: one that the caller holds already is busy,
        unless it is reentrant.
        """
    def barrier(self, path: str) -> _AnyBarrier:
        """The barrier at ``path``: while it is set, callers of ``wait`` wait.

        >>> barrier = zk.barrier("/barriers/doc")
        >>> barrier.set(), barrier.wait(timeout=0.01), barrier.remove(), barrier.wait()
        (True, False, True, True)

        It belongs to nobody: it stays set when the process that set it is gone, and anybody may remove it. It is Curator's
        ``DistributedBarrier``.
        """
    def double_barrier(self, path: str, members: int, *, timeout: float | None = None) -> _AnyDoubleBarrier:
        """The double barrier at ``path``: nobody begins before ``members`` are there, and nobody goes before all are done.

        >>> with zk.double_barrier("/barriers/doc-too", 1, timeout=5) as member:
        ...     member.loss is None
        True

        The block begins when all have come, and at its end it waits until all have left. A block that raises leaves without
        waiting. ``timeout`` is how many seconds to wait for the others, at either end; ``None`` is for ever. It is Curator's
        ``DistributedDoubleBarrier``.
        """
    def stats(self) -> Stats:
        """What this client has done, and what it still owes: a ``Stats``. It costs no request.

        >>> stats = zk.stats()
        >>> stats.owed, stats.losses_by["lease_lapsed"]
        (0, 0)

        With ``acquires`` it counts how acquires ended, and has histograms of how long they waited. Of a client that has not
        connected all of it is zero.
        """
    def prometheus(self) -> str:
        """What ``stats`` tells as text for Prometheus: its format 0.0.4, to be served as ``text/plain; version=0.0.4``.

        >>> page = zk.prometheus()
        >>> 'zklock_acquires_total{outcome="timed_out"} 0' in page.splitlines()
        True

        The names of metrics and labels stay as they are from version to version; others may come. The text is that of one client:
        of two, every name would be there twice, which Prometheus refuses. It costs no request.
        """
    @property
    def connection_state(self) -> ConnectionState | None:
        """How the client is connected: a ``ConnectionState``, or ``None`` if it has not connected yet, or was used in a process
        from which this one was forked.

        >>> zk.connection_state
        <ConnectionState.CONNECTED: 'connected'>
        """
    def on_connection(self, callback: Callable[[ConnectionState], object]) -> None:
        """Calls ``callback(state)`` with the present ``ConnectionState``, and then whenever it changes: to pause work during an
        outage, or to forget what a session stood for.

        >>> import queue
        >>> states = queue.Queue()
        >>> zk.on_connection(states.put)
        >>> states.get(timeout=5)
        <ConnectionState.CONNECTED: 'connected'>

        If the client has not connected yet, the first call comes when it has, or when it is closed; ``CLOSED`` is the last. A
        client that is dropped without a close, or collected as garbage, reports nothing more. Changes that follow one another
        quickly may be reported as one: several lost sessions as one, but never none. What a lock guards is better watched by
        its hold, with ``Hold.lost``, ``Hold.on_lost`` and ``Hold.valid_for``.

        Raises ``TypeError`` if ``callback`` cannot be called, and ``ForkedError`` if the client belongs to the process from
        which this one was forked.

        Callbacks of one client are called one after the other, on a thread for such calls. What one raises is reported to
        ``sys.unraisablehook``, and it is called again all the same. Under gevent and eventlet a greenlet of the main thread
        calls them. In asyncio, let it call ``loop.call_soon_threadsafe``.
        """
    @property
    def session_id(self) -> int | None:
        """The number of the session, if there is one now."""
    @property
    def session_timeout(self) -> float | None:
        """The session timeout in seconds, as the servers granted it, if there is a session now."""

@final
class Client(_BaseClient[Lock, Barrier, DoubleBarrier]):
    """One logical connection to an ensemble, at ``hosts``: ``host:port,host:port``, and perhaps a ``/chroot``; or a list of
    such, ``["zk1:2181", "zk2:2181"]``, or of pairs, ``[("zk1", 2181), ("zk2", 2181)]``.

    >>> with zklock.Client(hosts, session_timeout=10) as zk:
    ...     with zk.mutex("/locks/doc", timeout=5):
    ...         pass

    It connects when it is first needed, or entered, or by ``connect()``; so a program may make one at the top of a
    module, and fork before it is used. It outlives sessions: when one expires it opens the next. Share one client
    among all threads and tasks of a process; each process needs one of its own. A wrong argument raises ``InvalidInput`` at
    once; if no server answers, connecting raises ``Unreachable``.

    Times are in seconds. ``session_timeout`` is how long a lock stays taken after its holder has crashed, and roughly how
    long the network may fail before a hold is lost; the servers may grant another. ``connect_timeout`` bounds the attempt to
    reach a server. ``try_timeout`` is how long the servers have to answer a call that does not wait for others:
    ``acquire(blocking=False)``, and any call with a timeout of zero. After that it raises ``Unreachable``. If such a call is
    the first that needs the client, it connects first, for up to ``connect_timeout``. ``chroot`` puts all paths below that
    node, which must exist, or is created with ``create_chroot``. ``identity`` is what others see as this contender's name, by
    default ``host/pid``. ``tls`` is a ``Tls``.
    ``auth`` is a ``Digest``, ``Sasl`` or ``Kerberos`` to log in as, or a list of such. ``server_version`` is the version of the
    servers, such as ``(3, 4)``; otherwise they are asked.

    With ``heartbeat=False`` the servers are not asked to confirm what is held, which they are every twelfth of the session
    timeout otherwise: a load where thousands of clients hold something all day, such as the leaders of as many elections.
    But then nothing proves that a hold is still there: ``valid_for`` is zero soon after the grant. The hold is at risk while
    the client is disconnected, and lost when the servers say that its session is over or its node deleted. By then another
    may have held the lock for a while.

    ``access`` says who may use what the client creates: everyone (``open``), only those who are logged in as its creator
    (``creator-all``), or these, while all others may read (``read-open``). All clients of a lock create, list, read and delete
    nodes there, so with the last two all must log in as the same user. Nodes that are there already stay as they are.
    It may also be a list as ``zkCli`` takes it, ``"sasl:billing:cdrwa,world:anyone:r"``, or its entries, one string each: these
    and nobody else.

    At the end of the program clients are closed, which frees their locks. A client whose locks a daemon thread may still be
    using is not closed: its locks are free when the session has timed out.
    """
    def __new__(
        cls,
        hosts: str | Iterable[str | tuple[str, int]],
        *,
        session_timeout: float = 10.0,
        connect_timeout: float = 10.0,
        try_timeout: float = 1.0,
        chroot: str | None = None,
        create_chroot: bool = False,
        identity: str | None = None,
        tls: Tls | None = None,
        auth: Digest | Sasl | Kerberos | Iterable[Digest | Sasl | Kerberos] | None = None,
        access: str | Iterable[str] = "open",
        server_version: tuple[int, int] | None = None,
        heartbeat: bool = True,
    ) -> Self: ...
    @property
    def aio(self) -> AsyncClient:
        """The same client for asyncio."""
    def connect(self, timeout: float | None = None) -> None:
        """Connects, unless that has been done.

        Raises ``Unreachable`` if no server answers within the connect timeout, or ``timeout`` seconds if those are
        less, or none of the hosts is known.
        """
    def close(self) -> None:
        """Closes the client, which frees every lock that it holds, and waits until the ensemble has confirmed it, or a
        second has passed. Holds are lost then, waits end with ``Closed``. Closing twice is not an error.
        """
    def set_limit(self, path: str, limit: int) -> None:
        """Writes how many permits there are to the node that semaphores name with ``limit_at``: all waiters notice.

        >>> zk.set_limit("/limits/doc", 7)

        The node is created if it is not there; it is Curator's ``SharedCount``. Permits that are already held stay held, even
        if there are fewer now.
        """
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
class AsyncClient(_BaseClient[AsyncLock, AsyncBarrier, AsyncDoubleBarrier]):
    """A ``Client`` for asyncio. ``async with`` gives one, and so does ``Client.aio``.

    >>> async def report():
    ...     async with zklock.Client(hosts) as zk:
    ...         async with zk.mutex("/locks/doc", timeout=5) as hold:
    ...             return hold.token > 0
    >>> asyncio.run(report())
    True
    """
    async def connect(self, timeout: float | None = None) -> None:
        """Connects, unless that has been done. See ``Client.connect``."""
    def close(self) -> Awaitable[None]:
        """Closes the client. See ``Client.close``; it begins at once, and to await it is to wait for the end."""
    async def set_limit(self, path: str, limit: int) -> None:
        """Writes how many permits there are, for semaphores with ``limit_at``. See ``Client.set_limit``."""
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@disjoint_base
class _BaseLock:
    """What a `Lock` and an `AsyncLock` have in common."""
    @property
    def path(self) -> str:
        """The path of the lock; of a set of locks the paths of all."""
    def locked(self) -> bool:
        """Whether this client holds the lock. It asks nobody: for others see ``contenders``."""

@final
class Lock(_BaseLock):
    """A lock of any kind, at a path. It can be shared by threads, and holds nothing itself: a ``with`` block does.

    >>> lock = zk.mutex("/locks/doc", timeout=5)
    >>> with lock as hold:
    ...     hold.token > 0
    True

    On Python 3.14 an exception raised by a signal handler may come just before the block is entered, as with any lock, and
    then the block is not left either. If your handlers raise, write ``with lock.hold() as hold``, which is safe.

    The block raises ``Timeout`` if the lock was not free in time, ``Unreachable`` if no server could be reached, and at its
    end ``LockLost`` if the hold was lost meanwhile. If the block itself raises, that exception gets a note of the loss. It
    releases what it got, even if several blocks of one lock in one thread end in another order than they began, as those of
    generators may.

    ``acquire``, ``release`` and ``locked`` are those of ``threading.Lock``; or of ``threading.RLock``, if the
    lock is reentrant. So any thread may release it, and a thread that acquires it again waits until one does; a warning
    in the log says so. If it is reentrant, it belongs to the thread that acquired it. What ``acquire`` got is held until it
    is released or the client is closed, even if the lock object is gone.
    """
    @property
    def aio(self) -> AsyncLock:
        """The same lock for asyncio."""
    def acquire(self, blocking: bool = True, timeout: float | None = ...) -> bool:
        """Acquires the lock, and says whether it did, as ``threading.Lock.acquire`` does.

        >>> lock = zk.mutex("/locks/doc")
        >>> lock.acquire(timeout=5)
        True
        >>> lock.acquire(blocking=False)
        False
        >>> lock.release()

        Without a timeout it waits as long as the lock was made to, and raises ``Timeout`` then; -1 or ``None`` is for ever.
        With ``blocking=False`` it waits only for the ensemble's answer, for the client's ``try_timeout`` at most. ``False``
        means that others have the lock, or that the time was too short for an answer; the reason is logged.

        With ``blocking=False`` it may be called again and again: from the second time on that this lock object was busy, further
        calls cost no request until the servers tell that the one in the way has gone (semaphores, sets, choices and exclusive
        locks ask each time). So right after another client's release it may still be ``False``, for the moment that this takes, a
        tenth of the session timeout at most. With a short timeout the servers are asked in any case.

        Grants follow the order in which clients queue, and within a client that of its callers: however many wait, clients
        take turns. A caller that gives up leaves its place to the next of its client.

        Raises ``Deadlock`` if this thread holds the lock by another object that is reentrant, so that no other thread can
        release it; ``Unreachable`` if there is no connection when the time is over, or no server has answered for the
        ``try_timeout``, so that nobody knows who has the lock; ``ForeignContender`` if a contender of another library cannot
        see ours; ``LockLost`` if the outer hold of a reentrant lock is lost; ``Refused`` if the access list does not allow it;
        ``Closed`` if the client is closed.
        """
    def hold(self, timeout: float | None = ...) -> Hold:
        """Acquires the lock and gives the hold as a value, which is to be released.

        >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
        >>> hold.release()

        It waits for ``timeout`` seconds at most, for ever if that is ``None``, by default as long as the lock was
        made to; zero tries once. Raises ``Timeout`` then, or ``Unreachable`` as ``acquire`` does.
        """
    def release(self) -> None:
        """Releases what this thread acquired last with ``acquire`` or a ``with`` block, or if the lock is not
        reentrant, what any thread did.

        Raises ``NotHeld``, which is a ``RuntimeError``, if there is nothing to release; see also ``Hold.release``.
        """
    @property
    def current(self) -> Hold | None:
        """What this thread acquired last with ``acquire`` or a ``with`` block and has not released yet, or
        ``None``.
        """
    def contenders(self) -> list[Contender]:
        """The queue, holders first, of every library: a list of ``Contender``.

        >>> lock = zk.mutex("/locks/doc")
        >>> with lock as hold:
        ...     [contender.token == hold.token for contender in lock.contenders()]
        [True]

        Of a set of locks, those of one lock after the other. A set that is the first in a queue but waits for another of
        its locks is listed first there, and does not hold.
        """
    def evict(self, node: str) -> bool:
        """Takes any contender out of the queue by deleting its node; ``False`` if the node was already gone.

        >>> lock = zk.mutex("/locks/doc")
        >>> hold = lock.hold()
        >>> [lock.evict(contender.node) for contender in lock.contenders() if contender.identity == "db7/4711"]
        []
        >>> hold.release()

        A holder learns that its hold is lost, if its library reports that; a waiter queues again. This breaks what the lock
        guards, unless the contender is known to be at a standstill: until it learns of the loss it believes that it holds,
        and another already does. Raises ``InvalidInput`` if the node is not a contender of this lock.

        All nodes of an exclusive lock have one path. There it evicts the holder of that moment, which may not be the one that
        was listed. ``break_lock`` spares such a holder.
        """
    def break_lock(self) -> list[Contender]:
        """Takes the lock away from all its holders, and gives a list of them, each a ``Contender``.

        >>> zk.mutex("/locks/doc").break_lock()
        []

        See ``evict`` for what that breaks. Waiters stay, even a set of locks that is first in the queue and waits for another
        of its locks. The next holder of an exclusive lock is spared, unless the servers are of version 3.4 or another
        library holds it, and the next comes between the look at its node and its deletion.
        """
    def revoke(self) -> list[Contender]:
        """Asks all holders to let the lock go, and gives a list of them, each a ``Contender``.

        >>> hold = zk.mutex("/locks/doc").hold()
        >>> [holder.node == hold.node for holder in zk.mutex("/locks/doc").revoke()], hold.wanted.wait(timeout=5)
        ([True], True)
        >>> hold.release()

        It takes nothing away: a holder is told by ``Hold.wanted`` if it wants to know, and holds until it releases the lock.
        Each is asked as Curator's ``Revoker`` does it: the data of its node becomes ``__REVOKE__``, which is its identity from
        then on. So it reaches the holders of Curator's ``InterProcessMutex`` that are ``makeRevocable``, and those of zklock;
        other libraries do not look. Raises ``Refused`` if the access list does not allow to write to a holder's node; all others
        have been asked then.
        """
    def observe(self) -> Observer:
        """Observes the holder of the lock without taking part; of an election, the leader.

        >>> lead = zk.election("/locks/doc")
        >>> with lead as hold:
        ...     for leader in lead.observe():
        ...         if leader is not None:
        ...             break
        ...     leader.token == hold.token
        True

        It is an iterator, an ``Observer``, which waits for each change and never ends. Many may observe one lock without
        waking each other. If several hold at once, it reports the first. It takes the first in the queue for the holder, even
        a set of locks that still waits for another of its locks. Raises ``InvalidInput`` for a semaphore or a set of locks.
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
class AsyncLock(_BaseLock):
    """A ``Lock`` for asyncio. ``AsyncClient.mutex`` gives one, and so does ``Lock.aio``.

    >>> async def once():
    ...     lock = zk.aio.mutex("/locks/doc", timeout=5)
    ...     if await lock.acquire(blocking=False):
    ...         await lock.release()
    ...     return lock.locked()
    >>> asyncio.run(once())
    False

    The lock belongs to the task that calls ``acquire``, ``hold`` or ``async with``, be it that another awaits it, as
    ``asyncio.wait_for`` and ``create_task`` do. Where that task holds it already, it waits until somebody releases it, or if
    the lock is reentrant, it is counted. Keep a reference to a task that waits: the loop has only a weak one. A wait that is
    cancelled leaves the queue; if the lock was granted meanwhile, it is released.
    """
    async def acquire(self, blocking: bool = True, timeout: float | None = ...) -> bool:
        """Acquires the lock, and says whether it did. See ``Lock.acquire``."""
    async def hold(self, timeout: float | None = ...) -> AsyncHold:
        """Acquires the lock and gives the hold as a value, which is to be released. See ``Lock.hold``."""
    def release(self) -> Awaitable[None]:
        """Releases what this task acquired last, or if the lock is not reentrant, what anybody did. See ``Lock.release``;
        it begins at once, and to await it is to wait until the ensemble has confirmed it.
        """
    @property
    def current(self) -> AsyncHold | None:
        """What this task acquired last with ``acquire`` or ``async with`` and has not released yet, or ``None``."""
    async def contenders(self) -> list[Contender]:
        """The queue, holders first, of every library: a list of ``Contender``. See ``Lock.contenders``."""
    async def evict(self, node: str) -> bool:
        """Takes a contender out of the queue by deleting its node. See ``Lock.evict`` for what that breaks."""
    async def break_lock(self) -> list[Contender]:
        """Takes the lock away from all its holders, and gives a list of them. See ``Lock.break_lock`` for what that breaks."""
    async def revoke(self) -> list[Contender]:
        """Asks all holders to let the lock go, and gives a list of them. See ``Lock.revoke``."""
    def observe(self) -> AsyncObserver:
        """Observes the holder of the lock without taking part; of an election, the leader. See ``Lock.observe``; use it with
        ``async for``.
        """
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
        """The fencing token of this grant. Of two grants of one path that exclude each other, the later has the greater
        token.

        A lock that was made with ``linger`` or ``local_turns`` may be passed on within its client: then the later grant has the
        same token. So what such a lock guards must accept a token that is not smaller.

        Grants that do not exclude each other may get their tokens in any order: two readers with no writer between them,
        or two permits of a semaphore. So compare a reader's token only with those of writers.
        """
    @property
    def path(self) -> str:
        """The path of the lock."""
    @property
    def node(self) -> str:
        """The path of the node that stands for this hold."""
    @property
    def state(self) -> HoldState:
        """The state of the hold: a ``HoldState``."""
    @property
    def lost(self) -> Loss:
        """The event that the hold is lost: a ``Loss``, which can be asked, waited for or awaited."""
    def valid_for(self) -> float:
        """For how many more seconds the lock is certain to be held, even if the ensemble is never heard from again.

        Zero means that others may hold it. That is the answer after a loss, after a release, and in a forked process. The
        call sends no request, and raises nothing. It describes this moment: a process that is paused before it does what
        the lock guards may have lost the lock by then. The ``token`` and ``guarded`` writes protect against that.
        """
    def on_lost(self, callback: Callable[[LossReason], object]) -> None:
        """Calls ``callback(reason)`` once, with a ``LossReason``, when the hold is lost. If it is lost already, the call
        comes at once; if it is released first, never.

        Callbacks of one hold are called one after the other, on a thread for callbacks. Those of different holds do not
        wait for each other, unless 32 are running. What a callback raises is reported to ``sys.unraisablehook``. Under
        gevent and eventlet a greenlet of the main thread calls them. In asyncio, let the callback use
        ``loop.call_soon_threadsafe``. A callback is not called while the garbage collector takes it apart together with
        its hold.

        Raises ``TypeError`` if ``callback`` cannot be called, and ``ForkedError`` if this process was forked from the one
        that holds the lock.
        """
    @property
    def wanted(self) -> Wanted:
        """The event that others wait for what this hold has: a ``Wanted``, which can be asked, waited for or awaited. To finish
        early, or to let the lock go between two pieces of work.

        Somebody who has asked for it by ``Lock.revoke``, or by Curator's ``Revoker``, counts as one who waits.

        The first look at it begins to look out for others: that lists the queue and reads the hold's own nodes once, and leaves
        watches that the next who queues or asks sets off. A hold that never asks costs nothing.
        """
    def on_wanted(self, callback: Callable[[], object]) -> None:
        """Calls ``callback()`` once, when others wait for what this hold has. If they do already, the call comes at once; if the
        hold is released or lost first, never.

        See ``wanted`` for what that costs, and ``on_lost`` for how callbacks are called.

        Raises ``TypeError`` if ``callback`` cannot be called, and ``ForkedError`` if this process was forked from the one
        that holds the lock.
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

    A hold is a context manager, too: the end of the block releases it, and raises ``LockLost`` if it was lost meanwhile.
    A hold from ``Lock.hold`` that is dropped without a release is released in the background, with a ``ResourceWarning``.

    Every call that reaches the servers raises ``ForkedError`` if this process was forked from the one that holds the
    lock.
    """
    def confirm(self) -> float:
        """Asks the quorum whether the lock is still held. Returns for how many seconds it is now certain to be.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.confirm() > 0
        True

        Raises ``LockLost`` if the lock is not held any more, ``NotHeld`` if the hold was released, and ``Unreachable`` if
        the ensemble does not answer while the lease lasts, or within a second if less than that is left.
        """
    def read(self, path: str) -> NodeData | None:
        """Reads a node: a ``NodeData`` with its ``data`` and ``version``, or ``None`` if the node does not exist.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.read("/doc-state") is None
        True

        The answer includes everything that the ensemble had committed when this was called. By then the outcome of this
        hold's guarded writes is settled: so after ``Uncertain``, read and then decide. It works while the client is open,
        even after the hold was lost or released.

        Raises ``Unreachable`` if the ensemble does not answer within a session timeout, or two seconds; ``Refused`` if
        the access list does not allow it; ``InvalidInput`` if the path is invalid; ``Closed`` if the client is closed.
        """
    def guarded(self) -> Guarded:
        """Begins a list of writes to ZooKeeper that are done only if the lock is still held when the quorum commits them.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.guarded().create("/doc-state", b"begun").set_data("/doc-state", b"done").commit()
        ...     hold.read("/doc-state")
        ...     hold.guarded().delete("/doc-state").commit()
        (0, 1)
        NodeData(data=b'done', version=1)
        (None,)

        Nothing is sent, and so nothing is raised, before ``Guarded.commit``. A list that is dropped without a commit
        causes a ``RuntimeWarning``.
        """
    def release(self) -> None:
        """Releases the lock, and waits until the ensemble has confirmed it.

        Raises ``LockLost`` if the hold was lost before; ``NotOwner`` if the lock is reentrant and belongs to another
        thread, and then nothing changes; ``NotHeld`` if this hold was released before; ``Refused`` if the access list
        does not allow its node to be deleted, which has gone with its session then, and so have the client's other holds;
        ``Timeout`` if the ensemble does not answer within a session timeout; ``Unreachable`` if no connection can be had for
        its session any more, such as after a change of passwords. After a ``Timeout`` the release goes on in the background;
        after an ``Unreachable`` the lock is free when the ensemble ends the session, a session timeout after it last heard of it.
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
        """Asks the quorum whether the lock is still held. See ``Hold.confirm``."""
    async def read(self, path: str) -> NodeData | None:
        """Reads a node. See ``Hold.read``."""
    def guarded(self) -> AsyncGuarded:
        """Begins a list of writes to ZooKeeper that are done only if the lock is still held. See ``Hold.guarded``."""
    def release(self) -> Awaitable[None]:
        """Releases the lock. See ``Hold.release`` for what it raises. The release begins at once; await it to wait until the
        ensemble has confirmed it.
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
    """The event that a hold is lost. It can be asked, waited for, or awaited.

    >>> with zk.mutex("/locks/doc") as hold:
    ...     hold.lost.is_set(), bool(hold.lost), hold.lost.wait(timeout=0.01)
    (False, False, False)

    It is true once the hold is lost, so ``while not hold.lost:`` goes on until then. In asyncio, ``await hold.lost``
    gives the reason, or ``None`` if the hold is released first. A ``Loss`` does not keep the hold.
    """
    def is_set(self) -> bool:
        """Whether the hold is lost. A hold that was released in time is not."""
    def __bool__(self) -> bool: ...
    @property
    def reason(self) -> LossReason | None:
        """Why the hold was lost: a ``LossReason``, or ``None`` if it was not."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the hold is lost. Returns ``True`` then, and ``False`` if the hold is released first or is not lost
        within ``timeout`` seconds.

        A negative ``timeout`` counts as zero, and ``None`` waits for ever. Raises ``ForkedError`` if this process was
        forked from the one that holds the lock.
        """
    def __await__(self) -> Generator[Any, Any, LossReason | None]: ...

@final
class Wanted:
    """The event that others wait for what a hold has. It can be asked, waited for, or awaited.

    >>> with zk.mutex("/locks/doc") as hold:
    ...     hold.wanted.is_set(), bool(hold.wanted), hold.wanted.wait(timeout=0.01)
    (False, False, False)

    It is true once somebody of whatever process and library is known to wait, so ``while not hold.wanted:`` works on until
    then. It is what was seen last, so it may stay true though the other gave up, and is false once the hold is released or
    lost. In asyncio, ``await hold.wanted`` gives ``True``, or ``False`` if the hold ends first. A ``Wanted`` does not keep the
    hold.

    Readers do not wait for readers, so they do not count beside one. Nobody queues for an exclusive lock, so there only
    those of this client are seen, and those who have asked by ``Lock.revoke``.
    """
    def is_set(self) -> bool:
        """Whether others are known to wait. It asks nobody: right after the first look at ``Hold.wanted`` the answer of the
        servers is still to come.
        """
    def __bool__(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until others wait for what the hold has. Returns ``True`` then, and ``False`` if the hold ends first or nobody
        waits within ``timeout`` seconds.

        A negative ``timeout`` counts as zero, and ``None`` waits for ever. Raises ``ForkedError`` if this process was
        forked from the one that holds the lock.
        """
    def __await__(self) -> Generator[Any, Any, bool]: ...

@final
class Observer:
    """Who holds a lock, as that changes: an iterator of ``Contender``, or ``None`` while nobody does. See ``Lock.observe``.

    Changes that follow one another quickly may be reported as one. While no server answers, it waits.
    """
    def next(self, timeout: float | None = None) -> Contender | None:
        """Who holds the lock now, and when called again, as soon as that changes.

        >>> observer = zk.election("/locks/doc").observe()
        >>> print(observer.next(timeout=5))
        None

        Raises ``Timeout`` if nothing has changed in that time.
        """
    def __iter__(self) -> Self: ...
    def __next__(self) -> Contender | None: ...

@final
class AsyncObserver:
    """An ``Observer`` for asyncio, to be used with ``async for``. See ``AsyncLock.observe``.

    >>> async def first():
    ...     async for leader in zk.aio.election("/locks/doc").observe():
    ...         return leader
    >>> print(asyncio.run(first()))
    None
    """
    async def next(self) -> Contender | None:
        """Who holds the lock now, and when awaited again, as soon as that changes. See ``Observer.next``; for a bound of time
        there is ``asyncio.wait_for``. Where it is cancelled, the next one tells what this one would have.
        """
    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Contender | None: ...

@final
class Barrier:
    """A barrier: a node, and callers of ``wait`` wait until it is gone. See ``Client.barrier``."""
    @property
    def path(self) -> str:
        """The path of its node."""
    @property
    def aio(self) -> AsyncBarrier:
        """The same barrier for asyncio."""
    def set(self) -> bool:
        """Sets the barrier, so that callers of ``wait`` wait. ``False`` if it was already set."""
    def remove(self) -> bool:
        """Removes the barrier, so that all waiters go on. ``False`` if it was not set."""
    def is_set(self) -> bool:
        """Whether it is set. Others may set or remove it at the same moment."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is not set: ``True`` then, at once if it is not set now, or ``False`` if the time is over.
        Raises ``Unreachable`` if there is no connection then.
        """

@final
class AsyncBarrier:
    """A ``Barrier`` for asyncio. ``AsyncClient.barrier`` gives one, and so does ``Barrier.aio``.

    >>> async def come():
    ...     return await zk.aio.barrier("/barriers/doc").wait(timeout=5)
    >>> asyncio.run(come())
    True
    """
    @property
    def path(self) -> str:
        """The path of its node."""
    async def set(self) -> bool:
        """Sets the barrier, so that callers of ``wait`` wait. See ``Barrier.set``."""
    async def remove(self) -> bool:
        """Removes the barrier, so that all waiters go on. See ``Barrier.remove``."""
    async def is_set(self) -> bool:
        """Whether it is set. See ``Barrier.is_set``."""
    async def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is not set: ``True`` then, or ``False`` if the time is over. See ``Barrier.wait``."""

@final
class DoubleBarrier:
    """A double barrier: entering waits until all members have entered, and leaving until all have left. See
    ``Client.double_barrier``.
    """
    @property
    def path(self) -> str:
        """The path of the node below which the members are."""
    @property
    def members(self) -> int:
        """How many members it has."""
    @property
    def aio(self) -> AsyncDoubleBarrier:
        """The same double barrier for asyncio."""
    def enter(self, timeout: float | None = ...) -> Member:
        """Enters, and waits until all members have.

        >>> member = zk.double_barrier("/barriers/doc", 1).enter(timeout=5)
        >>> member.leave()

        It waits for ``timeout`` seconds at most, for ever if that is ``None``, by default as long as the barrier was made to.
        Raises ``Timeout`` then: it is not a member any more.
        """
    def __enter__(self) -> Member: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
    async def __aenter__(self) -> AsyncMember: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class Member:
    """A member of a double barrier, between entering and leaving. ``DoubleBarrier.enter`` gives one, and so does a ``with`` block.

    It is a context manager, too, which leaves. One that is forgotten leaves in the background.
    """
    @property
    def path(self) -> str:
        """The path of the barrier."""
    @property
    def node(self) -> str:
        """The path of the node that stands for this member."""
    @property
    def loss(self) -> LossReason | None:
        """Why the member is lost: a ``LossReason``, or ``None`` if it is not. A member is lost when its session ends,
        because its node goes with the session. The others then take it to have left.
        """
    def leave(self, timeout: float | None = ...) -> None:
        """Leaves, and waits until all members that are within now have left.

        It waits for ``timeout`` seconds at most, for ever if that is ``None``, by default as long as the barrier was made to,
        and raises ``Timeout`` then; zero waits for nobody. Raises ``LockLost`` if its session ended before it left: the
        others may have gone on without it; ``NotHeld`` if it has left before. In any case it has left, or is leaving in
        the background.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class AsyncDoubleBarrier:
    """A ``DoubleBarrier`` for asyncio. ``AsyncClient.double_barrier`` gives one, and so does ``DoubleBarrier.aio``.

    >>> async def take_part():
    ...     async with zk.aio.double_barrier("/barriers/doc-too", 1, timeout=5) as member:
    ...         return member.loss
    >>> print(asyncio.run(take_part()))
    None
    """
    @property
    def path(self) -> str:
        """The path of the node below which the members are."""
    @property
    def members(self) -> int:
        """How many members open it."""
    async def enter(self, timeout: float | None = ...) -> AsyncMember:
        """Enters, and waits until all members have. See ``DoubleBarrier.enter``; one that is cancelled is no member."""
    async def __aenter__(self) -> AsyncMember: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class AsyncMember:
    """A ``Member`` for asyncio. ``AsyncDoubleBarrier.enter`` gives one, and so does ``async with``."""
    @property
    def path(self) -> str:
        """The path of the barrier."""
    @property
    def node(self) -> str:
        """The path of the node that stands for this member."""
    @property
    def loss(self) -> LossReason | None:
        """Why the member is lost, or ``None``. See ``Member.loss``."""
    def leave(self, timeout: float | None = ...) -> Awaitable[None]:
        """Leaves. See ``Member.leave``; it begins at once, and to await it is to wait until all have left."""
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@disjoint_base
class BaseGuarded:
    """What a ``Guarded`` and an ``AsyncGuarded`` have in common: the list of writes."""
    def create(self, path: str, data: bytes | bytearray = b"") -> Self:
        """Adds a write that creates a persistent node. Its parent must exist.

        Raises ``TypeError`` if ``data`` is not bytes.
        """
    def set_data(self, path: str, data: bytes | bytearray, version: int | None = None) -> Self:
        """Adds a write that sets the data of a node, if the node has this version. ``None`` stands for any version.

        Raises ``TypeError`` if ``data`` is not bytes, and ``InvalidInput`` if ``version`` is negative.
        """
    def delete(self, path: str, version: int | None = None) -> Self:
        """Adds a write that deletes a node, if the node has this version. ``None`` stands for any version.

        Raises ``InvalidInput`` if ``version`` is negative.
        """

@final
class Guarded(BaseGuarded):
    """A list of writes to ZooKeeper that are done together, and only if the lock is held. See ``Hold.guarded``."""
    def commit(self) -> tuple[int | None, ...]:
        """Does all of the writes or none. Returns the version of each node after its write: 0 if it was created, ``None`` if
        it was deleted.

        Raises ``LockLost`` if the lock was not held any more, and ``Conflict`` if a node did not allow its write: it had
        another version, existed already, or did not exist. The ``index`` and ``path`` of the ``Conflict`` say which. In
        both cases nothing was written. Raises ``Uncertain`` if the reply was lost: all of the writes were done or none,
        and ``Hold.read`` tells which. Raises ``NotHeld`` if the hold was released, and ``InvalidInput`` for an invalid
        path, for more than 512 KiB in all, or on servers of version 3.4 for a hold of an exclusive lock.
        """

@final
class AsyncGuarded(BaseGuarded):
    """A ``Guarded`` for asyncio. See ``AsyncHold.guarded``."""
    async def commit(self) -> tuple[int | None, ...]:
        """Does all of the writes or none. See ``Guarded.commit``. If it is cancelled, the writes may have been done."""

@final
class Digest:
    """Who a client logs in as, with ZooKeeper's scheme ``digest``: a user and a password.

    ``zklock.Client(hosts, auth=zklock.Digest("billing", password), access="creator-all")``

    The servers keep no list of users: with a wrong password the client is somebody else, whom access lists do not know.
    The password crosses the network as it is: use TLS where others could listen. It is in no log, ``repr`` or exception.
    """
    def __new__(cls, user: str, password: str) -> Self: ...
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Digest:
        """The users and passwords in a file: ``user:password``, one a line. The client logs in as all of them.

        The file is read now, and anew for each connection, so that passwords can be changed while the client runs. As long
        as it cannot be read then, no connection is made.
        """
    @staticmethod
    def from_env(variable: str) -> Digest:
        """The user and the password in an environment variable, ``user:password``. It is read now."""

@final
class PassPhrase:
    """The pass phrase of an encrypted key.

    ``zklock.Tls("ca.pem", "client.pem", "client.key", pass_phrase=zklock.PassPhrase.from_file("/run/secrets/key"))``

    Keys are read in the form that ``openssl genpkey -aes256`` writes. The pass phrase is in no log, ``repr`` or exception.
    """
    def __new__(cls, text: str) -> Self: ...
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> PassPhrase:
        """The first line of a file. It is read now, and anew for each connection."""
    @staticmethod
    def from_env(variable: str) -> PassPhrase:
        """The text of an environment variable. It is read now."""

@final
class Kerberos:
    """Who a client logs in as by Kerberos: with the ticket that it has for this process.

    ``zklock.Client("zk1.example.com:2181", auth=zklock.Kerberos(), access="creator-all")``

    To access lists it is the client's principal, such as ``sasl:billing@EXAMPLE.COM``. The ticket is the one of the credential
    cache (``KRB5CCNAME``), or comes from a keytab (``KRB5_CLIENT_KTNAME``), with which it is renewed. It is looked up anew for
    each connection. Without one, connecting raises ``Refused``, or ``Unreachable`` if no KDC answers,
    and Kerberos' own words say why.

    ``service`` is the first part of the servers' principal. ``host`` is the second part; ``None`` stands for the host that is
    connected to. A client can log in by SASL or Kerberos as one user, and by ``Digest`` as others beside it.

    Where this module was built without Kerberos, this raises ``Refused``.
    """
    def __new__(cls, service: str = "zookeeper", host: str | None = None) -> Self: ...

@final
class Sasl:
    """Who a client logs in as by SASL, with its mechanism DIGEST-MD5: a user and a password.

    ``zklock.Client(hosts, auth=zklock.Sasl("billing", password), access="creator-all")``

    To access lists it is ``sasl:billing``. The servers have a list of users, in the section ``Server`` of their JAAS file: with a
    wrong password, with a user whom they do not know, and where they are not set up for SASL, connecting raises ``Refused``. A
    password that is changed on the servers matters to the next connection: as long as they refuse it there is none, and the
    session and its holds are lost. A client can log in by SASL as one user, and by ``Digest`` as others beside it.

    The password is in no log, ``repr`` or exception, and does not cross the network; but a listener can try out passwords
    on what does: use TLS.
    """
    def __new__(cls, user: str, password: str) -> Self: ...
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Sasl:
        """The user and the password in a file, one line ``user:password``.

        The file is read now, and anew for each connection, so that the password can be changed while the client runs. As long
        as it cannot be read then, no connection is made.
        """
    @staticmethod
    def from_env(variable: str) -> Sasl:
        """The user and the password in an environment variable, ``user:password``. It is read now."""

@final
class Tls:
    """How to connect with TLS: PEM files of the authorities of the servers' certificates and, if the servers want
    one, of a client certificate and its key.

    ``zklock.Client("zk1:2281", tls=zklock.Tls("ca.pem", "client.pem", "client.key"))``

    The files are read at once, and an error says what is wrong with which. They are read anew for each connection, so that
    renewed certificates are used without a restart. As long as one cannot be used then, no connection is made: what was read
    before is not used again. The connection that there is stays.

    ``pass_phrase`` is that of an encrypted key, a text or a ``PassPhrase``. The servers' certificates must be for the names
    given as hosts. None of these checks can be switched off.
    """
    @overload
    def __new__(
        cls,
        authorities: str | os.PathLike[str],
        certificate: None = None,
        key: None = None,
        *,
        pass_phrase: str | PassPhrase | None = None,
    ) -> Self: ...
    @overload
    def __new__(
        cls,
        authorities: str | os.PathLike[str],
        certificate: str | os.PathLike[str],
        key: str | os.PathLike[str],
        *,
        pass_phrase: str | PassPhrase | None = None,
    ) -> Self: ...
    @staticmethod
    def system(
        certificate: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
        *,
        pass_phrase: str | PassPhrase | None = None,
    ) -> Tls:
        """Trusts the authorities that this system trusts: those in the file that ``SSL_CERT_FILE`` names in the environment,
        otherwise those in the file of the system's distribution.

        Where the servers' certificates come from an authority of your own, give that alone.
        """

@final
class Server:
    """A ZooKeeper server in this process, for tests. It keeps everything in memory, and forgets it when it is closed.

    >>> with zklock.testing.Server() as server, zklock.Client(server.hosts) as zk:
    ...     with zk.mutex("/locks/doc"):
    ...         len(server.children("/locks/doc"))
    1

    It serves as soon as it is made, on a port of its own on 127.0.0.1. Any ZooKeeper client in any process can use it. It
    is a single server, and does not replace an ensemble. It offers no encryption, and every client that can reach it may
    do everything. ``listen`` is the address at which it listens, ``host:port``; port 0 takes any free port.

    Times are in seconds. ``tick`` is ZooKeeper's unit of time: a session lasts 2 to 20 ticks, and ends at a full one.
    ``session_timeouts`` replaces these bounds by the shortest and the longest session that is granted. With
    ``manual_clock`` time stands still until ``advance`` moves it: no session ends by itself, however long you look at it
    in a debugger.

    ``words`` lists the four-letter words that are answered, such as ``"srvr, ruok"``. See ``4lw.commands.whitelist`` of
    ZooKeeper. By default it answers all that it knows. (A real server answers only ``srvr`` by default.)

    ``like`` says which server it copies: ``"3.8"``; ``"3.4"``, ZooKeeper 3.4.14, which has no container nodes; or
    ``"keeper-25"``, ClickHouse Keeper 25, which hangs up on what it does not know and takes no session back.

    Raises ``InvalidInput`` if an argument is wrong, and ``Refused`` if the system does not let it listen there.

    Threads may share a server. A process that is forked from this one can use only its ``hosts``: everything else raises
    ``ForkedError`` there. After ``close`` everything else raises ``Closed``.
    """
    def __new__(
        cls,
        *,
        listen: str = "127.0.0.1:0",
        tick: float = 2.0,
        session_timeouts: tuple[float, float] | None = None,
        manual_clock: bool = False,
        words: str = "*",
        like: Literal["3.8", "3.4", "keeper-25"] = "3.8",
    ) -> Self: ...
    @property
    def hosts(self) -> str:
        """The address for clients: ``127.0.0.1:PORT``. It can be read even after the server is closed."""
    def sessions(self) -> list[Session]:
        """The open sessions, oldest first: a list of ``Session``."""
    def expire(self, session: int | Session) -> bool:
        """Ends a session at once, and deletes its ephemeral nodes, as if it had timed out. ``session`` is a ``Session``, or
        the ``session_id`` of a client. Returns ``False`` if there is no such session.

        >>> hold = zk.mutex("/locks/doc").hold()
        >>> server.expire(zk.session_id), hold.lost.wait(timeout=5)
        (True, True)
        """
    def advance(self, seconds: float, /) -> None:
        """Puts the server's clock forward. Sessions that are frozen or not connected end when their time is over, and
        delayed replies are sent. Sessions that are connected stay, because they would have been heard from meanwhile.

        The clocks of clients do not move. So a holder that is frozen still believes in its lease when the next one has
        the lock already: use that to test what fencing tokens are for. Raises ``InvalidInput`` if ``seconds`` is
        negative.
        """
    @overload
    def inject(
        self,
        fault: Literal["delay-reply"],
        kind: _Kind,
        *,
        nth: int = 1,
        times: int = 1,
        below: str | None = None,
        session: int | Session | None = None,
        delay: float,
    ) -> Injected:
        """Sets a fault for a message to come. Returns an ``Injected``, which tells when the fault has struck.

        >>> injected = server.inject("cut-before-reply", "create", below="/locks/doc")
        >>> with zk.mutex("/locks/doc", timeout=5):
        ...     injected.strikes
        1

        ``fault`` says what happens:

        * ``"lose-request"``: the request never arrives, and the connection is cut;
        * ``"cut-before-reply"``: the request is carried out, but the connection is cut instead of a reply;
        * ``"cut-after-reply"``: the connection is cut just after the reply;
        * ``"drop-reply"``: the reply is never sent;
        * ``"delay-reply"``: the reply comes ``delay`` seconds later, by the server's clock;
        * ``"freeze"``: the session is frozen just before the request;
        * ``"expire"``: the session is ended just before the request;
        * ``"bring-back"``: the request is answered, and the nodes that it deleted are there again, as when an ensemble
          loses what it had confirmed.

        ``kind`` says which messages count: connect, create, delete, exists, get-data, set-data, get-children, acl, sync,
        ping, multi (such as the heartbeat of a holder), auth, watches, close, event (sent by the server when a watch
        fires) or other. With ``below``, only messages about that path or a path below it count, and with ``session`` only
        those of that session. The fault strikes at the ``nth`` message that counts from now on, and then at the following
        ones, ``times`` in all.

        Raises ``InvalidInput`` if there is no such fault or kind, if ``below`` is not a valid path, if ``nth`` or ``times`` is
        less than 1, or if ``delay`` is missing for ``"delay-reply"`` or given for another fault.
        """
    @overload
    def inject(
        self,
        fault: _Fault,
        kind: _Kind,
        *,
        nth: int = 1,
        times: int = 1,
        below: str | None = None,
        session: int | Session | None = None,
        delay: None = None,
    ) -> Injected:
        """Sets a fault for a message to come. Returns an ``Injected``, which tells when the fault has struck.

        >>> injected = server.inject("cut-before-reply", "create", below="/locks/doc")
        >>> with zk.mutex("/locks/doc", timeout=5):
        ...     injected.strikes
        1

        ``fault`` says what happens:

        * ``"lose-request"``: the request never arrives, and the connection is cut;
        * ``"cut-before-reply"``: the request is carried out, but the connection is cut instead of a reply;
        * ``"cut-after-reply"``: the connection is cut just after the reply;
        * ``"drop-reply"``: the reply is never sent;
        * ``"delay-reply"``: the reply comes ``delay`` seconds later, by the server's clock;
        * ``"freeze"``: the session is frozen just before the request;
        * ``"expire"``: the session is ended just before the request;
        * ``"bring-back"``: the request is answered, and the nodes that it deleted are there again, as when an ensemble
          loses what it had confirmed.

        ``kind`` says which messages count: connect, create, delete, exists, get-data, set-data, get-children, acl, sync,
        ping, multi (such as the heartbeat of a holder), auth, watches, close, event (sent by the server when a watch
        fires) or other. With ``below``, only messages about that path or a path below it count, and with ``session`` only
        those of that session. The fault strikes at the ``nth`` message that counts from now on, and then at the following
        ones, ``times`` in all.

        Raises ``InvalidInput`` if there is no such fault or kind, if ``below`` is not a valid path, if ``nth`` or ``times`` is
        less than 1, or if ``delay`` is missing for ``"delay-reply"`` or given for another fault.
        """
    def clear_faults(self) -> None:
        """Removes all faults that have not struck yet."""
    def cut(self, session: int | Session | None = None) -> bool:
        """Cuts all connections, or only that of ``session``. Returns ``False`` if that session has no connection. Sessions
        live on, and new connections are accepted.
        """
    def freeze(self, session: int | Session | None = None) -> bool:
        """Stops answering, as a broken network would: all sessions, or only ``session``, on its present and later
        connections. Connections stay open, and new ones are accepted. Returns ``False`` if there is no such session.
        """
    def thaw(self) -> None:
        """Ends every freeze. Requests that arrived meanwhile are answered now."""
    def refuse(self, refused: bool = True) -> None:
        """Closes each new connection at once. Present connections stay. ``refuse(False)`` ends it."""
    def children(self, path: str) -> list[str] | None:
        """The names of a node's children, sorted, or ``None`` if the node does not exist. Raises ``InvalidInput`` for an
        invalid path.
        """
    def data(self, path: str) -> bytes | None:
        """The data of a node, or ``None`` if the node does not exist. Raises ``InvalidInput`` for an invalid path."""
    def owner(self, path: str) -> int | None:
        """The number of the session that owns an ephemeral node, or ``None`` if the node does not exist or is not ephemeral.
        Raises ``InvalidInput`` for an invalid path.
        """
    def put(self, path: str, data: bytes | bytearray = b"") -> None:
        """Creates a persistent node, and its parents. If the node exists, replaces its data. Raises ``InvalidInput`` if the
        server cannot have such a node.
        """
    def delete(self, path: str) -> bool:
        """Deletes a node and everything below it, as an operator would. Returns ``False`` if the node does not exist. Raises
        ``InvalidInput`` for an invalid path.
        """
    def bring_back(self, path: str) -> bool:
        """Puts back the node that was deleted last at this path, as it was, and notifies nobody. So its deletion was
        confirmed but is lost, as when an ensemble loses transactions at a change of its leader. Returns ``False`` if
        there is a node again, if none was deleted, or if its session or its parent is gone. Raises ``InvalidInput`` for
        an invalid path.
        """
    def set_sequence(self, path: str, number: int) -> bool:
        """Sets the number that the next sequential child of a node gets. Returns ``False`` if the node does not exist.
        ZooKeeper counts in 32 bits with a sign, and since 3.6 its counter sticks: every child after 2147483647 gets that
        number again. Raises ``InvalidInput`` for an invalid path.
        """
    def wait_for_children(self, path: str, count: int, timeout: float | None = 10.0) -> list[str]:
        """Waits until a node has ``count`` children, and returns their names, sorted. So a test waits for a queue without
        sleeping. A node that does not exist has no children.

        Raises ``Timeout`` if the node has another number of children after ``timeout`` seconds; ``None`` waits for ever.
        Raises ``Closed`` if the server is closed meanwhile, and ``InvalidInput`` for an invalid path.
        """
    def dump(self, path: str = "/") -> str:
        """The tree below a node as text for people, one node to a line. Raises ``InvalidInput`` for an invalid path."""
    def close(self) -> None:
        """Closes the server. Its clients lose their connections. Closing twice is not an error."""
    @staticmethod
    def _of_arguments(arguments: list[str], /) -> Server | None:
        """The server that the arguments of the program ask for; `None` when it is help."""
    _usage: Final[str]
    def _obey(self, order: str, /) -> tuple[str, bool]:
        """Carries out an order to the program; its answer, and whether it was to quit."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class Injected:
    """A fault that was injected, which tells when it has struck. Dropping this object does not remove the fault. See
    ``Server.inject``.
    """
    @property
    def strikes(self) -> int:
        """How often the fault has struck. This can be read even after the server is closed."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the fault has struck. Returns ``True`` then, and ``False`` if it has not within ``timeout`` seconds;
        ``None`` waits for ever. Raises ``Closed`` if the server is closed before.
        """
