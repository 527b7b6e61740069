import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Generic, Literal, TypeVar, final, overload

from typing_extensions import ParamSpec, Self, disjoint_base

from ._cancelling import CancelOnLoss
from ._values import AsyncRun, ConnectionState, Contender, HoldState, LossReason, NodeData, Record, Run, Session, Stats

# The docstrings are copied from the native module: tests/python/face/stub.py writes and checks them.
#
# An `async` method here returns a coroutine, although not that of a Python function, and has to be awaited. A method that returns
# an `Awaitable` starts at once, and need not be awaited.

__all__ = [
    "AsyncBarrier",
    "AsyncClient",
    "AsyncDoubleBarrier",
    "AsyncGuarded",
    "AsyncHold",
    "AsyncLock",
    "AsyncMember",
    "AsyncObserver",
    "AsyncOnce",
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
    "Once",
    "PassPhrase",
    "Sasl",
    "Server",
    "Tls",
    "Wanted",
    "__version__",
    "fence_sql",
    "prometheus_text",
]

__version__: Final[str]

_AnyLock = TypeVar("_AnyLock", bound=_BaseLock)
_AnyBarrier = TypeVar("_AnyBarrier")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_CoroutineFunction = TypeVar("_CoroutineFunction", bound=Callable[..., Coroutine[Any, Any, Any]])
_Gated = TypeVar("_Gated")
_Result = TypeVar("_Result")
_AnyDoubleBarrier = TypeVar("_AnyDoubleBarrier")
_AnyOnce = TypeVar("_AnyOnce")
_Parameters = ParamSpec("_Parameters")
_Foreign = Literal["refuse", "ignore-unknown"]
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
class _BaseClient(Generic[_AnyLock, _AnyBarrier, _AnyDoubleBarrier, _AnyOnce]):
    """The methods that a ``Client`` and an ``AsyncClient`` share. They make locks of every kind: a ``Client`` makes a
    ``Lock``, and an ``AsyncClient`` makes an ``AsyncLock``.

    Making a lock sends no request. The kinds share these arguments. ``timeout`` is how many seconds to wait for the
    lock by default: ``None`` waits for ever, 0 tries once. With ``reentrant``, the thread or task that holds the lock
    can acquire it again, and only it can release it. Do not use it if a thread may serve another user while it holds
    the lock, as a thread of a pool does between two calls: both users would hold the lock together. With ``cancel=False``,
    a loss does not cancel an ``async with`` block: see ``AsyncLock``.

    A mutex, or either side of a read/write lock, can be kept between two uses. ``linger`` is how many seconds the
    lock's node stays after a release while no other contender wants the lock. Meanwhile nobody holds it, and this
    client can acquire it again without a request. When another contender queues, of any library, the node is deleted:
    at once, or on release if the lock is held. If another client tries the lock once while the node lingers, it finds
    the lock busy. That try causes the node to be deleted, so the lock is free afterwards. If the process is killed,
    others wait for its session timeout, as for any holder.

    ``local_turns`` is how many holders of this client may follow one another on one node while others wait, by default
    one. With more, or with ``linger``, threads and tasks pass the lock on without a request while no other client
    waits. All grants on one node have the same token, so the resource that the lock guards must accept a token equal to
    the largest that it has seen. In a set of locks, ``linger`` and ``local_turns`` have no effect.

    ``figures`` is a name under which ``stats`` counts the lock separately, such as ``"report"``. Locks with the same name
    are counted together. Choose a few names, at most 100 in a client: locks with further names are counted as ``other``. For
    a set or a choice, only its own name has an effect.

    Two options matter only beside other libraries. ``dialect`` says how the nodes are named: see ``mutex``. ``foreign`` says
    what to do about a contender that cannot see ours: ``"refuse"`` raises ``ForeignContender``, ``"ignore-unknown"`` ignores one
    of a home-made lock, with a warning in the log at each grant, and waits for one of a known library.
    """
    def mutex(
        self,
        path: str,
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        cancel: bool = True,
        linger: float | None = None,
        local_turns: int = 1,
        figures: str | None = None,
        dialect: str = "curator",
        foreign: _Foreign = "refuse",
    ) -> _AnyLock:
        """The mutex at ``path``: one holder at a time, in order of arrival.

        >>> lock = zk.mutex("/locks/doc", timeout=5, reentrant=True)
        >>> with lock as outer, lock as inner:
        ...     outer.token == inner.token
        True

        A lock that is used often can be kept between two uses, while no other contender wants it:

        >>> often = zk.mutex("/locks/doc", linger=10)
        >>> with often as first:
        ...     pass
        >>> with often as second:
        ...     second.token == first.token
        True

        It shares a queue with Curator's ``InterProcessMutex`` of the same path. ``dialect`` says how its nodes are named:
        ``"curator"``, ``"kazoo"`` to share the queue of a ``kazoo.recipe.lock.Lock``, ``"writelock"`` to share that of
        ZooKeeper's own ``WriteLock``, or a pattern to share that of a home-made lock:

        >>> with zk.mutex("/shop/report", dialect="{name}_lock_{sequence}") as hold:
        ...     hold.node.startswith("/shop/report_lock_0")
        True

        In a pattern, ``{sequence}`` is the number that the server appends, and comes last. ``{name}`` is the last component of
        the path, for several locks under one node. ``{any}`` is what each contender chooses. Children whose names do not match
        are ignored.
        """
    def read_lock(
        self,
        path: str,
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        cancel: bool = True,
        linger: float | None = None,
        local_turns: int = 1,
        figures: str | None = None,
        dialect: str = "curator",
        foreign: _Foreign = "refuse",
    ) -> _AnyLock:
        """The read side of the read/write lock at ``path``: several readers can hold it at once.

        >>> with zk.read_lock("/locks/doc") as hold:
        ...     [contender.role for contender in zk.read_lock("/locks/doc").contenders()]
        ['read']

        A thread that holds the read side and acquires the write side waits until the read side is released. If only that
        thread can release it, because it was made reentrant, the acquire raises ``Deadlock`` instead. It shares a queue
        with Curator's ``InterProcessReadWriteLock``, or with ``dialect="kazoo"`` with kazoo's ``ReadLock`` and
        ``WriteLock``. With a pattern such as ``dialect="{any}-{R|W}-{sequence}"`` it shares one with a home-made lock whose
        readers have ``R`` there and its writers ``W``: see :meth:`mutex`. A writer's token is larger than those of earlier
        readers, and a reader's token is larger than those of earlier writers. Among readers that hold the lock together, the
        order of tokens means nothing.
        """
    def write_lock(
        self,
        path: str,
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        cancel: bool = True,
        linger: float | None = None,
        local_turns: int = 1,
        figures: str | None = None,
        dialect: str = "curator",
        foreign: _Foreign = "refuse",
    ) -> _AnyLock:
        """The write side of the read/write lock at ``path``: one writer at a time, and no readers.

        >>> with zk.write_lock("/locks/doc", reentrant=True):
        ...     reading = zk.read_lock("/locks/doc").hold()
        >>> reading.valid_for() > 0
        True
        >>> reading.release()

        To downgrade, as here, a thread that holds the write side by a lock with ``reentrant=True`` can acquire the read
        side at once, and keep it when it releases the write side. No other writer gets in between, and the reader's hold
        has the writer's token. The lock for the read side may be reentrant or not. With a pattern as ``dialect`` that is not
        possible, and raises ``Deadlock``.

        A write hold that is not reentrant may be in use by any thread or task. So until it is released, even the thread
        that acquired it waits for the read side, like all others. Later readers do not starve a waiting writer.
        """
    def semaphore(
        self,
        path: str,
        limit: int,
        *,
        permits: int = 1,
        limit_at: str | None = None,
        timeout: float | None = None,
        cancel: bool = True,
        figures: str | None = None,
        foreign: _Foreign = "refuse",
    ) -> _AnyLock:
        """The semaphore at ``path`` with ``limit`` permits. A hold takes one of them, or as many as ``permits`` says.

        >>> licence = zk.semaphore("/locks/doc-licences", 5)
        >>> with licence, licence, zk.semaphore("/locks/doc-licences", 5, permits=3):
        ...     licence.acquire(blocking=False)
        False

        A permit does not belong to a thread: a thread or task may hold several. Any of them may call ``release()``. It
        releases what the caller acquired last or, if the caller has acquired nothing, what another acquired. Every program
        that uses the semaphore must give the same limit. With ``limit_at`` the limit is read from the node at that path,
        which ``set_limit`` writes, and all waiters notice when it changes.

        It is compatible with Curator's ``InterProcessSemaphoreV2`` of the same path and, with a limit of 1, with its
        ``InterProcessSemaphoreMutex``.
        """
    def election(
        self,
        path: str,
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        cancel: bool = True,
        figures: str | None = None,
        foreign: _Foreign = "refuse",
    ) -> _AnyLock:
        """The election at ``path``: one candidate leads, and the others are ready to take over.

        >>> with zk.election("/locks/doc") as lead:
        ...     lead.lost.is_set()
        False

        To campaign, acquire it. To resign, release it. ``Lock.observe`` reports the leader. It shares a queue with
        Curator's ``LeaderLatch``.
        """
    def exclusive(
        self,
        path: str,
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        cancel: bool = True,
        figures: str | None = None,
    ) -> _AnyLock:
        """The exclusive lock at ``path``: a single node that exists or not, for jobs that are tried once.

        >>> job = zk.exclusive("/locks/doc", timeout=0)
        >>> with job as hold:
        ...     hold.node
        '/locks/doc/lock'

        There is no queue: when the node is deleted, all waiters are woken, and the first to create it again has the lock.
        To wait in order, use a mutex.
        """
    def all(
        self,
        locks: Iterable[_BaseLock],
        *,
        timeout: float | None = None,
        reentrant: bool = False,
        cancel: bool = True,
        figures: str | None = None,
    ) -> _AnyLock:
        """A set of these locks, which are acquired and released together: all or none.

        >>> both = zk.all([zk.mutex("/locks/doc"), zk.write_lock("/locks/doc-too")], timeout=5)
        >>> with both as hold:
        ...     hold.path
        '/locks/doc, /locks/doc-too'

        A single transaction queues for all of them, so two sets cannot deadlock, whatever the order of arrival. You can mix
        mutexes, read and write sides, semaphores and elections of this client. A lock that is named twice is in the set once,
        but no two different locks may have the same path. Each lock keeps its own options, except that ``timeout`` and
        ``reentrant`` are those of the set.
        """
    def any(
        self, locks: Iterable[_BaseLock], *, timeout: float | None = None, cancel: bool = True, figures: str | None = None
    ) -> _AnyLock:
        """A choice of these locks: acquiring it gives a hold of whichever is free first, and leaves the queues of the others.

        >>> jobs = [zk.mutex("/jobs/doc-1"), zk.mutex("/jobs/doc-2")]
        >>> with zk.any(jobs, timeout=5) as hold:
        ...     hold.path
        '/jobs/doc-1'

        Use it in workers that take any free job out of many. ``hold.path`` says which lock it is. An acquire first looks
        at all the queues, in one round trip that changes nothing. If some locks are free, it acquires the one that you
        named first. If none is free, it queues for all of them. You can mix locks of any kind that has a queue, but no two
        may have the same path. Each is acquired as it would be alone, with its own options except for ``timeout``. So a
        lock that the caller already holds counts as busy, unless it is reentrant.
        """
    def once(
        self,
        path: str,
        every: float | str | timedelta,
        *,
        offset: float | str | timedelta = 0,
        after_failure: Literal["again", "next"] = "again",
        timeout: float | None = None,
        cancel: bool = True,
    ) -> _AnyOnce:
        """The job at ``path``, which runs on one host in each period: a ``Once``, or for asyncio an ``AsyncOnce``.

        >>> with zk.once("/jobs/doc-three", every="1d", offset="12h") as run:
        ...     if run:
        ...         token = run.hold.token  # write the report with it

        ``every`` is the length of a period: seconds, a ``timedelta``, or a text such as ``"1 day"`` or ``"1h30m"``; a second at least.
        Periods are counted from 1970-01-01T00:00:00Z, on the clocks of the servers, so a wrong clock of a host does not matter.
        ``offset`` lets them begin later. The clocks of hosts and servers differ, so do not start a job where a period begins: if
        cron starts it at midnight UTC, 12 hours are a good offset.

        A job is a mutex with a record of its last run. While another host runs it, others wait, for ``timeout`` seconds as with
        other locks (``None`` waits for ever, 0 does not wait), and then raise ``Timeout``. If that host dies, the next one takes
        over. ``after_failure`` says whether a job that has failed runs ``"again"`` in the same period, or in the ``"next"`` one. A
        host that dies, or loses the lock, has failed.
        """
    def barrier(self, path: str) -> _AnyBarrier:
        """The barrier at ``path``: while it is set, callers of ``wait`` wait.

        >>> barrier = zk.barrier("/barriers/doc")
        >>> barrier.set(), barrier.wait(timeout=0.01), barrier.remove(), barrier.wait()
        (True, False, True, True)

        It does not belong to a process: it stays set after the process that set it has ended, and any process may remove
        it. It is compatible with Curator's ``DistributedBarrier``.
        """
    def double_barrier(self, path: str, members: int, *, timeout: float | None = None) -> _AnyDoubleBarrier:
        """The double barrier at ``path``: no member begins before ``members`` have entered, and none goes on before all have
        left.

        >>> with zk.double_barrier("/barriers/doc-too", 1, timeout=5) as member:
        ...     member.loss is None
        True

        The block begins when all members have entered, and at its end it waits until all have left. If the block raises,
        the member leaves without waiting. ``timeout`` is how many seconds to wait for the others, at either end; ``None``
        waits for ever. It is compatible with Curator's ``DistributedDoubleBarrier``.
        """
    def stats(self) -> Stats:
        """The counters of this client: its work so far, and the nodes that it still has to clean up. It
        is a ``Stats``. This sends no request.

        >>> stats = zk.stats()
        >>> stats.owed, stats.losses_by["lease_lapsed"]
        (0, 0)

        ``acquires`` counts acquires by outcome, and there are histograms of how long they waited. For a client that has not
        connected yet, everything is zero. ``locks`` has the figures of locks that were made with ``figures``, by that name:

        >>> with zk.mutex("/locks/doc", figures="report"):
        ...     zk.stats().locks["report"].held
        1
        """
    def prometheus(self) -> str:
        """All the figures of ``stats`` as text for Prometheus. It has Prometheus' format 0.0.4: serve it as ``text/plain;
        version=0.0.4``.

        >>> page = zk.prometheus()
        >>> 'zklock_acquires_total{outcome="timed_out"} 0' in page.splitlines()
        True

        Names of metrics and labels do not change from version to version, but later versions may add some. Each text is
        about one client. For several clients, use ``prometheus_text``: with two texts on one page, every name would
        occur twice, and Prometheus refuses that. It sends no request.
        """
    @property
    def connection_state(self) -> ConnectionState | None:
        """The state of the connection: a ``ConnectionState``. It is ``None`` if the client has not connected yet, or was used
        in a process from which this one was forked.

        >>> zk.connection_state
        <ConnectionState.CONNECTED: 'connected'>
        """
    def on_connection(self, callback: Callable[[ConnectionState], object]) -> None:
        """Calls ``callback(state)`` with the current ``ConnectionState``, and again whenever it changes. Use it to pause work
        during an outage, or to drop what belonged to a lost session.

        >>> import queue
        >>> states = queue.Queue()
        >>> zk.on_connection(states.put)
        >>> states.get(timeout=5)
        <ConnectionState.CONNECTED: 'connected'>

        If the client has not connected yet, the first call comes once it has connected or is closed. ``CLOSED`` is always
        the last state. A client that is dropped without ``close``, or garbage collected, reports nothing more. Changes in
        quick succession may be reported as one. Several lost sessions are reported as one at least. To watch what a lock
        guards, use its hold instead, with ``Hold.lost``, ``Hold.on_lost`` and ``Hold.valid_for``.

        Raises ``TypeError`` if ``callback`` is not callable, and ``Forked`` if the client belongs to the process from
        which this one was forked.

        The callbacks of one client are called one at a time, on a thread for callbacks. If one raises, the exception goes
        to ``sys.unraisablehook``, and the callback is still called the next time. Under gevent and eventlet, a greenlet of
        the main thread calls them. In asyncio, have the callback use ``loop.call_soon_threadsafe``.
        """
    @property
    def session_id(self) -> int | None:
        """The number of the current session, or ``None`` if there is none."""
    @property
    def session_timeout(self) -> float | None:
        """The session timeout in seconds that the servers granted, or ``None`` if there is no session."""

