"""Promise 4: an acquire with a deadline returns by then, whatever the network does, and says what the trouble is."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import threading
import time
import typing

import pytest
from ground import Ground
from punctual import not_later
from scenes import (
    GRACE,
    SOON,
    Attempt,
    ConnectFar,
    Lateness,
    Listener,
    Raised,
    elsewhere,
    eventually,
    in_time,
    raises,
    settled,
)

import zklock

A_WHILE = 0.2
HOUR = 3600.0
DIRECTIONS = ["to-server", "to-client", "both"]


def times_out(lock: zklock.Lock, timeout: float, late: type[zklock.Error] = zklock.Timeout) -> Raised:
    """Checks that both calls time out in time, and not too early. One returns False, unless it is an outage; the other raises."""

    def acquire() -> None:
        begun = time.monotonic()
        if late is zklock.Timeout:
            assert lock.acquire(timeout=timeout) is False
        else:
            raises(late, lambda: lock.acquire(timeout=timeout))
        assert time.monotonic() - begun >= timeout - 0.001

    def hold() -> Raised:
        begun = time.monotonic()
        raised = raises(late, lambda: lock.hold(timeout=timeout))
        assert time.monotonic() - begun >= timeout - 0.001
        return raised

    in_time(acquire, timeout)
    return in_time(hold, timeout)


def works(lock: zklock.Lock, client: zklock.Client) -> None:
    """Checks that the lock works (again), and its client owes nothing."""
    assert lock.acquire(timeout=SOON)
    lock.release()
    settled(client)


def unreachable(hosts: str, timeout: float) -> Raised:
    """Checks that a connect fails in time."""
    client = zklock.Client(hosts, connect_timeout=timeout)
    return in_time(lambda: raises(zklock.Unreachable, client.connect), timeout)


def test_the_error_says_who_is_in_the_way(
    zk: zklock.Client, other: zklock.Client, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    says = "not acquired within 600ms: others are before us in the queue"
    with zk.mutex(path):
        times_out(other.mutex(path), 3 * A_WHILE).says(path, says)
        raised = raises(zklock.Timeout, other.mutex(path, timeout=3 * A_WHILE).__enter__).says(path, says)
        assert isinstance(raised.error, TimeoutError)
        # If the answer is only False, the log says why.
        with caplog.at_level(logging.INFO, "zklock"):
            assert not other.mutex(path).acquire(timeout=3 * A_WHILE)
            eventually(lambda: any(says in record.getMessage() for record in caplog.records))
        # A try names the holder. On a busy machine that may not be known in time.
        tried = other.mutex(path, timeout=0)
        eventually(lambda: " holds it (its node " in str(raises(zklock.Timeout, tried.__enter__).error))
        settled(other)


def test_a_try_is_bounded_by_its_own_timeout_where_nobody_answers(
    connect_far: ConnectFar, ground: Ground, path: str
) -> None:
    zk, proxy = connect_far(connect_timeout=HOUR, try_timeout=A_WHILE)
    lock, barrier, doors = zk.mutex(path), zk.barrier(f"{path}-barrier"), zk.double_barrier(f"{path}-doors", 1)
    member = doors.enter(timeout=SOON)
    proxy("freeze", "both")
    calls: list[typing.Callable[[], object]] = [
        lambda: lock.acquire(blocking=False),
        lambda: lock.hold(timeout=0),
        zk.mutex(path, timeout=0).__enter__,
        lambda: barrier.wait(timeout=0),
        lambda: doors.enter(timeout=0),
        lambda: member.leave(timeout=0),
    ]
    for call in calls:
        # The call must come back, although connecting may take an hour.
        elsewhere(functools.partial(raises, zklock.Unreachable, call))

    async def main() -> None:
        for refused in (lock.aio.acquire(blocking=False), lock.aio.hold(timeout=0), barrier.aio.wait(timeout=0)):
            with pytest.raises(zklock.Unreachable):
                await asyncio.wait_for(refused, SOON)

    asyncio.run(main())
    proxy("thaw")
    works(lock, zk)
    ground.expect_children(path, 0)


def test_a_timeout_beyond_the_end_of_time_waits_for_ever(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    lock = other.mutex(path)

    def acquire(timeout: float | None) -> None:
        assert lock.acquire(timeout=timeout)
        lock.release()

    def block() -> None:
        with lock:
            pass

    waits: list[typing.Callable[[], None]] = [
        lambda: lock.hold(timeout=None).release(),
        lambda: lock.hold(timeout=math.inf).release(),
        lambda: lock.hold(timeout=1e300).release(),
        lambda: lock.hold(timeout=threading.TIMEOUT_MAX).release(),
        lambda: other.mutex(path, timeout=math.inf).hold().release(),
        functools.partial(acquire, -1),
        functools.partial(acquire, None),
        functools.partial(acquire, threading.TIMEOUT_MAX),
        block,
    ]
    for wait in waits:
        with zk.mutex(path):
            attempt = Attempt(wait)
            ground.expect_children(path, 2)
            assert not attempt.is_over()
        attempt.result()
    with zk.mutex(path) as hold:
        attempts = [Attempt(functools.partial(hold.lost.wait, timeout)) for timeout in (None, math.inf, 1e300)]
        assert not any(attempt.is_over() for attempt in attempts)
    assert [attempt.result() for attempt in attempts] == [False, False, False]


def test_the_timeout_of_the_lock_is_for_calls_that_say_nothing_else(
    zk: zklock.Client, other: zklock.Client, path: str
) -> None:
    with zk.mutex(path):
        lock = other.mutex(path, timeout=A_WHILE)
        # This call has no result that a caller would check, so it raises.
        in_time(lambda: raises(zklock.Timeout, lock.acquire), A_WHILE)
        in_time(lambda: raises(zklock.Timeout, lock.hold), A_WHILE)
        in_time(lambda: raises(zklock.Timeout, lock.__enter__), A_WHILE)
        assert in_time(lambda: lock.acquire(timeout=2 * A_WHILE), 2 * A_WHILE) is False
        attempt = Attempt(lambda: lock.hold(timeout=None).release())
        # The call's own timeout overrides the lock's.
        assert not other.mutex(path).acquire(timeout=3 * A_WHILE)
        assert not attempt.is_over()
    attempt.result()


def test_a_release_is_bounded_by_the_session_timeout_and_goes_on_in_the_background(
    connect_far: ConnectFar, ground: Ground, path: str
) -> None:
    zk, proxy = connect_far(session_timeout=1)
    session = zk.session_timeout
    assert session is not None
    lock = zk.mutex(path)

    def acquired() -> typing.Callable[[], None]:
        assert lock.acquire(timeout=SOON)
        return lock.release

    for acquire in (acquired, lambda: lock.hold(timeout=SOON).release):
        release = acquire()
        proxy("freeze", "to-server")
        with Lateness() as late:
            begun = time.monotonic()
            raises(zklock.Timeout, release).says("goes on in the background")
            not_later(time.monotonic() - begun, session + GRACE + late.allowance)
        raises(zklock.NotHeld, release)
        assert zk.stats().owed == 1
        proxy("thaw")
        settled(zk)
        ground.expect_children(path, 0)


def test_connecting_is_part_of_the_deadline_of_the_first_acquire(path: str) -> None:
    with Listener.mute(listens=True) as mute:
        # The connect timeout is longer, so it does not count.
        client = zklock.Client(mute.hosts, connect_timeout=SOON)
        lock = client.mutex(path)
        times_out(lock, A_WHILE, zklock.Unreachable).says(mute.hosts, "check hosts and network")
        in_time(lambda: raises(zklock.Unreachable, lambda: client.connect(A_WHILE)), A_WHILE)
        client.close()
        # The shorter of the two timeouts counts.
        hasty = zklock.Client(mute.hosts, connect_timeout=A_WHILE)
        in_time(lambda: raises(zklock.Unreachable, lambda: hasty.mutex(path).hold(timeout=SOON)), A_WHILE)
        in_time(lambda: raises(zklock.Unreachable, lambda: hasty.mutex(path).acquire()), A_WHILE)
        in_time(lambda: raises(zklock.Unreachable, lambda: hasty.mutex(path).acquire(False)), A_WHILE)
