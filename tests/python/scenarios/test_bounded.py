"""Promise 4: an acquire with a deadline returns by then, whatever the network does, and says what the trouble is."""

from __future__ import annotations

import functools
import math
import threading
import time
import typing

from ground import Ground
from scenes import SOON, Attempt, ConnectFar, Face, Raised, elsewhere, in_time, mute, raises, settled, times_out

import zklock

A_WHILE = 0.2
HOUR = 3600.0


def is_late(face: Face, lock: typing.Any, timeout: float) -> Raised:
    """Checks that all ways to acquire tell of an outage in time, and not too early."""

    def check(call: typing.Callable[..., object]) -> Raised:
        begun = time.monotonic()
        raised = raises(zklock.Unreachable, lambda: face(call))
        assert time.monotonic() - begun >= timeout - 0.001
        return raised

    for call in (
        functools.partial(lock.acquire, timeout=timeout),
        functools.partial(lock.hold, timeout=timeout),
        face.enter(lock),
    ):
        raised = in_time(functools.partial(check, call), timeout)
        assert not lock.locked()
    return raised


def works(lock: zklock.Lock, client: zklock.Client) -> None:
    """Checks that the lock works (again), and its client owes nothing."""
    assert lock.acquire(timeout=SOON)
    lock.release()
    settled(client)


def test_a_try_is_bounded_by_its_own_timeout_where_nobody_answers(
    connect_far: ConnectFar, ground: Ground, path: str, face: Face
) -> None:
    zk, proxy = connect_far(connect_timeout=HOUR, try_timeout=A_WHILE)
    zks = face.of(zk)
    lock, barrier, doors = zks.mutex(path), zks.barrier(f"{path}-barrier"), zks.double_barrier(f"{path}-doors", 1)
    member = face(doors.enter, timeout=SOON)
    proxy("freeze", "both")
    calls: list[typing.Callable[[], object]] = [
        lambda: lock.acquire(blocking=False),
        lambda: lock.hold(timeout=0),
        zks.mutex(path, timeout=0).hold,
        lambda: barrier.wait(timeout=0),
        lambda: doors.enter(timeout=0),
        lambda: member.leave(timeout=0),
    ]
    for call in calls:
        # The call must come back, although connecting may take an hour.
        elsewhere(lambda: raises(zklock.Unreachable, lambda: face(call)))
    proxy("thaw")
    works(zk.mutex(path), zk)
    ground.expect_children(path, 0)


def test_a_timeout_beyond_the_end_of_time_waits_for_ever(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    others = face.of(other)
    lock = others.mutex(path, timeout=0)
    waits = [others.mutex(path, timeout=math.inf).hold, others.mutex(path).hold, others.mutex(path).acquire]
    waits += [functools.partial(lock.hold, timeout=timeout) for timeout in (None, math.inf, 1e300)]
    waits += [functools.partial(lock.acquire, timeout=timeout) for timeout in (-1, None, threading.TIMEOUT_MAX)]
    for wait in waits:
        with zk.mutex(path):
            attempt = Attempt(lambda wait=wait: face(wait))  # type: ignore[misc]
            ground.expect_children(path, 2)
            assert not attempt.is_over()
        hold = attempt.result()
        face((lock if hold is True else hold).release)
    with zk.mutex(path) as held:
        attempts = [Attempt(functools.partial(held.lost.wait, timeout)) for timeout in (None, math.inf, 1e300)]
        assert not any(attempt.is_over() for attempt in attempts)
    assert [attempt.result() for attempt in attempts] == [False, False, False]


def test_the_timeout_of_the_lock_is_for_calls_that_say_nothing_else(
    zk: zklock.Client, other: zklock.Client, path: str, face: Face
) -> None:
    with zk.mutex(path):
        lock = face.of(other).mutex(path, timeout=A_WHILE)
        assert in_time(lambda: face(lock.acquire), A_WHILE) is False
        in_time(lambda: times_out(lambda: face(lock.hold)), A_WHILE)
        assert in_time(lambda: face(lock.acquire, timeout=2 * A_WHILE), 2 * A_WHILE) is False
        attempt = Attempt(lambda: face(lock.hold, timeout=None))
        assert not attempt.wait(2 * A_WHILE)
    face(attempt.result().release)


def test_connecting_is_part_of_the_deadline_of_the_first_acquire(path: str, face: Face) -> None:
    with mute() as hosts:
        # The connect timeout is longer, so it does not count.
        client = zklock.Client(hosts, connect_timeout=SOON)
        lock = face.of(client).mutex(path, timeout=A_WHILE)
        is_late(face, lock, A_WHILE).says(hosts, "check hosts and network")
        in_time(lambda: raises(zklock.Unreachable, lambda: face(face.of(client).connect, A_WHILE)), A_WHILE)
        client.close()
        # The shorter of the two timeouts counts.
        hasty = face.of(zklock.Client(hosts, connect_timeout=A_WHILE))
        calls: list[typing.Callable[[], object]] = [
            lambda: hasty.mutex(path).hold(timeout=SOON),
            lambda: hasty.mutex(path).acquire(),
            lambda: hasty.mutex(path).acquire(False),
            lambda: hasty.barrier(path).wait(),
            lambda: hasty.double_barrier(path, 1).enter(),
            hasty.connect,
            face.enter(hasty),
        ]
        for call in calls:
            raised = in_time(lambda: raises(zklock.Unreachable, lambda: face(call)), A_WHILE)
            assert isinstance(raised.error, ConnectionError)