@final
class Client(_BaseClient[Lock, Barrier, DoubleBarrier, Once]):
    """A logical connection to an ensemble. ``hosts`` is ``host:port,host:port``, optionally with a ``/chroot`` at the end.
    It may also be a list of hosts, ``["zk1:2181", "zk2:2181"]``, or of pairs, ``[("zk1", 2181), ("zk2", 2181)]``. By
    default, the environment variable ``ZKLOCK_HOSTS`` names them.

    >>> with zklock.Client(hosts, session_timeout=10) as zk:
    ...     with zk.mutex("/locks/doc", timeout=5):
    ...         pass

    A client connects when it is first used or entered, or by ``connect()``. So a program may make one at the top of a
    module, and fork before it uses it. It outlives sessions: when one expires, it opens the next. Share one client
    among all threads and tasks of a process, but give each process its own. A wrong argument raises ``InvalidInput`` at
    once. If no server answers, connecting raises ``Unreachable``.

    Times are in seconds. ``session_timeout`` is how long a lock stays taken after its holder has crashed, and roughly
    how long the network may fail before a hold is lost. The servers may grant another. ``connect_timeout`` limits how
    long it tries to reach a server. ``try_timeout`` limits how long the servers may take to answer a call that does not
    wait for others: ``acquire(blocking=False)``, and any call with a timeout of zero. After that time, the call raises
    ``Unreachable``. If such a call is the first to use the client, it connects first, for up to ``connect_timeout``.

    ``chroot`` puts all paths below that node, which must exist unless ``create_chroot`` is set. ``identity`` is the
    name under which others see this client in a queue, by default ``host/pid`` of the process that connects. ``tls``
    is a ``Tls``. ``auth`` is a ``Digest``, ``Sasl`` or ``Kerberos`` to log in as, or a list of these.
    ``server_version`` is the version of the servers, such as ``(3, 4)``. If it is not given, the client asks them.

    By default, a client that holds anything writes to the servers every twelfth of the session timeout, to confirm its
    holds. That adds up if thousands of clients hold something all day, for example as leaders of thousands of elections.
    ``told_within``, in seconds, makes these writes rarer. It is how soon a holder learns of a loss that no server
    reports: by default a tenth of the session timeout, and at most a third. The answers of ``valid_for`` stay true.
    ``heartbeat=False`` switches the writes off. But then nothing proves that a hold still exists: ``valid_for`` drops to
    zero half a session timeout after the grant. The hold is at risk while the client is disconnected. It is only
    reported as lost when the servers say that its session is over or its node is deleted. By then another client may
    have held the lock for a while.

    ``access`` says who may use the nodes that the client creates: everyone (``open``); only clients that are logged in
    as the creator (``creator-all``); or only these, while all others may read (``read-open``). All clients of a lock
    create, list, read and delete nodes there, so with the last two they must all log in as the same user. Nodes that
    already exist keep their access list. ``access`` may also be an access list in the format of ``zkCli``,
    ``"sasl:billing:cdrwa,world:anyone:r"``, or a list of such entries, one string each. Then only those that it names
    have access.

    For asyncio, use ``async with`` or ``aio``. In a thread whose event loop is running, all calls that wait raise
    ``Deadlock``, because they would stop the loop. Even so, ``close`` and the ``release`` of a lock go on in the
    background.

    When the program ends, clients are closed, which frees their locks. A client is not closed if a daemon thread may
    still be using its locks. These locks are free once the session has timed out.
    """
    def __new__(
        cls,
        hosts: str | Iterable[str | tuple[str, int]] | None = None,
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
        told_within: float | None = None,
    ) -> Self: ...
    @property
    def aio(self) -> AsyncClient:
        """This client for asyncio."""
    def connect(self, timeout: float | None = None) -> None:
        """Connects now, unless the client is already connected.

        Raises ``Unreachable`` if no server answers within the connect timeout, or within ``timeout`` seconds if that is
        less, or if no host name can be resolved.
        """
    def close(self) -> None:
        """Closes the client, which frees every lock that it holds. Waits until the servers have confirmed this, for up to a
        second. Its holds are lost, and all waits end with ``Closed``. Closing twice is not an error.
        """
    def guard(self, command: str | os.PathLike[str] | None = None) -> None:
        """Starts a guardian: a process that ends the session at the servers as soon as this process is dead. The client's locks
        are then free at once. Without a guardian, which is the default, they are free when the session times out.

        >>> zk.guard()

        The guardian is the command ``zklock guardian``. By default that is the ``zklock`` that was installed with this package,
        or else the one on the ``PATH``. ``command`` is the path or name of another one of the same version. It is a child of
        this process, in a process group of its own. The client writes to its standard input: how to connect, with all
        passwords, and the key of each session. This call connects the client if necessary, and returns when the guardian
        watches. The guardian ends when the client is closed, or collected together with everything that was made from it.

        The guardian waits until this process is dead. It does nothing to a process that is stopped, slow, cut off or replaced
        (``os.exec``). Child processes of this process may still run when the next holder has the lock. If the machine or the
        container dies, if the guardian is killed too, or if the servers cannot be reached, the session timeout applies. If the
        guardian ends early, the log has a warning, and you can call this again.

        Raises ``InvalidInput`` if the command cannot be started, if it is another program or of another version, or if the client
        has a guardian already; ``Refused`` if the guardian cannot connect as the client does; ``Unreachable``; ``Closed``.
        """
    def set_limit(self, path: str, limit: int) -> None:
        """Writes the number of permits to the node that semaphores name with ``limit_at``. All waiters notice.

        >>> zk.set_limit("/limits/doc", 7)

        The node is created if it does not exist. It is compatible with Curator's ``SharedCount``. Permits that are held
        stay held, even if the new limit is lower.
        """
    def ensemble_id(self) -> str:
        """The identity of the ensemble. A fence (``zklock.fence``) keeps it together with the token, because tokens of two
        ensembles cannot be compared. It is the data of the node ``/zklock-ensemble``. The first client that asks creates this
        node below its chroot, with its access list. A client asks the servers once in each session.

        >>> len(zk.ensemble_id())
        36

        An ensemble that you restore from a backup keeps its identity, although its tokens start again from earlier ones.
        In that case, delete the node once the ensemble's clients have ended.

        Raises ``Unreachable`` if no server answers within the connect timeout, ``Refused`` if the access list does not allow
        reading or creating the node, or if its data is not from zklock, and ``Closed`` if the client is closed.
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
class AsyncClient(_BaseClient[AsyncLock, AsyncBarrier, AsyncDoubleBarrier, AsyncOnce]):
    """A ``Client`` for asyncio. Get one with ``async with`` on a ``Client``, or from ``Client.aio``.

    >>> async def report():
    ...     async with zklock.Client(hosts) as zk:
    ...         async with zk.mutex("/locks/doc", timeout=5) as hold:
    ...             return hold.token > 0
    >>> asyncio.run(report())
    True
    """
    @property
    def aio(self) -> AsyncClient:
        """This client itself."""
    async def connect(self, timeout: float | None = None) -> None:
        """Connects now, unless the client is already connected. See ``Client.connect``."""
    def close(self) -> Awaitable[None]:
        """Starts to close the client at once; await it to wait until it is closed. See ``Client.close``."""
    async def guard(self, command: str | os.PathLike[str] | None = None) -> None:
        """Starts a guardian: if this process is killed, its locks are free at once. See ``Client.guard``."""
    async def set_limit(self, path: str, limit: int) -> None:
        """Writes the number of permits of semaphores with ``limit_at``. See ``Client.set_limit``."""
    async def ensemble_id(self) -> str:
        """The identity of the ensemble. See ``Client.ensemble_id``."""
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@disjoint_base
class _BaseLock:
    """The methods that a `Lock` and an `AsyncLock` share."""
    @property
    def path(self) -> str:
        """The path of the lock, or all the paths of a set of locks."""
    def locked(self) -> bool:
        """Whether this client holds the lock. It does not ask the servers: to see other holders, use ``contenders``."""

@final
class Lock(_BaseLock):
    """A lock of any kind, at a path. Threads can share it. The object itself holds nothing: a ``with`` block does.

    >>> lock = zk.mutex("/locks/doc", timeout=5)
    >>> with lock as hold:
    ...     hold.token > 0
    True

    On Python 3.14, an exception raised by a signal handler may come just before the block is entered, as with any lock,
    and then the lock is not released. If your handlers raise, write ``with lock.hold() as hold``, which is safe.

    The block raises ``Timeout`` if the lock was not free in time, ``Unreachable`` if no server could be reached, and at
    its end ``LockLost`` if the hold was lost meanwhile. Nothing can interrupt a ``with`` block at a loss: call ``hold.ensure``
    before each piece of work, look at ``hold.lost``, or add a callback with ``hold.on_lost``. (``async with`` cancels its block:
    see ``AsyncLock``.) If the block itself raises, a note about the loss is added to that exception. Each block releases its own hold, even if several blocks of one lock in one thread end in another
    order than they began, as can happen with generators.

    ``acquire``, ``release`` and ``locked`` work as those of ``threading.Lock`` or, if the lock is reentrant, of
    ``threading.RLock``. So any thread may release the lock, and a thread that acquires it again waits until it is
    released; the log has a warning about that. If the lock is reentrant, it belongs to the thread that acquired it.
    After ``acquire`` the lock is held until it is released or the client is closed, even if the lock object is
    deleted.

    A lock is also a decorator, for a function or a coroutine function: each call runs in a block of its own.

    >>> @zk.mutex("/locks/doc", timeout=0)
    ... def report():
    ...     return "written"
    >>> report()
    'written'

    A call raises what its block raises. In the function, the lock's ``current`` is the hold. Classes and generators raise
    ``InvalidInput``.
    """
    @property
    def aio(self) -> AsyncLock:
        """This lock for asyncio."""
    def acquire(self, blocking: bool = True, timeout: float | None = ...) -> bool:
        """Acquires the lock, and returns whether it did, as ``threading.Lock.acquire`` does.

        >>> lock = zk.mutex("/locks/doc")
        >>> lock.acquire(timeout=5)
        True
        >>> lock.acquire(blocking=False)
        False
        >>> lock.release()

        Without a ``timeout`` argument, it waits for the timeout that the lock was made with; -1 or ``None`` waits for ever.
        With ``blocking=False`` it only waits for the servers' answer, for up to the client's ``try_timeout``. ``False`` means
        that others have the lock, or that the time was too short for an answer; the reason is logged. So always look at the
        result, or use ``hold`` or a block, which raise ``Timeout``.

        You may poll with ``blocking=False``. After two tries have found this lock object busy, further tries send no
        request until the servers report that the contender ahead has left. (Semaphores, sets, choices and exclusive locks
        ask each time.) So just after another client's release, a try may still return ``False`` until that report arrives,
        for a tenth of the session timeout at most. A call with a short timeout always asks the servers.

        Clients get the lock in the order in which they queue, and the callers within a client in the order in which they
        call. However many callers a client has, clients take turns. If a caller gives up, the next caller of its client
        takes its place.

        It raises

        * ``Deadlock`` if this thread holds the lock by another object that is reentrant, so that no other thread can release
          it, or if an asyncio event loop runs in this thread;
        * ``Unreachable`` if there is no connection when the time is over, or no server answered within the ``try_timeout``, so
          that it is not known who has the lock;
        * ``ForeignContender`` if a contender of another library cannot see ours;
        * ``LockLost`` if the lock is reentrant and the outer hold is lost;
        * ``Refused`` if the access list does not allow it;
        * ``Closed`` if the client is closed.
        """
    def hold(self, timeout: float | None = ...) -> Hold:
        """Acquires the lock and returns the hold, which you must release.

        >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
        >>> hold.release()

        It waits for up to ``timeout`` seconds; ``None`` waits for ever, and zero tries once. By default it waits for the
        timeout that the lock was made with. Then it raises ``Timeout``, or ``Unreachable`` as ``acquire`` does. The message of
        ``Timeout`` names the holder, if the servers say who that is.
        """
    def try_acquire(self) -> Hold | None:
        """Tries once to acquire the lock, as ``acquire(blocking=False)`` does. Returns the hold, which you must release, or
        ``None`` if others have the lock.

        >>> hold = zk.mutex("/locks/doc").try_acquire()
        >>> print(zk.mutex("/locks/doc").try_acquire())
        None
        >>> hold.release()
        """
    def release(self) -> None:
        """Releases what this thread acquired last with ``acquire`` or a ``with`` block. If this thread has acquired nothing
        and the lock is not reentrant, it releases what another thread acquired.

        Raises ``NotHeld``, which is a ``RuntimeError``, if there is nothing to release. See also ``Hold.release``.
        """
    @property
    def current(self) -> Hold | None:
        """The hold that this thread acquired last with ``acquire`` or a ``with`` block and has not released yet, or ``None``."""
    def contenders(self) -> list[Contender]:
        """The contenders in the queue, holders first: a list of ``Contender``. Those of other libraries are included.

        >>> lock = zk.mutex("/locks/doc")
        >>> with lock as hold:
        ...     [contender.token == hold.token for contender in lock.contenders()]
        [True]

        For a set of locks, it lists the queues of its locks one after the other. A set that is first in one queue but still
        waits for another of its locks is listed first there, but does not hold the lock.
        """
    def evict(self, node: str) -> bool:
        """Takes any contender out of the queue by deleting its node. ``False`` if the node no longer
        existed.

        >>> lock = zk.mutex("/locks/doc")
        >>> hold = lock.hold()
        >>> [lock.evict(contender.node) for contender in lock.contenders() if contender.identity == "db7/4711"]
        []
        >>> hold.release()

        A holder learns that its hold is lost, if its library reports that. A waiter queues again. Evicting a holder breaks
        the protection of the lock, unless the holder is known to have stopped: until it learns of the loss, it believes
        that it holds the lock, while another already does. Raises ``InvalidInput`` if the node is not a contender of this
        lock.

        All nodes of an exclusive lock have the same path. There, this evicts the current holder, which may not be the one
        that was listed. ``break_lock`` avoids that.
        """
    def break_lock(self) -> list[Contender]:
        """Takes the lock away from all its holders, and returns a list of them, each a ``Contender``.

        >>> zk.mutex("/locks/doc").break_lock()
        []

        See ``evict`` for what this breaks. Waiters stay in the queue, and so does a set of locks that is first in this queue
        but still waits for another of its locks. The next holder of an exclusive lock keeps its lock, with one exception: if
        the servers are of version 3.4, or another library holds the lock, a node that is created just between the request
        that reads the node and the one that deletes it is deleted too.
        """
    def request_release(self) -> list[Contender]:
        """Asks all holders to release the lock, and returns a list of them, each a ``Contender``.

        >>> hold = zk.mutex("/locks/doc").hold()
        >>> [holder.node == hold.node for holder in zk.mutex("/locks/doc").request_release()], hold.wanted.wait(timeout=5)
        ([True], True)
        >>> hold.release()

        Nothing is taken away: a holder that watches ``Hold.wanted`` learns of the request, and keeps the lock until it
        releases it. The request is written as Curator's ``Revoker`` writes it: the data of the holder's node becomes
        ``__REVOKE__``. So it reaches holders of zklock, and holders of a Curator ``InterProcessMutex`` that called
        ``makeRevocable``. Other libraries ignore it. Below that word, the node of a holder of zklock keeps its identity;
        for a holder of another library, the word replaces it. Raises ``Refused`` if the access list does not allow
        writing to a holder's node; all other holders are still asked.
        """
    def observe(self) -> Observer:
        """Observes who holds the lock or, for an election, who leads, without taking part.

        >>> lead = zk.election("/locks/doc")
        >>> with lead as hold:
        ...     for leader in lead.observe():
        ...         if leader is not None:
        ...             break
        ...     leader.token == hold.token
        True

        It returns an ``Observer``, an iterator that waits for each change and never ends. Many can observe one lock without
        waking each other. If there are several holders, it reports the first. The first contender in the queue is reported
        as the holder, even if it is a set of locks that still waits for another of its locks. Raises ``InvalidInput`` for a
        semaphore or a set of locks.
        """
    def __call__(self, function: _Function, /) -> _Function: ...
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
    """A ``Lock`` for asyncio. Get one from ``AsyncClient.mutex`` and its siblings, or from ``Lock.aio``.

    >>> async def once():
    ...     lock = zk.aio.mutex("/locks/doc", timeout=5)
    ...     if await lock.acquire(blocking=False):
    ...         await lock.release()
    ...     return lock.locked()
    >>> asyncio.run(once())
    False

    The lock belongs to the task that calls ``acquire``, ``hold`` or ``async with``, even if another task awaits the
    result, as ``asyncio.wait_for`` and ``create_task`` do. If that task already holds the lock, it waits until that
    hold is released; if the lock is reentrant, it gets another hold at once. Keep a reference to a task that waits,
    because the event loop only has a weak one. A cancelled wait leaves the queue, and a lock that was granted meanwhile
    is released.

    When the hold of an ``async with`` block is lost, its task is cancelled, and cleans up. The block then raises ``LockLost`` in
    place of the ``CancelledError``, just as a block of ``asyncio.timeout`` raises ``TimeoutError``:

    >>> async def report():
    ...     async with zk.mutex("/locks/doc", timeout=5):
    ...         await asyncio.sleep(0.01)  # a loss ends it
    >>> asyncio.run(report())

    If the block raises an exception of its own, that exception goes on, with a note about the loss. If the block swallows the
    cancellation, its end raises ``LockLost``. If the task is cancelled for another reason, it stays cancelled, even if the hold
    is lost as well. After the block, nothing is cancelled. A task is only cancelled when it awaits something. A lock that was
    made with ``cancel=False`` cancels nothing.

    In an async generator, a loss would cancel the consumer, so the block raises ``InvalidInput`` there, unless
    ``contextlib.asynccontextmanager`` makes the consumer's block of the generator. Before Python 3.11, only the message shows
    which cancellation is ours. Ours counts as another one if something in between raises a ``CancelledError`` of its own.
    Another one counts as ours if both come before the task goes on.

    ``async with`` also works under trio. Another thread waits for the lock there, and the hold's own coroutines (``confirm``,
    ``read``, ``commit``) do not work, as elsewhere under trio. A reentrant lock raises ``InvalidInput`` there, because it belongs
    to a task of asyncio.

    It is also a decorator for coroutine functions, as ``Lock`` is.
    """
    @property
    def aio(self) -> AsyncLock:
        """This lock itself."""
    async def acquire(self, blocking: bool = True, timeout: float | None = ...) -> bool:
        """Acquires the lock, and returns whether it did. See ``Lock.acquire``."""
    async def hold(self, timeout: float | None = ...) -> AsyncHold:
        """Acquires the lock and returns the hold, which you must release. See ``Lock.hold``."""
    async def try_acquire(self) -> AsyncHold | None:
        """Tries once to acquire the lock. Returns the hold, or ``None`` if others have the lock. See ``Lock.try_acquire``."""
    def release(self) -> Awaitable[None]:
        """Releases what this task acquired last. If it has acquired nothing and the lock is not reentrant, releases what
        another did. The release starts at once; await it to wait until the servers have confirmed it. See ``Lock.release``.
        """
    @property
    def current(self) -> AsyncHold | None:
        """The hold that this task acquired last with ``acquire`` or ``async with`` and has not released yet, or ``None``."""
    async def contenders(self) -> list[Contender]:
        """The contenders in the queue, holders first: a list of ``Contender``. See ``Lock.contenders``."""
    async def evict(self, node: str) -> bool:
        """Takes a contender out of the queue by deleting its node. See ``Lock.evict`` for what this breaks."""
    async def break_lock(self) -> list[Contender]:
        """Takes the lock away from all its holders, and returns a list of them. See ``Lock.break_lock`` for what this breaks."""
    async def request_release(self) -> list[Contender]:
        """Asks all holders to release the lock, and returns a list of them. See ``Lock.request_release``."""
    def observe(self) -> AsyncObserver:
        """Observes who holds the lock or, for an election, who leads, without taking part. Use it with ``async for``. See
        ``Lock.observe``.
        """
    def __call__(self, function: _CoroutineFunction, /) -> _CoroutineFunction: ...
    async def __aenter__(self) -> AsyncHold: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@disjoint_base
class BaseHold:
    """The methods that a `Hold` and an `AsyncHold` share."""
    @property
    def token(self) -> int:
        """The fencing token of this grant. If two grants at one path exclude each other, the later one has the larger token.

        A lock that was made with ``linger`` or ``local_turns`` may be passed on within its client, and then the later grant
        has the same token. So the resource that such a lock guards must accept a token equal to the largest that it has
        seen.

        Grants that do not exclude each other may get their tokens in any order: two readers with no writer between them, or
        two permits of a semaphore. So compare a reader's token only with those of writers.
        """
    @property
    def path(self) -> str:
        """The path of the lock."""
    @property
    def node(self) -> str:
        """The path of this hold's node."""
    @property
    def state(self) -> HoldState:
        """The state of the hold: a ``HoldState``."""
    @property
    def lost(self) -> Loss:
        """The event that the hold is lost: a ``Loss``. You can check it, wait for it or await it."""
    def valid_for(self) -> float:
        """How many more seconds the lock is certain to be held, even if the client hears nothing more from the servers.

        Zero means that others may hold it. That is the answer after a loss, after a release, and in a forked process. The call
        sends no request, and never raises. An answer stays true for that time, whatever the network and the servers do, unless
        the hold is released or an operator ends it. But if the process is paused before it does the guarded work, that time may
        be over by then. The ``token`` and ``guarded`` writes protect against that.
        """
    def ensure(self, seconds: float) -> None:
        """Checks that the lock is certain to be held for this many seconds plus a hundredth of the session timeout, even if the
        client hears nothing more from the servers. Call it before work that takes this long, so that you begin nothing that
        cannot end in time. It sends no request and does not wait.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.ensure(0.5)

        A lease is never longer than half of the session timeout, and in normal operation seldom shorter than four tenths of
        it. If the process is paused after the call, its work may still be late: a fence (``zklock.fence``) refuses late
        writes.

        Raises ``AtRisk`` if the lease is shorter: ask again later, or ``confirm`` it; ``LockLost`` if the hold is lost;
        ``NotHeld`` if it was released; ``InvalidInput`` if no lease of this session can be that long; ``Forked`` if this process
        was forked from the one that holds the lock.
        """
    def on_lost(self, callback: Callable[[LossReason], object]) -> None:
        """Calls ``callback(reason)`` once, with a ``LossReason``, when the hold is lost. If it is already lost, the call comes
        at once. If it is released first, the call never comes.

        The callbacks of one hold are called one at a time, on a thread for callbacks. Those of different holds do not wait
        for each other, unless 32 are running. If a callback raises, the exception goes to ``sys.unraisablehook``. Under
        gevent and eventlet, a greenlet of the main thread calls them. In asyncio, have the callback use
        ``loop.call_soon_threadsafe``. A callback is not called if the garbage collector takes it apart together with its
        hold.

        Raises ``TypeError`` if ``callback`` is not callable, and ``Forked`` if this process was forked from the one
        that holds the lock.
        """
    def gate(self, target: _Gated, needs: float = 2.0) -> _Gated:
        """Wraps a function, so that each call first calls ``ensure`` with ``needs`` seconds. So no call begins that cannot end in
        time.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     shout = hold.gate(str.upper, needs=0.5)
        ...     shout("written")
        'WRITTEN'

        For a coroutine function, the check comes when its coroutine starts to run. For a transport of httpx, it comes
        before each request, sync or async: ``httpx.Client(transport=hold.gate(httpx.HTTPTransport(), needs=5))``. Retries
        inside of a transport do not check again.

        Raises ``InvalidInput`` for anything else, such as a class, a generator function, or a function that returns a
        coroutine (when it is called). The wrapped function raises what ``ensure`` raises.
        """
    def cancel_on_loss(self) -> CancelOnLoss[Self]:
        """A block that is cancelled when the hold is lost: ``async with hold.cancel_on_loss():``, in asyncio and under trio.

        >>> async def work(hold):
        ...     async with hold.cancel_on_loss():
        ...         await asyncio.sleep(0.01)
        ...         return "done"
        >>> with zk.mutex("/locks/doc").hold() as hold:
        ...     asyncio.run(work(hold))
        'done'

        A block of the lock itself does this already: see ``AsyncLock``. This one is for a hold from ``hold`` or
        ``try_acquire``, for one that a thread has acquired, and for a part of a block with ``cancel=False``. After a loss, it
        raises ``LockLost`` too, but it does not release the hold.

        Entering the block raises ``LockLost`` if the hold is already lost, and ``NotHeld`` if it was released.
        """
    async def run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Awaits a coroutine in a block of ``cancel_on_loss``, and returns its result: ``await hold.run(work())``.

        >>> async def work():
        ...     return "done"
        >>> async def main():
        ...     async with zk.mutex("/locks/doc") as hold:
        ...         return await hold.run(work())
        >>> asyncio.run(main())
        'done'

        If the coroutine never starts, because the hold is already lost or the task is cancelled before, it is closed. Raises
        ``InvalidInput`` if the argument is not a coroutine.
        """
    def _alarm(self, block: object) -> object:
        """Calls `wake()` of an object on a thread of ours when the hold is lost, for as long as the result exists."""
    @property
    def wanted(self) -> Wanted:
        """The event that others wait for what this hold has: a ``Wanted``. You can check it, wait for it or await it. Use it
        to finish early, or to release the lock between two pieces of work.

        A request by ``Lock.request_release``, or by Curator's ``Revoker``, counts as a waiter.

        The first use of this property starts to watch for others: the client lists the queue and reads the hold's own nodes
        once, and leaves watches, which the next contender or request triggers. A hold whose ``wanted`` is never used costs
        nothing.
        """
    def on_wanted(self, callback: Callable[[], object]) -> None:
        """Calls ``callback()`` once, when others wait for what this hold has. If they already do, the call comes at once. If
        the hold is released or lost first, the call never comes.

        See ``wanted`` for what this costs, and ``on_lost`` for how callbacks are called.

        Raises ``TypeError`` if ``callback`` is not callable, and ``Forked`` if this process was forked from the one
        that holds the lock.
        """

@final
class Hold(BaseHold):
    """The proof that a lock is held. Get one from a ``with`` block on a lock, or from ``Lock.hold``.

    >>> hold = zk.mutex("/locks/doc").hold(timeout=5)
    >>> hold.token > 0, hold.state
    (True, <HoldState.HELD: 'held'>)
    >>> hold.release()
    >>> hold.state
    <HoldState.RELEASED: 'released'>

    A hold is itself a context manager: the end of the block releases it, and raises ``LockLost`` if it was lost
    meanwhile. If a hold from ``Lock.hold`` is dropped without a release, it is released in the background, with a
    ``ResourceWarning``.

    Every call that reaches the servers raises ``Forked`` if this process was forked from the one that holds the
    lock.
    """
    def confirm(self) -> float:
        """Asks the servers whether the lock is still held. Returns how many seconds it is now certain to be held.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.confirm() > 0
        True

        Raises ``LockLost`` if the lock is no longer held, ``NotHeld`` if the hold was released, and ``Unreachable`` if the
        servers do not answer while the lease lasts, or within a second if less than that is left.
        """
    def ensemble_id(self) -> str:
        """The identity of the ensemble, which a fence (``zklock.fence``) keeps together with the token. See
        ``Client.ensemble_id``.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.ensemble_id() == zk.ensemble_id()
        True
        """
    def read(self, path: str) -> NodeData | None:
        """Reads a node: a ``NodeData`` with its ``data`` and ``version``, or ``None`` if the node does not exist.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.read("/doc-state") is None
        True

        The answer includes everything that the servers had committed when this was called, and the final outcome of this
        hold's earlier guarded writes. So after ``Uncertain``, read, then decide. It works while the client is open, even
        after the hold was lost or released.

        Raises ``Unreachable`` if the servers do not answer within a session timeout or two seconds, whichever is longer;
        ``Refused`` if the access list does not allow it; ``InvalidInput`` if the path is invalid; ``Closed`` if the client
        is closed.
        """
    def guarded(self) -> Guarded:
        """Starts a list of writes to ZooKeeper that are only done if the lock is still held when the servers commit them.

        >>> with zk.mutex("/locks/doc") as hold:
        ...     hold.guarded().create("/doc-state", b"begun").set_data("/doc-state", b"done").commit()
        ...     hold.read("/doc-state")
        ...     hold.guarded().delete("/doc-state").commit()
        (0, 1)
        NodeData(data=b'done', version=1)
        (None,)

        Nothing is sent, and nothing can raise, before ``Guarded.commit``. If the list is dropped without a commit, there is
        a ``RuntimeWarning``.
        """
    def release(self) -> None:
        """Releases the lock, and waits until the servers have confirmed it.

        Raises ``Deadlock`` if an asyncio event loop runs in this thread and there is something to wait for, in which case
        the release goes on in the background; ``LockLost`` if the hold was lost before; ``NotHeld`` if this hold was already
        released; ``NotOwner`` if the
        lock is reentrant and belongs to another thread, in which case nothing changes; ``Timeout`` if the servers do not
        answer within a session timeout, in which case the release goes on in the background; ``Unreachable`` if the client
        can no longer connect to its session, for example after a change of passwords, in which case the lock is free once
        the servers end the session, a session timeout after they last heard from it; ``Refused`` if the access list does
        not allow deleting its node, in which case the client's session was ended to remove the node, and its other holds
        are lost too.
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
    """The proof that a lock is held, for asyncio. Get one from ``async with`` on a lock, or from ``AsyncLock.hold``.

    >>> async def watch():
    ...     async with zk.mutex("/locks/doc") as hold:
    ...         lost = asyncio.ensure_future(hold.lost)
    ...         await asyncio.wait({lost}, timeout=0.01)
    ...         return lost.done(), lost.cancel(), await hold.confirm() > 0
    >>> asyncio.run(watch())
    (False, True, True)
    """
    async def confirm(self) -> float:
        """Asks the servers whether the lock is still held. See ``Hold.confirm``."""
    async def ensemble_id(self) -> str:
        """The identity of the ensemble. See ``Client.ensemble_id``."""
    async def read(self, path: str) -> NodeData | None:
        """Reads a node. See ``Hold.read``."""
    def guarded(self) -> AsyncGuarded:
        """Starts a list of writes to ZooKeeper that are only done if the lock is still held. See ``Hold.guarded``."""
    def release(self) -> Awaitable[None]:
        """Releases the lock. The release starts at once; await it to wait until the servers have confirmed it. See
        ``Hold.release`` for what it raises.
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
    """The event that a hold is lost. You can check it, wait for it or await it.

    >>> with zk.mutex("/locks/doc") as hold:
    ...     hold.lost.is_set(), bool(hold.lost), hold.lost.wait(timeout=0.01)
    (False, False, False)

    It is true once the hold is lost, so ``while not hold.lost:`` runs until then. In asyncio, ``await hold.lost``
    returns the reason, or ``None`` if the hold is released first. A ``Loss`` does not keep its hold alive.
    """
    def is_set(self) -> bool:
        """Whether the hold is lost. It is false for a hold that was released in time."""
    def __bool__(self) -> bool: ...
    @property
    def reason(self) -> LossReason | None:
        """Why the hold was lost: a ``LossReason``, or ``None`` if it is not lost."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the hold is lost. Returns ``True`` then, and ``False`` if the hold is released first or is not lost
        within ``timeout`` seconds.

        A negative ``timeout`` counts as zero, and ``None`` waits for ever. Raises ``Forked`` if this process was
        forked from the one that holds the lock.
        """
    def __await__(self) -> Generator[Any, Any, LossReason | None]: ...

@final
class Wanted:
    """The event that others wait for what a hold has. You can check it, wait for it or await it.

    >>> with zk.mutex("/locks/doc") as hold:
    ...     hold.wanted.is_set(), bool(hold.wanted), hold.wanted.wait(timeout=0.01)
    (False, False, False)

    It is true once others are known to be waiting, in any process and with any library, so
    ``while not hold.wanted:`` runs until then. It shows the state that was seen last, so it may stay true after the other has
    given up. It is false once the hold is released or lost. In asyncio, ``await hold.wanted`` returns ``True``, or
    ``False`` if the hold ends first. A ``Wanted`` does not keep its hold alive.

    Readers do not wait for readers, so other readers do not make a hold of the read side wanted. An exclusive lock
    has no queue: there, only waiters of this client and requests by ``Lock.request_release`` are seen.
    """
    def is_set(self) -> bool:
        """Whether others are known to be waiting. It does not ask the servers: right after the first use of ``Hold.wanted``,
        their answer has not arrived yet.
        """
    def __bool__(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until others wait for what the hold has. Returns ``True`` then, and ``False`` if the hold ends first or no
        others wait within ``timeout`` seconds.

        A negative ``timeout`` counts as zero, and ``None`` waits for ever. Raises ``Forked`` if this process was
        forked from the one that holds the lock.
        """
    def __await__(self) -> Generator[Any, Any, bool]: ...

