"""Distributed locks on Apache ZooKeeper that tell you when you no longer hold them.

>>> import zklock
>>> with zklock.Client(hosts) as zk:
...     with zk.mutex("/locks/report", timeout=5) as hold:
...         hold.valid_for() > 0
True

A ``Client`` is a connection to an ensemble. It makes a ``Lock``, which you can acquire. While you hold the lock, you have a
``Hold``, the proof that it is held. Most programs need no more than these:

* ``Client``: ``mutex``, ``semaphore``, ``election``, ``job``, ``close``;
* ``Lock``: ``acquire``, ``try_acquire``, ``release``, ``contenders``, and above all ``with``;
* ``Hold``: ``token``, ``valid_for``, ``ensure``, ``lost``;
* the exceptions, whose base is ``Error``.

Everything else is for further needs. Threads can share all of these objects. For asyncio, enter the same objects with
``async with``, or get the asyncio version of an object from its ``aio``. In a thread whose event loop is running, blocking
calls raise ``Deadlock``, because they would stop the loop. Even so, ``release``, ``close``, ``leave`` and the end of a block
do their work in the background.

If gevent or eventlet has patched Python, a wait lets other greenlets run, and a lock belongs to the greenlet that acquired it.
Callbacks of holds and clients, and log handlers, are then called in greenlets of the main thread.
"""

import logging

# The native module imports it, which PyInstaller and Nuitka cannot see.
from . import _dispatch as _dispatch
from ._errors import (
    AtRisk, Closed, Conflict, Deadlock, Error, ForeignContender, Forked, InvalidInput, LockLost, NotHeld, NotOwner, OtherEnsemble,
    Refused, StaleToken, Timeout, Uncertain, Unreachable,
)
from ._values import (
    AsyncRun, ConnectionState, Contender, Histogram, HoldState, LockStats, LossReason, NodeData, Record, Run, Stats,
)
from ._zklock import (
    AsyncBarrier, AsyncClient, AsyncDoubleBarrier, AsyncGuarded, AsyncHold, AsyncJob, AsyncLock, AsyncMember, AsyncObserver,
    Barrier, BaseGuarded, BaseHold, Client, Digest, DoubleBarrier, Guarded, Hold, Job, Kerberos, Lock, Loss, Member, Observer,
    PassPhrase, Sasl, Tls, Wanted, prometheus_text, __version__,
)

__all__ = [
    "Client", "Lock", "Hold", "Loss", "LossReason", "Job", "Run", "Contender",
    "Error", "AtRisk", "Closed", "Conflict", "Deadlock", "ForeignContender", "Forked", "InvalidInput", "LockLost", "NotHeld",
    "NotOwner", "OtherEnsemble", "Refused", "StaleToken", "Timeout", "Uncertain", "Unreachable",
    # Further.
    "AsyncBarrier", "AsyncClient", "AsyncDoubleBarrier", "AsyncGuarded", "AsyncHold", "AsyncJob", "AsyncLock", "AsyncMember",
    "AsyncObserver", "AsyncRun", "Barrier", "BaseGuarded", "BaseHold", "ConnectionState", "Digest", "DoubleBarrier", "Guarded",
    "Histogram", "HoldState", "Kerberos", "LockStats", "Member", "NodeData", "Observer", "PassPhrase", "Record", "Sasl", "Stats",
    "Tls", "Wanted", "prometheus_text", "__version__",
]


def _loaded_when_used() -> None:
    """The native module imports these when they are first used, which PyInstaller and Nuitka cannot see either."""
    from . import _cancelling as _cancelling
    from . import _wrapping as _wrapping


# If the program has not set up logging, nothing is printed.
logging.getLogger("zklock").addHandler(logging.NullHandler())
