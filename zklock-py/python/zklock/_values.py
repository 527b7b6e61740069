"""Values that the native module returns, and that need no native code."""

from __future__ import annotations

import enum
import typing

if typing.TYPE_CHECKING:
    from ._zklock import AsyncHold, Hold


class HoldState(enum.Enum):
    """The state of a hold."""

    HELD = "held"
    """The lock is held, and the servers have confirmed it recently."""
    AT_RISK = "at risk"
    """The servers are out of reach or slow to answer. The lock is held for as long as ``valid_for()`` says."""
    LOST = "lost"
    """The lock is no longer held. This is final."""
    RELEASED = "released"
    """The hold was released."""


class LossReason(enum.Enum):
    """Why a hold was lost."""

    SESSION_EXPIRED = "its session expired"
    NODE_DELETED = "its node was deleted"
    LEASE_LAPSED = "its lease lapsed before the ensemble answered again"
    CLIENT_CLOSED = "its client was closed"
    SESSION_CLOSED = "its session was closed to remove a node that the client may not delete"
    FOREIGN_CONTENDER = "a contender that cannot see it came, and may hold the lock too"
    FORKED = "it belongs to the process from which this one was forked"


class ConnectionState(enum.Enum):
    """The state of a client's connection. See ``Client.on_connection``."""

    CONNECTED = "connected"
    """The client is connected to a server."""
    DISCONNECTED = "disconnected"
    """The connection broke, and the client is looking for another server. The session and its holds live on for now: their
    ``valid_for()`` says for how long."""
    SESSION_LOST = "session lost"
    """The session is over, and all of its holds are lost. The client is opening a new session."""
    CLOSED = "closed"
    """The client was closed. This is final."""


class Histogram(typing.NamedTuple):
    """The distribution of times in seconds, or of numbers of contenders. See ``Stats``."""

    counted: int
    """How many values were counted."""
    sum: float
    """The sum of all values."""
    buckets: tuple[tuple[float, int], ...]
    """For each bucket, its upper bound, and how many values are not larger than that. The last bound is infinite."""


class LockStats(typing.NamedTuple):
    """The figures of the locks in a client that were made with one name as ``metrics_name``. See ``Stats``."""

    held: int
    """Grants that are held now. A reentrant owner has one, however often it acquires, and a lost hold is not held."""
    waiting: int
    """Calls that wait for the lock now."""
    oldest_hold: typing.Optional[float]
    """The age in seconds of the oldest grant that is held now. ``None`` if nothing is held."""
    acquires: dict[str, int]
    """Calls to acquire these locks, by outcome, as in ``Stats``."""
    losses_by: dict[str, int]
    """Holds lost, by reason, as in ``Stats``."""
    acquire_wait: Histogram
    """Seconds from a call to acquire such a lock until it had a hold."""
    hold_time: Histogram
    """Seconds from a grant to its release or loss, counted when the hold is released."""


class Stats(typing.NamedTuple):
    """The counters of a client: its work so far, and the nodes that it still has to clean up. See ``Client.stats``."""

    sessions: int
    """Sessions opened."""
    grants: int
    """Locks granted."""
    losses: int
    """Holds lost."""
    owed: int
    """Attempts whose caller already has an answer, but whose node may still exist. The client is deleting these nodes."""
    reconnects: int
    """How often a session got a new connection because the previous one broke."""
    acquires: dict[str, int]
    """Calls to acquire a lock, by outcome: ``granted``, ``busy``, ``timed_out``, ``failed``, ``cancelled``."""
    losses_by: dict[str, int]
    """Holds lost, by reason: the names of ``LossReason`` in lower case, such as ``session_expired``."""
    acquire_wait: Histogram
    """Seconds from a call to acquire a lock until it had a hold. Calls that got no hold are not counted."""
    hold_time: Histogram
    """Seconds from a grant to its release or loss. A hold is counted when it is released, even if it was lost."""
    heartbeat_lag: Histogram
    """Seconds from a heartbeat to its answer. There are heartbeats only while something is held."""
    queue_length: Histogram
    """How many contenders were ahead of a node in its queue just after it was created."""
    locks: dict[str, LockStats]
    """The figures of locks that were made with ``metrics_name``, by that name."""


class NodeData(typing.NamedTuple):
    """The contents of a node. See ``Hold.read``."""

    data: bytes
    """The data of the node."""
    version: int
    """How often the data has been set. Pass it to a write that must not overwrite another client's change."""


class Record(typing.NamedTuple):
    """The record of the last run of a job. All times are seconds since the epoch, on the servers' clocks. See ``Job.last``."""

    period: int
    """The number of the period in which it ran, counted from 1970."""
    began: float
    """When it began."""
    ended: typing.Optional[float]
    """When it ended. ``None`` while it is recorded as running."""
    next: float
    """When the next period begins, in which the job is due again."""
    identity: str
    """The ``identity`` of the client that ran it."""
    token: int
    """The fencing token of the hold under which it ran."""
    outcome: str
    """``"done"``, ``"failed"`` or ``"running"``. A run whose host died, or lost the lock, stays recorded as running."""
    failure: typing.Optional[str]
    """Why it failed, if it did."""


class Run(typing.NamedTuple):
    """The value of a ``with`` block on a ``Job``. It is true if the job runs here now."""

    hold: typing.Optional[Hold]
    """The ``Hold`` of the job's mutex. ``None`` if nothing is left to do."""
    record: typing.Optional[Record]
    """The ``Record`` of the run that has done it. ``None`` if the job runs here."""

    def __bool__(self) -> bool:
        return self.hold is not None


class AsyncRun(typing.NamedTuple):
    """The value of an ``async with`` block on a ``Job`` or an ``AsyncJob``. It is true if the job runs here now."""

    hold: typing.Optional[AsyncHold]
    """The ``AsyncHold`` of the job's mutex. ``None`` if nothing is left to do."""
    record: typing.Optional[Record]
    """The ``Record`` of the run that has done it. ``None`` if the job runs here."""

    def __bool__(self) -> bool:
        return self.hold is not None


class Contender(typing.NamedTuple):
    """A contender in the queue of a lock. See ``Lock.contenders``."""

    name: str
    """The name of its node, a child of the lock's node."""
    identity: str
    """The name that it gives itself: zklock writes ``host/pid``, or the ``identity`` of the client."""
    session: int
    """The session that owns its node."""
    token: int
    """The fencing token that it has, or will have once it holds the lock. For the holder of a semaphore's permit, this is the
    number of its permit, and its token may be smaller."""
    since: float
    """When its node was created: seconds since the epoch, on the servers' clock."""
    naming: str
    """The naming scheme of its library: curator, kazoo or writelock."""
    node: str
    """The path of its node, for ``Lock.evict``."""
    role: str
    """What it wants: exclusive, read or write."""
    holds: bool
    """Whether it holds the lock, judging by its place in the queue. A set of locks holds none of its locks until its turn has
    come in all of their queues, even if it is first in this one.
    """


class Session(typing.NamedTuple):
    """An open session on an embedded server. See ``Server.sessions``."""

    id: int
    """Its number, which is the ``session_id`` of its client."""
    timeout: float
    """How many seconds it lives after the server last heard from its client."""
    is_connected: bool
    """Whether it has a connection now."""
    nodes: tuple[str, ...]
    """The paths of its ephemeral nodes, which are deleted when it ends."""
