"""Promise 4: an acquire with a deadline returns by then. The scenarios in Rust prove it. Here are the numbers that Python has for one."""

from __future__ import annotations

import functools
import math
import threading

from ground import Ground
from scenes import Attempt, Face

import zklock


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
            assert not attempt.done()
        hold = attempt.result()
        face((lock if hold is True else hold).release)
    with zk.mutex(path) as held:
        attempts = [Attempt(functools.partial(held.lost.wait, timeout)) for timeout in (None, math.inf, 1e300)]
        assert not any(attempt.done() for attempt in attempts)
    assert [attempt.result() for attempt in attempts] == [False, False, False]
