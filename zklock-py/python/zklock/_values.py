"""What the native module hands out that needs no native code."""

from __future__ import annotations

import enum
import typing


class HoldState(enum.Enum):
    """The state of a hold."""

    HELD = "held"
    """The lock is held, and the ensemble has confirmed it recently."""
    AT_RISK = "at risk"
    """The ensemble is out of reach or late. The lock is held for as long as ``valid_for()`` says."""
    LOST = "lost"
    """The lock is not held any more. This is final."""
    RELEASED = "released"
    """The hold was released."""


class LossReason(enum.Enum):
    """Why a hold was lost."""

    SESSION_EXPIRED = "its session expired"
    NODE_DELETED = "its node was deleted"
    LEASE_LAPSED = "its lease lapsed before the ensemble was heard from again"
    CLIENT_CLOSED = "its client was closed"
    SESSION_CLOSED = "its session was closed, to be rid of a node that the client may not delete"
    FOREIGN_CONTENDER = "a contender came that cannot see it, and may hold as well"
    FORKED = "it belongs to the process from which this one was forked"


class ConnectionState(enum.Enum):
    """How a client is connected. See ``Client.on_connection``."""

    CONNECTED = "connected"
    """A server is connected."""
    DISCONNECTED = "disconnected"
    """The connection broke, and the client is looking for another server. The session lives on for now, and so do its holds, for
    as long as their ``valid_for()`` says."""
    SESSION_LOST = "session lost"
    """The session is over, and all holds of it are lost. The client is opening the next session."""
    CLOSED = "closed"
    """The client was closed. This is final."""


class Histogram(typing.NamedTuple):
    """How often something was how large: times in seconds, or numbers of contenders. See ``Stats``."""

    counted: int
    """How many were counted."""
    sum: float
    """All of them added up."""
    buckets: tuple[tuple[float, int], ...]
    """The largest value of each bucket, and how many were not larger than that. The last is infinite."""


class Stats(typing.NamedTuple):
    """What a client has done so far, and what it still owes. See ``Client.stats``."""

    sessions: int
    """Sessions opened."""
    grants: int
    """Locks granted."""
    losses: int
    """Holds lost."""
    owed: int
    """Attempts whose caller has its answer, but whose node may still be there. It is being deleted."""
    reconnects: int
    """Connections attached to a session after the one before had broken."""
    acquires: dict[str, int]
    """Calls that acquire a lock, by how they ended: ``granted``, ``busy``, ``timed_out``, ``failed``, ``cancelled``."""
    losses_by: dict[str, int]
    """Holds lost, by the reason: ``session_expired`` and the other names of ``LossReason``, in small letters."""
    acquire_wait: Histogram
    """Seconds from a call that acquires a lock to its hold; of those calls alone that were given one."""
    hold_time: Histogram
    """Seconds from a grant to its release or loss. It is counted when the hold is released, also one that was lost."""
    heartbeat_lag: Histogram
    """Seconds from a heartbeat to its answer. There are heartbeats only while something is held."""
    queue_length: Histogram
    """How many contenders were ahead of a node in its queue when it had just been created."""


class NodeData(typing.NamedTuple):
    """What is in a node. See ``Hold.read``."""

    data: bytes
    """Its data."""
    version: int
    """How often its data has been set. A write that must not undo another's names the version it has read."""


class Contender(typing.NamedTuple):
    """One in the queue of a lock. See ``Lock.contenders``."""

    name: str
    """The name of its node, a child of the lock's node."""
    identity: str
    """What it calls itself: zklock writes ``host/pid``, or what the client's options say."""
    session: int
    """The session that owns it."""
    token: int
    """Its fencing token, when it comes to hold the lock. One that holds a permit of a semaphore has a smaller one: this
    is the number of its permit."""
    since: float
    """Since when it is there: seconds since the epoch, on the servers' clock."""
    dialect: str
    """The naming scheme of its library: curator, kazoo or writelock."""
    node: str
    """The path of its node, for ``Lock.evict``."""
    role: str
    """What it wants: exclusive, read or write."""
    holds: bool
    """Whether it holds the lock, as far as its place tells. A set of locks holds none of them before it is its turn in all
    of their queues, even if it is the first in this one.
    """


class Session(typing.NamedTuple):
    """A session that is open on an embedded server. See ``Server.sessions``."""

    id: int
    """Its number, which is the ``session_id`` of its client."""
    timeout: float
    """How many seconds it lives on after its client was last heard from."""
    is_connected: bool
    """Whether it has a connection now."""
    nodes: tuple[str, ...]
    """The paths of its ephemeral nodes, which end with it."""
