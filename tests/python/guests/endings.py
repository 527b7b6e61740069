"""Helpers for tests of the end of a program."""

from __future__ import annotations

from guests.programs import Ended, Start

BEGIN = """
import asyncio, atexit, logging, os, signal, sys, threading, time
hosts, path = sys.argv[1:]
import zklock

logging.getLogger("zklock").addHandler(logging.NullHandler())
zk = zklock.Client(hosts, session_timeout=4, connect_timeout=60)
"""

# Makes the interpreter end slowly: a thread that comes back into it meanwhile finds it closed.
SLOWLY = """
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep({seconds})

slow = Slow()
"""

WELL = (0, "", "")


def ends(start: Start, rest: str, hosts: str, path: str, within: float = 20) -> Ended:
    return start(BEGIN + rest, hosts, path).finish(within)
