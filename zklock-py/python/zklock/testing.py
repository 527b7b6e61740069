"""An in-process ZooKeeper server for tests. It needs no installation, starts in milliseconds, and fails on demand.

>>> import zklock, zklock.testing
>>> with zklock.testing.Server() as server, zklock.Client(server.hosts) as zk:
...     hold = zk.mutex("/locks/doc", timeout=5).hold()
...     server.expire(zk.session_id)
...     hold.lost.wait(timeout=5)
...     print(hold.lost.reason.value)
True
True
its session expired

It speaks ZooKeeper's protocol, so any client can use it, including kazoo's. It is a single server, not an ensemble, and keeps
nothing on disk. For pytest there are fixtures: see ``zklock.pytest_plugin``. For tests in other languages,
``python -m zklock.testing`` runs it as a separate program; ``--help`` lists its options and orders.
"""

from __future__ import annotations

import os
import signal
import sys

from ._values import Session
from ._zklock import Injected, Server, testing_program

__all__ = ["Injected", "Server", "Session"]


def _main() -> int:
    # The program waits in native code, where Python notices no Ctrl-C. In the background, a shell has it ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # No socket of the server may take the place of a stream that is closed.
    while os.open(os.devnull, os.O_RDWR) <= 2:
        pass
    return testing_program(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(_main())
