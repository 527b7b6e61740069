"""Where the names are those of ``asyncio.Lock``, so is what they do: the same calls, side by side.

The end names and tests the differences. For owners see ../scenarios/test_owners.py, for cancelled tasks ../aio/test_cancel.py.
"""

from __future__ import annotations

import asyncio
import typing

from face.side_by_side import Outcome, expect_alike, outcome, outcome_of

import zklock

# The lock is theirs or ours, and a type checker could not tell which.
AnyLock = typing.Any


async def release(lock: AnyLock) -> None:
    """Our release may be awaited, to wait for the ensemble's confirmation."""
    released = lock.release()
    if released is not None:
        await released


async def conversation(lock: AnyLock) -> list[Outcome]:
    """The calls, most of them without an await."""

    def enter() -> None:
        with lock:
            pass

    seen = [outcome(enter), outcome(lock.release), outcome(lock.locked, 1), outcome(lock.release, 1), await outcome_of(lock.acquire())]
    lock.release()
    return [*seen, outcome(lock.locked), await outcome_of(lock.acquire()), await outcome_of(release(lock))]


async def test_conversation(zk: zklock.Client, path: str) -> None:
    expect_alike(await conversation(zk.aio.mutex(path)), await conversation(asyncio.Lock()))


# Differences.


async def test_acquire_takes_the_arguments_of_threading(zk: zklock.Client, path: str) -> None:
    """``asyncio.Lock`` takes no arguments. Errors in them are raised before anything is awaited."""
    lock = zk.aio.mutex(path)
    async with lock:
        assert not await lock.acquire(blocking=False) and not await lock.acquire(timeout=0.02)
    assert outcome(lock.acquire, False, 1).raised is ValueError
    assert outcome(lock.acquire, True, -2).raised is ValueError
    assert outcome(lock.acquire, True, 1e100).raised is OverflowError
    assert outcome(lock.acquire, True, "1").raised is TypeError
