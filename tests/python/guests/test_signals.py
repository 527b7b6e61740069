"""Signals while the main thread waits, and what they must not change. For Ctrl-C see aio/test_interrupt.py as well."""

from __future__ import annotations

import os
import pathlib
import queue
import signal
import statistics
import threading
import time
import typing

import pytest
from ground import Ground
from guests.programs import Start
from punctual import not_later
from scenes import Attempt, elsewhere, eventually

import zklock
from zklock.testing import Server

# How soon a program goes on after a signal.
AT_ONCE: typing.Final = 0.05
ROUNDS: typing.Final = 5

Wait = typing.Callable[[], object]
Calls = typing.List[Wait]
Interrupted = typing.Callable[[Wait], None]


@pytest.fixture
def at_alarm() -> typing.Iterator[Calls]:
    """What the handler of SIGALRM calls."""
    calls: Calls = []
    signal.signal(signal.SIGALRM, lambda *_: [call() for call in calls])
    yield calls
    # The handler stays: in a test that has failed, the signal may come now.
    calls.clear()


def raises_at_alarm(calls: Calls) -> LookupError:
    """Has the handler raise this."""
    given = LookupError("by the handler")

    def fail() -> None:
        raise given

    calls.append(fail)
    return given


def await_sleep() -> None:
    """Waits until the main thread sleeps, in ten looks in a row."""
    stat, states = pathlib.Path(f"/proc/self/task/{os.getpid()}/stat"), [""]

    def look() -> bool:
        states.append(stat.read_text().rpartition(")")[2].split()[0])
        return states[-10:] == ["S"] * 10

    eventually(look)


def alarm() -> float:
    """Has the handler run when the main thread sleeps. Returns when."""
    await_sleep()
    now = time.monotonic()
    os.kill(os.getpid(), signal.SIGALRM)
    return now


@pytest.fixture
def interrupted(at_alarm: Calls) -> typing.Iterator[Interrupted]:
    """Makes a call of this thread, in whose sleep a handler raises. That must end it at once."""
    given, took = raises_at_alarm(at_alarm), list[float]()

    def interrupted(wait: Wait) -> None:
        interrupting = Attempt(alarm)
        with pytest.raises(LookupError) as raised:
            wait()
        took.append(time.monotonic() - interrupting.result())
        assert raised.value is given

    yield interrupted
    # On a busy machine a single one may be late by chance.
    assert len(took) == ROUNDS
    not_later(statistics.median(took), AT_ONCE)


# All blocking calls wait in the same way, as aio/test_blocking_calls.py shows. Those here differ in what they leave, or in when they
# begin.


@pytest.mark.parametrize("way", ["acquire", "__enter__"])
def test_a_wait_for_a_lock_is_interrupted(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, interrupted: Interrupted, way: str
) -> None:
    with zk.mutex(path):
        for _ in range(ROUNDS):
            interrupted(getattr(other.mutex(path), way))
            # It leaves the queue, while its client lives.
            ground.expect_children(path, 1)


def test_a_wait_for_a_loss_is_interrupted(zk: zklock.Client, path: str, interrupted: Interrupted) -> None:
    with zk.mutex(path) as hold:
        for _ in range(ROUNDS):
            interrupted(hold.lost.wait)
            assert hold.confirm() > 0


@pytest.mark.parametrize("stays", [0, 1])
def test_a_wait_at_a_barrier_is_interrupted(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, interrupted: Interrupted, stays: int
) -> None:
    at = f"{path}-meeting"
    members = [zk.double_barrier(at, 1).enter() for _ in range(stays)]
    for _ in range(ROUNDS):
        interrupted(other.double_barrier(at, 1).enter().leave if stays else other.double_barrier(at, 2).__enter__)
        eventually(lambda: len(set(ground.children(at)) - {"ready"}) == stays)
    for member in members:
        member.leave(timeout=20)


@pytest.mark.parametrize(
    ("before", "wait"),
    [
        ("", "client.connect()"),
        ("client.connect()", "next(lock.observe())"),
        ("lock.acquire()", "lock.release()"),
        ("lock.__enter__()", "lock.__exit__(None, None, None)"),
        ("lock.acquire()", "client.close()"),
    ],
)
def test_a_wait_for_the_servers_is_interrupted(ground: Ground, path: str, interrupted: Interrupted, before: str, wait: str) -> None:
    proxy = ground.proxy("1")
    for _ in range(ROUNDS):
        # It waits for a close for a part of its session.
        client = zklock.Client(proxy.hosts, session_timeout=10, connect_timeout=60)
        names = {"client": client, "lock": client.mutex(path)}
        exec(before, names)
        proxy("freeze", "both")
        interrupted(lambda: eval(wait, names))
        proxy("thaw")
        ground.expect_children(path, 0, within=15)
        client.close()


@pytest.mark.parametrize("kind", ["children", "strike"])
def test_a_wait_for_the_embedded_server_is_interrupted(interrupted: Interrupted, kind: str) -> None:
    with Server() as server:
        strikes = server.inject("freeze", "create")
        for _ in range(ROUNDS):
            interrupted(strikes.wait if kind == "strike" else lambda: server.wait_for_children("/a", 1, timeout=None))


@pytest.mark.parametrize("way", ["acquire", "acquire of a reentrant lock", "hold", "with"])
def test_what_is_granted_when_a_handler_raises_is_released(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, at_alarm: Calls, way: str
) -> None:
    given = raises_at_alarm(at_alarm)
    lock = other.mutex(path, reentrant="reentrant" in way)
    wait = {"hold": lock.hold, "with": lock.__enter__}.get(way, lock.acquire)

    def interrupt_and_grant() -> None:
        alarm_elsewhere(ground, path)
        hold.release()

    # The main thread hears of the signal with the grant. It may also look for signals just before the grant, but not every time.
    for _ in range(6):
        hold = zk.mutex(path).hold(timeout=30)
        granting = Attempt(interrupt_and_grant)
        with pytest.raises(LookupError) as raised:
            wait()
        assert raised.value is given
        granting.result()
        assert not lock.locked()
        ground.expect_children(path, 0)


