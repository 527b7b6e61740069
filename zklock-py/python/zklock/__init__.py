"""Distributed locks on Apache ZooKeeper that tell you when you no longer hold them.

>>> import zklock
>>> with zklock.Client(hosts) as zk:
...     with zk.mutex("/locks/report", timeout=5) as hold:
...         hold.valid_for() > 0
True

A ``Client`` is one connection to an ensemble. It gives a ``Lock``, which can be acquired; the proof that it is held is a
``Hold``. All of it may be shared by threads. Entered with ``async with``, the same objects serve asyncio, and ``aio`` gives
the asynchronous face of one.

Where gevent or eventlet has patched Python, a wait lets the other greenlets run, and each greenlet is an owner of its own.
Callbacks of holds and of clients, and handlers of log lines, are called in greenlets of the main thread then.
"""

import logging

from ._errors import (
    Closed,
    Conflict,
    Deadlock,
    Error,
    ForeignContender,
    ForkedError,
    InvalidInput,
    LockLost,
    NotHeld,
    NotOwner,
    Refused,
    Timeout,
    Uncertain,
    Unreachable,
)
from ._values import ConnectionState, Contender, Histogram, HoldState, LossReason, NodeData, Stats
from ._zklock import (
    AsyncBarrier,
    AsyncClient,
    AsyncDoubleBarrier,
    AsyncGuarded,
    AsyncHold,
    AsyncLock,
    AsyncMember,
    AsyncObserver,
    Barrier,
    BaseGuarded,
    BaseHold,
    Client,
    Digest,
    DoubleBarrier,
    Guarded,
    Hold,
    Kerberos,
    Lock,
    Loss,
    Member,
    Observer,
    PassPhrase,
    Sasl,
    Tls,
    Wanted,
    __version__,
)

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
    "Closed",
    "Conflict",
    "ConnectionState",
    "Contender",
    "Deadlock",
    "Digest",
    "DoubleBarrier",
    "Error",
    "ForeignContender",
    "ForkedError",
    "Guarded",
    "Histogram",
    "Hold",
    "HoldState",
    "InvalidInput",
    "Kerberos",
    "Lock",
    "LockLost",
    "Loss",
    "LossReason",
    "Member",
    "NodeData",
    "NotHeld",
    "NotOwner",
    "Observer",
    "PassPhrase",
    "Refused",
    "Sasl",
    "Stats",
    "Timeout",
    "Tls",
    "Uncertain",
    "Unreachable",
    "Wanted",
    "__version__",
]

# Where nobody has set up logging, nothing is printed.
logging.getLogger("zklock").addHandler(logging.NullHandler())
