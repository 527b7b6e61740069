"""Signals while calls wait, and what they must not change. For Ctrl-C see test_ctrl_c.py."""

from __future__ import annotations

import signal
import statistics
import threading
import time
import typing

import pytest
from ground import Ground
from guests.programs import BEGIN, SOON, Start
from punctual import not_later
from scenes import Attempt

import zklock

HANDLERS = BEGIN + """
zk.connect()
signal.signal(signal.SIGUSR1, lambda *_: say(time.monotonic()))
begun = time.monotonic()
say("waiting")
got = lock.acquire(timeout=float(*more))
say(got, time.monotonic() - begun)
"""


def test_a_handler_that_does_not_raise_changes_neither_the_place_in_the_queue_nor_the_deadline(
    start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str
) -> None:
    took: list[float] = []
    with zk.mutex(path):
        program = start(HANDLERS, hosts, path, "3.0")
        program.expect("waiting")
        queue, begun = ground.expect_children(path, 2), time.monotonic()
        for _ in range(15):
            sent = program.signal(signal.SIGUSR1)
            took.append(float(program.line()) - sent)
            time.sleep(0.05)
        not_later(time.monotonic() - begun, 2.0)
        # It is the same attempt, in the same place.
        assert ground.expect_children(path, 2) == queue
        got, waited = program.line().split()
        assert got == "False" and float(waited) >= 3.0
        not_later(float(waited), 3.3)
        program.ends_well()
    not_later(statistics.median(took), SOON)


@pytest.fixture
def at_alarm() -> typing.Iterator[list[typing.Callable[[], object]]]:
    """What the handler of SIGALRM calls."""
    calls: list[typing.Callable[[], object]] = []
    before = signal.signal(signal.SIGALRM, lambda *_: [call() for call in calls])
    yield calls
    signal.signal(signal.SIGALRM, before)


def interrupt(ground: Ground, path: str) -> None:
    """Interrupts the main thread while it waits for this lock. The thread that calls this takes the signal, which so ends no sleep of
    the main thread."""
    ground.expect_children(path, 2)
    signal.pthread_kill(threading.get_ident(), signal.SIGALRM)


@pytest.mark.parametrize("way", ["acquire", "acquire of a reentrant lock", "hold", "with"])
def test_what_is_granted_when_a_handler_raises_is_released(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, at_alarm: list[typing.Callable[[], object]], way: str
) -> None:
    given = LookupError("by the handler")

    def fail() -> None:
        raise given

    at_alarm.append(fail)
    lock = other.mutex(path, reentrant="reentrant" in way)
    wait = {"hold": lock.hold, "with": lock.__enter__}.get(way, lock.acquire)

    def interrupt_and_grant() -> None:
        interrupt(ground, path)
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


def test_a_handler_may_wait_itself(start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str) -> None:
    # While the handler waits, the lock is granted for which the main thread waits.
    text = """
def handle(number, frame):
    say("handling")
    with zk.mutex(path + "-of-the-handler") as hold:
        hold.lost.wait(timeout=1)
    say("handled")

signal.signal(signal.SIGUSR1, handle)
say("waiting")
with lock:
    say("held")
"""
    with zk.mutex(path) as hold:
        program = start(BEGIN + text, hosts, path)
        program.expect("waiting")
        ground.expect_children(path, 2)
        program.await_sleep()
        program.signal(signal.SIGUSR1)
        program.expect("handling")
        program.await_sleep()
        hold.release()
    program.expect("handled")
    program.expect("held")
    program.ends_well()


def test_a_signal_that_another_thread_took_is_heard_within_a_second(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, at_alarm: list[typing.Callable[[], object]]
) -> None:
    handled: list[float] = []
    at_alarm.append(lambda: handled.append(time.monotonic()))
    with zk.mutex(path):
        begun, interrupting = time.monotonic(), Attempt(lambda: interrupt(ground, path))
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
def test_other_threads_run_on_and_nothing_spins(
    start: Start, zk: zklock.Client, hosts: str, path: str, where: str
) -> None:
    text = """
zk.connect()
waited = []

def wait():
    begun, used = time.monotonic(), time.process_time()
    assert not lock.acquire(timeout=1)
    waited.append((time.monotonic() - begun, time.process_time() - used))

def wait_there():
    if more == ["main thread"]:
        return wait()
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()

wait_there()
# Another one counts meanwhile, in steps that give nobody a reason to let the interpreter go.
count, is_over = 0, threading.Event()

def count_on():
    global count
    while not is_over.is_set():
        count += 1

thread = threading.Thread(target=count_on)
thread.start()
begun = count
wait_there()
counted = count - begun
is_over.set()
thread.join()
say(waited[0][0], waited[0][1], waited[1][0], counted)
"""
    with zk.mutex(path):
        program = start(BEGIN + text, hosts, path, where)
        line = program.line()
        program.ends_well()
    took, used, took_again, counted = map(float, line.split())
    assert 1.0 <= took
    not_later(took, 1.3)
    not_later(used, 0.05 * took)
    assert 1.0 <= took_again
    not_later(took_again, 1.3)
    assert counted > 100_000