@final
class Observer:
    """Reports who holds a lock: an iterator that gives a ``Contender``, or ``None`` while there is no holder. See
    ``Lock.observe``.

    Changes in quick succession may be reported as one. While no server answers, it waits.
    """
    def next(self, timeout: float | None = None) -> Contender | None:
        """The first call returns the current holder of the lock. Each later call waits until the holder changes, and returns
        the new one.

        >>> observer = zk.election("/locks/doc").observe()
        >>> print(observer.next(timeout=5))
        None

        Raises ``Timeout`` if nothing changes within ``timeout`` seconds.
        """
    def __iter__(self) -> Self: ...
    def __next__(self) -> Contender | None: ...

@final
class AsyncObserver:
    """An ``Observer`` for asyncio. Use it with ``async for``. See ``AsyncLock.observe``.

    >>> async def first():
    ...     async for leader in zk.aio.election("/locks/doc").observe():
    ...         return leader
    >>> print(asyncio.run(first()))
    None
    """
    async def next(self) -> Contender | None:
        """The first call returns the current holder of the lock. Each later call waits until the holder changes, and returns
        the new one. To limit the time, use ``asyncio.wait_for``. If a call is cancelled, the next one reports the change
        instead. See ``Observer.next``.
        """
    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Contender | None: ...

