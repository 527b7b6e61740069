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
import stat
import sys
import typing

from ._errors import Error
from ._values import Session
from ._zklock import Injected, Server

__all__ = ["Injected", "Server", "Session"]


def _main(arguments: list[str]) -> int:
    server = Server._of_arguments(arguments)
    if server is None:
        print(Server._usage, end="")
        return 0
    print(server.hosts, flush=True)
    # Standard input may be closed.
    for order in sys.stdin.buffer if sys.stdin else ():
        answer, quits = server._obey(order.decode(errors="replace"))
        print(answer, end="", flush=True)
        if quits:
            return 0
    # A pipe ends when the test at its other end does. A terminal or /dev/null says nothing about a test.
    while not (sys.stdin and _is_pipe(sys.stdin)):
        signal.pause()
    return 0


def _is_pipe(file: typing.IO[str]) -> bool:
    mode = os.fstat(file.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _run() -> int:
    try:
        return _main(sys.argv[1:])
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Nobody reads the answers any longer, and the interpreter must not complain about that when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Error as error:
        print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(_run())
