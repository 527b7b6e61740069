"""Ctrl-C ends a wait of the main thread at once, and nothing is left behind.

All blocking calls wait in the same way, as aio/test_blocking_calls.py shows. Those here differ in what they leave, or in when they
begin.
"""

from __future__ import annotations

import contextlib
import signal
import statistics
import typing

import pytest
from ground import Ground
from guests.programs import BEGIN, SOON, Start
from punctual import not_later
from scenes import eventually

import zklock

ROUNDS = 5

# Waits again and again, and prints when it was interrupted.
WAITS = (
    BEGIN
    + """
case, rounds = more
if case != "connect":
    zk.connect()


def block(manager):
    with manager:
        pass


def make_one():
    global zk
    zk = zklock.Client(hosts, session_timeout=4, connect_timeout=60)


def make_one_that_holds():
    make_one()
    zk.mutex(path).acquire()


def nothing():
    pass


# A wait, or the code before it, the wait, and the code after it.
found = {
    "acquire": lambda: lock.acquire(),
    "with": lambda: block(lock),
    "lost.wait": (lock.acquire, lambda: lock.current.lost.wait(), lock.release),
    "double barrier": lambda: block(zk.double_barrier(path + "-meeting", 2)),
    "leave": lambda: zk.double_barrier(path + "-meeting", 1).enter().leave(timeout=60),
    "connect": (make_one, lambda: zk.connect(), nothing),
    "observe": lambda: next(zk.election(path).observe()),
    "release": (lock.acquire, lambda: lock.release(), nothing),
    "end of with": (lock.__enter__, lambda: lock.__exit__(None, None, None), nothing),
    "close": (make_one_that_holds, lambda: zk.close(), nothing),
}[case]
before, wait, after = found if isinstance(found, tuple) else (nothing, found, nothing)
for _ in range(int(rounds)):
    before()
    say("ready")
    sys.stdin.readline()
    try:
        say("waiting")
        wait()
        say("it was no wait")
    except KeyboardInterrupt:
        say(time.monotonic())
    sys.stdin.readline()
    after()
until(lambda: not zk.stats().owed)
say("done")
sys.stdin.readline()
"""
)


@contextlib.contextmanager
def interrupted(
    start: Start,
    case: str,
    hosts: str,
    path: str,
    before: typing.Callable[[], object] = lambda: None,
    after: typing.Callable[[], object] = lambda: None,
) -> typing.Iterator[None]:
    """Interrupts each of the program's waits, after which it must go on at once. Its client lives as long as the block."""
    program, took = start(WAITS, hosts, path, case, str(ROUNDS)), []
    for _ in range(ROUNDS):
        program.expect("ready")
        before()
        program.tell()
        program.expect("waiting")
        program.await_sleep()
        sent = program.signal(signal.SIGINT)
        took.append(float(program.line()) - sent)
        after()
        program.tell()
    program.expect("done")
    not_later(statistics.median(took), SOON)
    yield
    program.tell()
    program.ends_well()


@pytest.mark.parametrize("case", ["acquire", "with"])
def test_a_wait_for_a_lock(start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, case: str) -> None:
    def is_free() -> None:
        # It is in the queue when the signal comes, and leaves it soon after, while its client lives.
        ground.expect_children(path, 1)

    with zk.mutex(path).hold() as hold, interrupted(start, case, hosts, path, after=is_free):
        hold.release()
        zk.mutex(path).hold(timeout=30).release()


def test_a_wait_for_a_loss(start: Start, ground: Ground, hosts: str, path: str) -> None:
    with interrupted(start, "lost.wait", hosts, path, after=lambda: ground.expect_children(path, 1)):
        ground.expect_children(path, 0)


@pytest.mark.parametrize(("case", "stays"), [("double barrier", 0), ("leave", 1)])
def test_a_wait_at_a_barrier(
    start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, case: str, stays: int
) -> None:
    at = f"{path}-meeting"
    other = zk.double_barrier(at, 1).enter() if stays else None

    def is_free() -> None:
        eventually(lambda: len(set(ground.children(at)) - {"ready"}) == stays)

    with interrupted(start, case, hosts, path, after=is_free):
        if other is not None:
            other.leave(timeout=20)


@pytest.mark.parametrize("case", ["connect", "observe", "release", "end of with", "close"])
def test_a_wait_for_the_servers(start: Start, ground: Ground, path: str, case: str) -> None:
    proxy = ground.proxy("1")

    def go_on() -> None:
        proxy("thaw")
        ground.expect_children(path, 0, within=15)

    with interrupted(start, case, proxy.hosts, path, lambda: proxy("freeze", "both"), go_on):
        pass