@final
class Barrier:
    """A barrier: while its node exists, callers of ``wait`` wait. See ``Client.barrier``."""
    @property
    def path(self) -> str:
        """The path of the barrier's node."""
    @property
    def aio(self) -> AsyncBarrier:
        """This barrier for asyncio."""
    def set(self) -> bool:
        """Sets the barrier, so that callers of ``wait`` wait. ``False`` if it was already set."""
    def remove(self) -> bool:
        """Removes the barrier, so that all waiters go on. ``False`` if it was not set."""
    def is_set(self) -> bool:
        """Whether the barrier is set. Others may set or remove it at the same moment."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the barrier is not set. Returns ``True`` then, at once if it is not set now, or ``False`` if the time is
        over. Raises ``Unreachable`` if there is no connection at that time.
        """

@final
class AsyncBarrier:
    """A ``Barrier`` for asyncio. Get one from ``AsyncClient.barrier`` or from ``Barrier.aio``.

    >>> async def come():
    ...     return await zk.aio.barrier("/barriers/doc").wait(timeout=5)
    >>> asyncio.run(come())
    True
    """
    @property
    def path(self) -> str:
        """The path of the barrier's node."""
    @property
    def aio(self) -> AsyncBarrier:
        """This barrier itself."""
    async def set(self) -> bool:
        """Sets the barrier, so that callers of ``wait`` wait. See ``Barrier.set``."""
    async def remove(self) -> bool:
        """Removes the barrier, so that all waiters go on. See ``Barrier.remove``."""
    async def is_set(self) -> bool:
        """Whether the barrier is set. See ``Barrier.is_set``."""
    async def wait(self, timeout: float | None = None) -> bool:
        """Waits until the barrier is not set. Returns ``True`` then, or ``False`` if the time is over. See ``Barrier.wait``."""

