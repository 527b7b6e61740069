"""Where the names are those of ``asyncio.Lock``, so is what they do: the same calls, side by side.

The end names and tests the differences. For owners see ../scenarios/test_owners.py, for cancelled tasks ../aio/test_cancel.py.
"""

from __future__ import annotations

import asyncio
import typing

import pytest
from face.side_by_side import Outcome, expect_alike, outcome, outcome_of

import zklock

# The lock is theirs or ours, and a type checker could not tell which.
AnyLock = typing.Any
Script = typing.Callable[[AnyLock], typing.Coroutine[typing.Any, typing.Any, typing.List[Outcome]]]


async def release(lock: AnyLock) -> None:
    """Our release may be awaited, to wait for the ensemble's confirmation."""
    released = lock.release()
    if released is not None:
        await released


async def elsewhere(awaitable: typing.Awaitable[object]) -> Outcome:
    """The outcome in another task."""
    return await asyncio.ensure_future(outcome_of(awaitable))


async def acquire(lock: AnyLock, **named: object) -> bool:
    """Calls it in the task that awaits it, because the calling task becomes the owner of ours."""
    return bool(await lock.acquire(**named))


async def releases_at_once(lock: AnyLock) -> list[Outcome]:
    """Calls without an await."""
    seen = [outcome(lock.release), outcome(lock.locked, 1), outcome(lock.release, 1), await outcome_of(lock.acquire())]
    lock.release()
    return [*seen, outcome(lock.locked), await outcome_of(lock.acquire()), await outcome_of(release(lock))]


async def is_no_blocking_context_manager(lock: AnyLock) -> list[Outcome]:
    def enter() -> None:
        with lock:
            pass

    return [outcome(enter), outcome(lock.locked)]


async def is_waited_for_in_a_block(lock: AnyLock) -> list[Outcome]:
    async with lock:
        seen = [outcome(lock.locked), await elsewhere(asyncio.wait_for(acquire(lock), 0.05))]
    return [*seen, outcome(lock.locked)]


SCRIPTS: list[Script] = [releases_at_once, is_no_blocking_context_manager, is_waited_for_in_a_block]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_conversation(script: Script, zk: zklock.Client, path: str) -> None:
    async def theirs() -> list[Outcome]:
        return await script(asyncio.Lock())

    async def ours() -> list[Outcome]:
        return await script(zk.aio.mutex(path))

    expected = asyncio.run(theirs())
    expect_alike(asyncio.run(ours()), expected)


# Differences.


async def test_acquire_takes_the_arguments_of_threading(zk: zklock.Client, path: str) -> None:
    """``asyncio.Lock`` takes no arguments. Errors in them are raised before anything is awaited."""
    lock = zk.aio.mutex(path)
    async with lock:
        assert await elsewhere(acquire(lock, blocking=False)) == Outcome(False)
        assert await elsewhere(acquire(lock, timeout=0.02)) == Outcome(False)
    assert outcome(lock.acquire, False, 1).raised is ValueError
    assert outcome(lock.acquire, True, -2).raised is ValueError
    assert outcome(lock.acquire, True, 1e100).raised is OverflowError
    assert outcome(lock.acquire, True, "1").raised is TypeError
