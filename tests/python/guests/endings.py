"""Helpers for programs of tests, above all for their ends."""

from __future__ import annotations

from guests.programs import STRICT, Ended, Start

# What most programs begin with. Those that take more arguments find them in `more`.
BEGIN = """
import asyncio, atexit, logging, os, signal, sys, threading, time
hosts, path, *more = sys.argv[1:]
import zklock

logging.getLogger("zklock").addHandler(logging.NullHandler())
zk = zklock.Client(hosts, session_timeout=4, connect_timeout=60)
lock = zk.mutex(path)


def say(*words):
    print(*words, flush=True)


def until(is_so):
    end = time.monotonic() + 50
    while not is_so():
        assert time.monotonic() < end, "never"
        time.sleep(0.005)
"""

# Makes the interpreter end slowly: a thread that comes back into it meanwhile finds it closed.
SLOWLY = """
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep({seconds})

slow = Slow()
"""

WELL = (0, "", "")


def ends(start: Start, rest: str, hosts: str, path: str, options: tuple[str, ...] = STRICT) -> Ended:
    return start(BEGIN + rest, hosts, path, options=options).finish(within=55)