@final
class DoubleBarrier:
    """A double barrier: entering waits until all members have entered, and leaving waits until all have left. See
    ``Client.double_barrier``.
    """
    @property
    def path(self) -> str:
        """The path of the node whose children are the members."""
    @property
    def members(self) -> int:
        """How many members open the barrier."""
    @property
    def aio(self) -> AsyncDoubleBarrier:
        """This double barrier for asyncio."""
    def enter(self, timeout: float | None = ...) -> Member:
        """Enters as a new member, and waits until all members have entered.

        >>> member = zk.double_barrier("/barriers/doc", 1).enter(timeout=5)
        >>> member.leave()

        It waits for up to ``timeout`` seconds; ``None`` waits for ever. By default it waits for the timeout that the
        barrier was made with. Then it raises ``Timeout``, and is no longer a member.
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
    """A member of a double barrier, from entering to leaving. Get one from ``DoubleBarrier.enter`` or from a ``with``
    block on the barrier.

    It is itself a context manager, which leaves at the end of the block. A member that is dropped leaves in the
    background.
    """
    @property
    def path(self) -> str:
        """The path of the barrier."""
    @property
    def node(self) -> str:
        """The path of this member's node."""
    @property
    def loss(self) -> LossReason | None:
        """Why the member is lost: a ``LossReason``, or ``None`` if it is not lost. A member is lost when its session ends,
        because the servers then delete its node. The others consider it to have left.
        """
    def leave(self, timeout: float | None = ...) -> None:
        """Leaves, and waits until all members that are inside now have left.

        It waits for up to ``timeout`` seconds; ``None`` waits for ever, and zero does not wait for the others. By default
        it waits for the timeout that the barrier was made with. Then it raises ``Timeout``. Raises ``LockLost`` if the
        member's session ended before it left, so that the others may have gone on without it, and ``NotHeld`` if it has
        already left. In any case the member has left, or is leaving in the background.
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
    """A ``DoubleBarrier`` for asyncio. Get one from ``AsyncClient.double_barrier`` or from ``DoubleBarrier.aio``.

    >>> async def take_part():
    ...     async with zk.aio.double_barrier("/barriers/doc-too", 1, timeout=5) as member:
    ...         return member.loss
    >>> print(asyncio.run(take_part()))
    None
    """
    @property
    def path(self) -> str:
        """The path of the node whose children are the members."""
    @property
    def members(self) -> int:
        """How many members open the barrier."""
    @property
    def aio(self) -> AsyncDoubleBarrier:
        """This double barrier itself."""
    async def enter(self, timeout: float | None = ...) -> AsyncMember:
        """Enters as a new member, and waits until all members have entered. If it is cancelled, it is no longer a member. See
        ``DoubleBarrier.enter``.
        """
    async def __aenter__(self) -> AsyncMember: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class AsyncMember:
    """A ``Member`` for asyncio. Get one from ``AsyncDoubleBarrier.enter`` or from ``async with`` on the barrier."""
    @property
    def path(self) -> str:
        """The path of the barrier."""
    @property
    def node(self) -> str:
        """The path of this member's node."""
    @property
    def loss(self) -> LossReason | None:
        """Why the member is lost, or ``None`` if it is not lost. See ``Member.loss``."""
    def leave(self, timeout: float | None = ...) -> Awaitable[None]:
        """Starts to leave at once; await it to wait until all members have left. See ``Member.leave``."""
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

