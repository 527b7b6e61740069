"""Ctrl-C ends every wait of the main thread at once, and nothing is left behind."""

from __future__ import annotations

import contextlib
import signal
import statistics
import typing

import pytest
from ground import Ground
from guests.programs import BEGIN, SOON, WELL, Start
from punctual import not_later
from scenes import eventually

import zklock

ROUNDS = 5

# Waits again and again, and prints when it was interrupted.
WAITS = (
    BEGIN
    + """
case, rounds = more
at = f"{path}-{case}"
if "connect" not in case:
    zk.connect()


def block(lock):
    with lock:
        pass


def look():
    for leader in zk.election(path).observe():
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
    "acquire with a timeout": lambda: lock.acquire(timeout=60),
    "with": lambda: block(lock),
    "hold": lambda: lock.hold(),
    "lost.wait": (lock.acquire, lambda: lock.current.lost.wait(), lock.release),
    "wanted.wait": (lock.acquire, lambda: lock.current.wanted.wait(), lock.release),
    "connect": (make_one, lambda: zk.connect(), nothing),
    "connect by entering": (make_one, lambda: zk.__enter__(), nothing),
    "connect by acquire": (make_one, lambda: zk.mutex(path).acquire(), nothing),
    "contenders": lambda: lock.contenders(),
    "confirm": (lock.acquire, lambda: lock.current.confirm(), lock.release),
    "commit": (lock.acquire, lambda: lock.current.guarded().set_data("/", b"").commit(), lock.release),
    "release": (lock.acquire, lambda: lock.release(), nothing),
    "Hold.release": (lock.acquire, lambda: lock.current.release(), nothing),
    "end of with": (lock.__enter__, lambda: lock.__exit__(None, None, None), nothing),
    "close": (make_one_that_holds, lambda: zk.close(), nothing),
    "end of with of a client": (make_one_that_holds, lambda: zk.__exit__(None, None, None), nothing),
    "read": lambda: block(zk.read_lock(at)),
    "write": lambda: zk.write_lock(at).acquire(),
    "semaphore": lambda: block(zk.semaphore(at, 2, permits=2)),
    "election": lambda: zk.election(at).hold(),
    "exclusive": lambda: block(zk.single_node(at)),
    "all": lambda: block(zk.all([zk.mutex(at), zk.semaphore(f"{at}-permits", 1)])),
    "barrier": lambda: zk.barrier(path + "-barrier").wait(),
    "double barrier": lambda: block(zk.double_barrier(path + "-meeting", 2)),
    "enter": lambda: zk.double_barrier(path + "-meeting", 2).enter(timeout=60),
    "leave": lambda: zk.double_barrier(path + "-meeting", 1).enter().leave(timeout=60),
    "set": lambda: zk.barrier(path + "-barrier").set(),
    "observe": look,
    "observe with a timeout": lambda: (o := zk.election(path).observe(), o.next(), o.next(timeout=60)),
    "evict": lambda: lock.evict(f"{path}/_c_8d8cd5a2-9a1c-4b1a-8d8c-d5a29a1c4b1a-lock-0000000000"),
    "break_lock": lambda: lock.break_lock(),
    "set_limit": lambda: zk.set_limit(f"{path}-limit", 1),
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
    assert program.finish()[:3] == WELL


MUTEX = ["acquire", "acquire with a timeout", "with", "hold"]


@pytest.mark.parametrize("case", [*MUTEX, "read", "write", "semaphore", "election", "exclusive", "all"])
def test_a_wait_for_a_lock(start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, case: str) -> None:
    at = path if case in MUTEX else f"{path}-{case}"
    blocker = {
        "read": lambda: zk.write_lock(at),
        "write": lambda: zk.read_lock(at),
        "semaphore": lambda: zk.semaphore(at, 2),
        "election": lambda: zk.election(at),
        "exclusive": lambda: zk.single_node(at),
        "all": lambda: zk.semaphore(f"{at}-permits", 1),
    }.get(case, lambda: zk.mutex(at))()
    queues = {
        "semaphore": [(f"{at}/locks", 0), (f"{at}/leases", 1)],
        "all": [(at, 0), (f"{at}-permits/locks", 0)],
        # The holder's node and its companion.
        "exclusive": [(at, 2)],
    }.get(case, [(at, 1)])

    def is_free() -> None:
        # It is in the queue when the signal comes, and leaves it soon after, while its client lives.
        for queue, count in queues:
            ground.expect_children(queue, count)

    hold = blocker.hold()
    with interrupted(start, case, hosts, path, after=is_free):
        hold.release()
        blocker.hold(timeout=30).release()


@pytest.mark.parametrize("case", ["lost.wait", "wanted.wait"])
def test_a_wait_for_an_event_of_a_hold(start: Start, ground: Ground, hosts: str, path: str, case: str) -> None:
    with interrupted(start, case, hosts, path, after=lambda: ground.expect_children(path, 1)):
        ground.expect_children(path, 0)


@pytest.mark.parametrize("case", ["observe", "observe with a timeout"])
def test_a_wait_for_another_leader(start: Start, zk: zklock.Client, hosts: str, path: str, case: str) -> None:
    with zk.election(path), interrupted(start, case, hosts, path):
        pass


@pytest.mark.parametrize("case", ["barrier", "double barrier", "enter", "leave"])
def test_a_wait_at_a_barrier(start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, case: str) -> None:
    zk.barrier(f"{path}-barrier").set()
    at, stays = f"{path}-meeting", {"leave": 1}.get(case, 0)
    other = zk.double_barrier(at, 1).enter() if stays else None

    def is_free() -> None:
        eventually(lambda: len(set(ground.children(at)) - {"ready"}) == stays)

    with interrupted(start, case, hosts, path, after=is_free):
        if other is not None:
            other.leave(timeout=20)


TO_SERVERS = ["connect", "connect by entering", "connect by acquire", "contenders", "confirm", "commit", "release"]
TO_SERVERS += ["Hold.release", "end of with", "close", "end of with of a client"]
TO_SERVERS += ["set", "evict", "break_lock", "set_limit", "observe"]


@pytest.mark.parametrize("case", TO_SERVERS)
def test_a_wait_for_the_servers(start: Start, ground: Ground, path: str, case: str) -> None:
    proxy = ground.proxy("1")

    def go_on() -> None:
        proxy("thaw")
        ground.expect_children(path, 1 if case in ("confirm", "commit") else 0, within=15)

    with interrupted(start, case, proxy.hosts, path, lambda: proxy("freeze", "both"), go_on):
        ground.expect_children(path, 0)
