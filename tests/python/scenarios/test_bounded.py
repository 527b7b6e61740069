"""Promise 4: an acquire with a deadline returns by then, whatever the network does, and says what the trouble is."""

from __future__ import annotations

import functools
import math
import threading
import time
import typing

from ground import Ground
from scenes import Attempt, Face, mute, raises

import zklock

A_WHILE = 0.2
HOUR = 3600.0


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


def test_connecting_is_part_of_the_deadline_of_the_first_acquire(path: str, face: Face) -> None:
    with mute() as hosts:
        # The connect timeout is longer than the test, so it does not count.
        client = face.of(zklock.Client(hosts, connect_timeout=HOUR))
        # Here the shorter of the two timeouts counts.
        hasty = face.of(zklock.Client(hosts, connect_timeout=A_WHILE))
        lock = client.mutex(path, timeout=A_WHILE)
        calls: list[typing.Callable[[], object]] = [
            lambda: client.mutex(path).acquire(timeout=A_WHILE),
            face.enter(lock),
            lambda: client.connect(A_WHILE),
            lambda: hasty.mutex(path).hold(timeout=HOUR),
            hasty.connect,
            face.enter(hasty),
        ]
        for call in calls:
            begun = time.monotonic()
            raised = raises(zklock.Unreachable, lambda: face(call)).says(hosts)
            assert time.monotonic() - begun >= A_WHILE - 0.001
            assert isinstance(raised.error, ConnectionError) and not lock.locked()
        face(client.close)