@final
class Once:
    """A job that runs on one host in each period. Get one from ``Client.once``.

    >>> with zk.once("/jobs/doc", every="1d", timeout=5) as run:
    ...     if run:
    ...         print("with token", run.hold.token > 0)
    with token True
    >>> with zk.once("/jobs/doc", every="1d") as run:
    ...     bool(run), run.record.outcome
    (False, 'done')

    While another host runs the job, the block waits before it begins. The block's value, a ``Run``, is false if nothing is left
    to do in this period. If the block raises, the job has failed, with that exception as the reason, and the exception goes on.
    If the hold is lost meanwhile, the end of the block raises ``LockLost``, and the run counts as failed. An ``async with`` block
    is cancelled at once, as that of an ``AsyncLock`` is.

    It is also a decorator, for a function or a coroutine function: each call runs in a block of its own. If nothing is left to do, the
    function is not called, and the call returns ``None``.

    >>> @zk.once("/jobs/doc", every="1d")
    ... def report():
    ...     return "written"
    >>> print(report())
    None
    """
    @property
    def path(self) -> str:
        """The path of the job, which is that of its mutex."""
    @property
    def aio(self) -> AsyncOnce:
        """This job for asyncio."""
    def last(self) -> Record | None:
        """The ``Record`` of the last run, or ``None`` if the job has never run. It neither waits for a run nor disturbs it. Raises
        ``Refused`` if the record cannot be read.
        """
    def __enter__(self) -> Run: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
    async def __aenter__(self) -> AsyncRun: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
    @overload
    def __call__(
        self, function: Callable[_Parameters, Coroutine[Any, Any, _Result]], /
    ) -> Callable[_Parameters, Coroutine[Any, Any, _Result | None]]: ...
    @overload
    def __call__(self, function: Callable[_Parameters, _Result], /) -> Callable[_Parameters, _Result | None]: ...

