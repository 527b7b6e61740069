"""Callbacks for a loss, and the log: those of one hold wait for each other, and for no others."""

from __future__ import annotations

import logging
import threading
import time

from ground import Ground
from guests.programs import logged
from scenes import eventually, lose

import zklock

# The number of callbacks that run at once. Any more wait.
AT_ONCE = 32


def test_those_of_one_hold_follow_each_other(zk: zklock.Client, ground: Ground, path: str) -> None:
    hold = zk.mutex(path).hold()
    told: list[int] = []
    inside: list[int] = []

    def tell(number: int) -> None:
        inside.append(number)
        time.sleep(0.001)
        assert inside == [number]
        inside.clear()
        told.append(number)

    for number in range(30):
        hold.on_lost(lambda _, number=number: tell(number))  # type: ignore[misc]
    lose(ground, hold)
    assert hold.lost.wait(timeout=30)
    # The hold is lost already.
    hold.on_lost(lambda _: tell(30))
    eventually(lambda: len(told) == 31)
    assert told == list(range(31))


def test_a_slow_handler_of_the_log_delays_neither_them_nor_locks(zk: zklock.Client, ground: Ground, path: str) -> None:
    may_end, has_ended = threading.Event(), threading.Event()

    def tell(record: logging.LogRecord) -> None:
        if "hold lost" in record.getMessage() and may_end.wait(30):
            has_ended.set()

    with logged(tell):
        holds = [zk.mutex(f"{path}-{number}").hold() for number in range(2)]
        lose(ground, holds[0])
        assert holds[0].lost.wait(timeout=30)
        for _ in range(20):
            with zk.mutex(path) as hold:
                assert hold.confirm() > 0
        holds[1].on_lost(lambda _: may_end.set())
        lose(ground, holds[1])
        assert has_ended.wait(30)


def test_beyond_the_bound_they_wait_and_none_is_forgotten(zk: zklock.Client, ground: Ground, path: str) -> None:
    holds = [zk.mutex(f"{path}-{number}").hold() for number in range(AT_ONCE + 5)]
    running, most, told = 0, 0, 0
    may_end, one_at_a_time = threading.Event(), threading.Lock()

    def slow(_: zklock.LossReason) -> None:
        nonlocal running, most, told
        with one_at_a_time:
            running += 1
            most = max(most, running)
        assert may_end.wait(30)
        with one_at_a_time:
            running -= 1
            told += 1

    for hold in holds:
        hold.on_lost(slow)
    for hold in holds:
        lose(ground, hold)
    eventually(lambda: running == AT_ONCE)
    may_end.set()
    eventually(lambda: told == len(holds))
    assert most == AT_ONCE
    # The threads that called them end.
    eventually(lambda: not any(thread.name == "zklock-callbacks" for thread in threading.enumerate()))