def alarm_elsewhere(ground: Ground, path: str) -> None:
    """Has a handler run while the main thread waits for this lock. The thread that calls this takes the signal, which so ends no sleep of
    the main thread."""
    ground.expect_children(path, 2)
    signal.pthread_kill(threading.get_ident(), signal.SIGALRM)


def test_a_handler_that_does_not_raise_changes_neither_the_place_in_the_queue_nor_the_deadline(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, at_alarm: Calls
) -> None:
    handled = queue.SimpleQueue[float]()
    at_alarm.append(lambda: handled.put(time.monotonic()))

    def disturb() -> list[float]:
        nodes, begun = ground.expect_children(path, 2), time.monotonic()
        took = []
        for _ in range(15):
            took.append(-alarm() + handled.get(timeout=30))
            time.sleep(0.05)
        not_later(time.monotonic() - begun, 2.0)
        # It is the same attempt, in the same place.
        assert ground.expect_children(path, 2) == nodes
        return took

    with zk.mutex(path):
        disturbing, begun = Attempt(disturb), time.monotonic()
        assert not other.mutex(path).acquire(timeout=3)
        waited = time.monotonic() - begun
    assert waited >= 3.0
    not_later(waited, 3.3)
    not_later(statistics.median(disturbing.result()), AT_ONCE)


def test_a_handler_may_wait_itself(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, at_alarm: Calls
) -> None:
    waits, said, hold = threading.Event(), list[str](), zk.mutex(path).hold()

    def handle() -> None:
        with other.mutex(f"{path}-of-the-handler") as own:
            waits.set()
            own.lost.wait(timeout=1)
        said.append("handled")

    def grant() -> None:
        ground.expect_children(path, 2)
        alarm()
        assert waits.wait(30)
        # While the handler waits, the lock is granted for which the main thread waits.
        await_sleep()
        hold.release()
        said.append("granted")

    at_alarm.append(handle)
    granting = Attempt(grant)
    with other.mutex(path):
        said.append("held")
    granting.result()
    assert said == ["granted", "handled", "held"]


def test_a_signal_that_another_thread_took_is_heard_within_a_second(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, at_alarm: Calls
) -> None:
    handled: list[float] = []
    at_alarm.append(lambda: handled.append(time.monotonic()))
    with zk.mutex(path):
        begun, interrupting = time.monotonic(), Attempt(lambda: alarm_elsewhere(ground, path))
        assert not other.mutex(path).acquire(timeout=2.5)
        interrupting.result()
        not_later(handled[0] - begun, 1.5)


def test_handlers_and_masks_are_as_they_were(start: Start, hosts: str, path: str) -> None:
    text = """
import os, signal, sys

numbers = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


def of_this_thread(name):
    with open("/proc/thread-self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(name))


def all_of_it():
    # Signals that a program may handle: a C library uses some itself.
    own = sum(1 << (number - 1) for number in numbers)
    caught = [int(of_this_thread(name), 16) & own for name in ("SigCgt", "SigIgn", "SigBlk")]
    return [signal.getsignal(number) for number in numbers], signal.pthread_sigmask(signal.SIG_BLOCK, ()), caught


before = all_of_it()
import zklock, zklock.testing

server = zklock.testing.Server()
with zklock.Client(server.hosts), zklock.Client(sys.argv[1], session_timeout=4) as zk:
    with zk.mutex(sys.argv[2]) as hold:
        hold.on_lost(print)
        hold.lost.wait(timeout=0.05)
        assert all_of_it() == before
assert all_of_it() == before
for thread in os.listdir("/proc/self/task"):
    try:
        with open(f"/proc/self/task/{thread}/status") as file:
            status = dict(line.split(":", 1) for line in file)
    except (FileNotFoundError, ProcessLookupError):
        continue
    # Of a thread that has ended and is still listed, Linux says that it blocks no signal, and that there are no threads.
    if int(thread) != os.getpid() and int(status["Threads"]) > 0:
        # Its threads take none but those that they bring on themselves.
        blocked = int(status["SigBlk"], 16)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM, signal.SIGPIPE, signal.SIGUSR1):
            assert blocked >> (number - 1) & 1, (thread, number)
"""
    start(text, hosts, path).ends_well()


@pytest.mark.parametrize("where", ["main thread", "another thread"])
def test_other_threads_run_on_and_nothing_spins(zk: zklock.Client, other: zklock.Client, path: str, where: str) -> None:
    count, is_over = 0, threading.Event()

    def wait() -> tuple[float, float]:
        begun, used = time.monotonic(), time.process_time()
        assert not other.mutex(path).acquire(timeout=1)
        return time.monotonic() - begun, time.process_time() - used

    def wait_there() -> tuple[float, float]:
        return wait() if where == "main thread" else elsewhere(wait)

    def count_on() -> None:
        # In steps that give nobody a reason to let the interpreter go.
        nonlocal count
        while not is_over.is_set():
            count += 1

    with zk.mutex(path):
        took, used = wait_there()
        counting, begun = Attempt(count_on), count
        took_again, _ = wait_there()
        counted = count - begun
        is_over.set()
        counting.result()
    assert min(took, took_again) >= 1.0
    not_later(max(took, took_again), 1.3)
    not_later(used, 0.05 * took)
    assert counted > 100_000