@final
class AsyncOnce:
    """A ``Once`` for asyncio. Get one from ``AsyncClient.once`` or from ``Once.aio``.

    >>> async def report():
    ...     async with zk.aio.once("/jobs/doc-too", every=3600, timeout=5) as run:
    ...         return bool(run)
    >>> asyncio.run(report())
    True
    """
    @property
    def path(self) -> str:
        """The path of the job, which is that of its mutex."""
    @property
    def aio(self) -> AsyncOnce:
        """This job itself."""
    async def last(self) -> Record | None:
        """The ``Record`` of the last run, or ``None`` if the job has never run. See ``Once.last``."""
    async def __aenter__(self) -> AsyncRun: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
    def __call__(
        self, function: Callable[_Parameters, Coroutine[Any, Any, _Result]], /
    ) -> Callable[_Parameters, Coroutine[Any, Any, _Result | None]]: ...

@disjoint_base
class BaseGuarded:
    """The methods that a ``Guarded`` and an ``AsyncGuarded`` share: they add writes to the list."""
    def create(self, path: str, data: bytes | bytearray = b"") -> Self:
        """Adds a write that creates a persistent node. Its parent must exist.

        Raises ``TypeError`` if ``data`` is not bytes.
        """
    def set_data(self, path: str, data: bytes | bytearray, version: int | None = None) -> Self:
        """Adds a write that sets the data of a node, which must have this version. ``None`` means any version.

        Raises ``TypeError`` if ``data`` is not bytes, and ``InvalidInput`` if no node can have this ``version``.
        """
    def delete(self, path: str, version: int | None = None) -> Self:
        """Adds a write that deletes a node, which must have this version. ``None`` means any version.

        Raises ``InvalidInput`` if no node can have this ``version``.
        """

