"""Forgotten objects: the collector releases them, with one warning each, and nothing grows."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tracemalloc
import typing
import warnings

import pytest
from ground import Ground
from scenes import eventually, hook, lose

import zklock


def warned(act: typing.Callable[[], object]) -> list[str]:
    """The warnings of a call, all of one kind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
        gc.collect()
    assert {warning.category for warning in caught} <= {ResourceWarning}
    return [str(warning.message) for warning in caught]


class Keeper:
    """Is in a cycle with itself, or with a callback of its hold."""

    def __init__(self, hold: zklock.Hold, listens: bool) -> None:
        self.hold, self.me = hold, self
        if listens:
            hold.on_lost(self.stop)

    def stop(self, reason: zklock.LossReason) -> None:
        pass


def in_asyncio(zk: zklock.Client, path: str) -> None:
    async def forget() -> None:
        await zk.aio.mutex(path).hold()

    asyncio.run(forget())


def with_an_exception_on_its_way(zk: zklock.Client, path: str) -> None:
    def fail() -> None:
        hold = zk.mutex(path).hold()
        raise KeyError(hold.path)

    with pytest.raises(KeyError):
        fail()


FORGET: dict[str, typing.Callable[[zklock.Client, str], object]] = {
    "in a cycle": lambda zk, path: Keeper(zk.mutex(path).hold(), listens=False),
    "that its own callback knows": lambda zk, path: Keeper(zk.mutex(path).hold(), listens=True),
    "of asyncio": in_asyncio,
    "with an exception on its way": with_an_exception_on_its_way,
}


@pytest.mark.parametrize("way", FORGET)
def test_a_hold_is_released_with_a_warning(zk: zklock.Client, ground: Ground, path: str, way: str) -> None:
    assert len(warned(lambda: FORGET[way](zk, path))) == 1
    ground.expect_children(path, 0)


def test_where_warnings_are_errors_it_is_released_all_the_same(
    zk: zklock.Client, ground: Ground, path: str, unraisable: list[typing.Any]
) -> None:
    holds = [zk.mutex(path).hold()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        holds.clear()
    assert [type(one.exc_value) for one in unraisable] == [ResourceWarning]
    ground.expect_children(path, 0)


def test_nobody_is_warned_of_what_is_over(zk: zklock.Client, ground: Ground, path: str) -> None:
    lock = zk.mutex(path)

    def forget() -> None:
        lock.hold().release()
        with lock.hold():
            pass
        with lock as hold:
            del hold
        lost = lock.hold()
        lose(ground, lost)
        del lost
        # These objects do not own the hold, and so do not release it.
        assert lock.acquire()
        current = lock.current
        assert current is not None
        loss, guarded = current.lost, current.guarded()
        del current, loss, guarded
        gc.collect()
        assert lock.locked()
        lock.release()

    assert warned(forget) == []


def test_what_came_of_a_hold_does_not_keep_it(zk: zklock.Client, ground: Ground, path: str) -> None:
    holds = [zk.mutex(path).hold()]
    token, loss = holds[0].token, holds[0].lost
    [said] = warned(holds.clear)
    assert path in said and str(token) in said
    ground.expect_children(path, 0)
    assert not zk.mutex(path).locked()
    assert not loss.wait(timeout=10)
    assert not loss.is_set()


def test_a_forgotten_client_gives_back_all_that_it_holds(ground: Ground, path: str) -> None:
    proxy = ground.proxy("1")
    closed = hook(proxy, "see-request", "close")

    def forget() -> None:
        client = zklock.Client(proxy.hosts, session_timeout=4)
        assert client.mutex(path).acquire()
        assert client.mutex(f"{path}-again", reentrant=True).acquire()

    assert warned(forget) == []
    # Its session is closed, so nobody waits until it times out.
    closed.wait()
    ground.expect_children(path, 0)
    ground.expect_children(f"{path}-again", 0)
    eventually(lambda: proxy("connections") == "0")


def resident() -> int:
    """The memory of this process, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_ten_thousand_rounds_leave_nothing(zk: zklock.Client, path: str) -> None:
    lock, again = zk.mutex(path), zk.mutex(f"{path}-again", reentrant=True)

    def work(rounds: int) -> None:
        for _ in range(rounds):
            with lock as hold:
                hold.valid_for()
        with again:
            for _ in range(rounds):
                with again:
                    assert again.acquire()
                    again.release()

    shared = [None, True, False, zklock.Hold, zklock.Lock, lock, again, zk]

    def count() -> list[int]:
        return [sys.getrefcount(one) for one in shared]

    # After this, memory that is kept for reuse is allocated.
    work(1000)
    gc.collect()
    references, memory = count(), resident()
    tracemalloc.start()
    try:
        work(10)
        begun = tracemalloc.take_snapshot()
        work(10_000)
        gc.collect()
        ended = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    grown = sum(max(0, difference.count_diff) for difference in ended.compare_to(begun, "filename"))
    assert grown < 500
    assert all(after - before < 100 for before, after in zip(references, count())), (references, count())
    # A hundred bytes for each round would be a megabyte.
    assert resident() - memory < 4 << 20