@final
class Guarded(BaseGuarded):
    """A list of writes to ZooKeeper that are done together, and only if the lock is held. See ``Hold.guarded``."""
    def commit(self) -> tuple[int | None, ...]:
        """Does all of the writes or none. Returns the version of each node after its write: 0 if the node was created,
        ``None`` if it was deleted.

        Raises ``LockLost`` if the lock was no longer held, and ``Conflict`` if a node did not allow its write because it
        had another version, already existed, or did not exist. The ``index`` and ``path`` of the ``Conflict`` say which
        write it was. In both cases nothing was written. Raises ``Uncertain`` if the reply was lost: either all or none of
        the writes were done, and ``Hold.read`` shows which. Raises ``NotHeld`` if the hold was released, and
        ``InvalidInput`` for an invalid path, for more than 512 KiB in total, or on servers of version
        3.4 for a hold of an exclusive lock.
        """

@final
class AsyncGuarded(BaseGuarded):
    """A ``Guarded`` for asyncio. See ``AsyncHold.guarded``."""
    async def commit(self) -> tuple[int | None, ...]:
        """Does all of the writes or none. If it is cancelled, the writes may have been done or not. See ``Guarded.commit``."""

@final
class Digest:
    """A login with ZooKeeper's scheme ``digest``: a user and a password.

    ``zklock.Client(hosts, auth=zklock.Digest("billing", password), access="creator-all")``

    The servers keep no list of users, so a wrong password is not an error. With it, the client is another user, which
    no access list names. The password crosses the network in plain text, so use TLS if others could listen. It never
    appears in the log, in ``repr`` or in an exception.
    """
    def __new__(cls, user: str, password: str) -> Self: ...
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Digest:
        """The users and passwords in a file, one ``user:password`` per line. The client logs in as all of them.

        The file is read now, and again for each connection, so that passwords can be changed while the client runs. If it
        cannot be read at that time, the client makes no new connection.
        """
    @staticmethod
    def from_env(variable: str) -> Digest:
        """The ``user:password`` in an environment variable, which is read now."""

@final
class PassPhrase:
    """The pass phrase of an encrypted key.

    ``zklock.Tls("ca.pem", "client.pem", "client.key", pass_phrase=zklock.PassPhrase.from_file("/run/secrets/key"))``

    Keys are read in the format that ``openssl genpkey -aes256`` writes. The pass phrase never appears in the log, in
    ``repr`` or in an exception.
    """
    def __new__(cls, text: str) -> Self: ...
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> PassPhrase:
        """The first line of a file. The file is read now, and again for each connection."""
    @staticmethod
    def from_env(variable: str) -> PassPhrase:
        """The value of an environment variable, which is read now."""

@final
class Kerberos:
    """A login with the Kerberos ticket of this process.

    ``zklock.Client("zk1.example.com:2181", auth=zklock.Kerberos(), access="creator-all")``

    In access lists the user is the client's principal, such as ``sasl:billing@EXAMPLE.COM``. The ticket comes from the
    credential cache (``KRB5CCNAME``), or from a keytab (``KRB5_CLIENT_KTNAME``), which is also used to renew it. It is
    looked up again for each connection. If there is no ticket, connecting raises ``Refused``, or ``Unreachable`` if no
    KDC answers. The message includes Kerberos' own explanation.

    ``service`` is the first part of the servers' principal. ``host`` is the second part; ``None`` means the host that
    the client connects to. A client can log in as only one user by SASL or Kerberos, and as others by ``Digest`` at
    the same time.

    If this module was built without Kerberos, this raises ``Refused``.
    """
    def __new__(cls, service: str = "zookeeper", host: str | None = None) -> Self: ...

@final
class Sasl:
    """A login by SASL, with the mechanism DIGEST-MD5: a user and a password.

    ``zklock.Client(hosts, auth=zklock.Sasl("billing", password), access="creator-all")``

    In access lists the user is ``sasl:billing``. The servers list their users in the section ``Server`` of their JAAS
    file. Connecting raises ``Refused`` if the password is wrong, if the servers do not know the user, or if they are
    not set up for SASL. A password that is changed on the servers takes effect with the next connection. If they refuse
    the old one, the client cannot reconnect, and loses its session and its holds. A client can log in as only one user
    by SASL, and as others by ``Digest`` at the same time.

    The password never appears in the log, in ``repr`` or in an exception, and does not cross the network. But a
    listener can use what crosses the network to test guesses of the password, so use TLS.
    """
    def __new__(cls, user: str, password: str) -> Self: ...
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Sasl:
        """The user and the password in a file: a single line ``user:password``.

        The file is read now, and again for each connection, so that the password can be changed while the client runs. If
        it cannot be read at that time, the client makes no new connection.
        """
    @staticmethod
    def from_env(variable: str) -> Sasl:
        """The ``user:password`` in an environment variable, which is read now."""

@final
class Tls:
    """How to connect with TLS. The arguments are PEM files: the authorities of the servers' certificates and, if the
    servers ask for one, a client certificate and its key.

    ``zklock.Client("zk1:2281", tls=zklock.Tls("ca.pem", "client.pem", "client.key"))``

    The files are read now, and an error says what is wrong with which file. They are read again for each connection, so
    that renewed certificates take effect without a restart. If a file cannot be used at that time, the client makes no
    new connection: it does not fall back to what it read earlier. An existing connection stays.

    ``pass_phrase`` is that of an encrypted key, as text or as a ``PassPhrase``. The servers' certificates must be valid
    for the names given as hosts. None of these checks can be switched off.
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
        """Trusts the authorities that this system trusts. They come from the file that the environment variable
        ``SSL_CERT_FILE`` names, otherwise from the file of the system's distribution.

        If the servers' certificates come from your own authority, use ``Tls`` and give that authority alone.
        """

@final
class Server:
    """A ZooKeeper server in this process, for tests. It keeps everything in memory, and forgets it when it is closed.

    >>> with zklock.testing.Server() as server, zklock.Client(server.hosts) as zk:
    ...     with zk.mutex("/locks/doc"):
    ...         len(server.children("/locks/doc"))
    1

    It serves as soon as it is made, on a port of its own on 127.0.0.1. Any ZooKeeper client in any process can use it.
    It is a single server, and does not replace an ensemble. It offers no encryption, and every client that can reach it
    may do everything. ``listen`` is the address at which it listens, ``host:port``; port 0 takes any free port.

    Times are in seconds. ``tick`` is ZooKeeper's unit of time: a session lasts 2 to 20 ticks, and ends on a whole tick.
    ``session_timeouts`` replaces these bounds by the shortest and the longest session that is granted. With
    ``manual_clock`` time stands still until ``advance`` moves it: no session ends by itself, however long you look at
    it in a debugger.

    ``words`` lists the four-letter words that are answered, such as ``"srvr, ruok"``. See ``4lw.commands.whitelist`` of
    ZooKeeper. By default it answers all that it knows. (A real server answers only ``srvr`` by default.)

    ``like`` says which server it imitates: ``"3.8"``; ``"3.4"``, ZooKeeper 3.4.14, which has no container nodes; or
    ``"keeper-25"``, ClickHouse Keeper 25, which hangs up on requests that it does not know and never takes a session
    back.

    Raises ``InvalidInput`` if an argument is wrong, and ``Refused`` if the system does not allow it to listen
    there.

    Threads may share a server. A process that is forked from this one can use only its ``hosts``: everything else
    raises ``Forked`` there. After ``close`` everything else raises ``Closed``.
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
        delayed replies are sent. Sessions that are connected stay, because their clients would have sent something
        meanwhile.

        The clocks of clients do not move. So a frozen holder still believes in its lease when the next one already has
        the lock. Use this to test fencing tokens. Raises ``InvalidInput`` if ``seconds`` is negative.
        """
    def set_date(self, since_1970: float, /) -> None:
        """Sets the date that the server gives to what is written from now on, in seconds since 1970. It runs on from there,
        and sessions do not notice. It may go back, as it does when another server becomes the leader whose clock is slow.

        So a test of a job need not wait for the next period:

        >>> import time
        >>> server.set_date(time.time() + 86400)

        Raises ``InvalidInput`` if ``since_1970`` is negative.
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
        """The server that the program's arguments ask for; `None` if they ask for help."""
    _usage: Final[str]
    def _obey(self, order: str, /) -> tuple[str, bool]:
        """Carries out an order to the program. Returns its answer, and whether the order was to quit."""
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

def fence_sql(dialect: str) -> tuple[str, str, str] | None: ...
def prometheus_text(clients: Mapping[str, Client | AsyncClient]) -> str: ...
