"""The owner of a lock is the task that makes the call.

For what threads and tasks have in common see scenarios/test_owners.py.
"""

from __future__ import annotations

import asyncio
import typing

import pytest
from aio.support import SOON
from ground import Ground
from scenes import elsewhere

import zklock


async def test_two_users_in_one_task_take_turns(zk: zklock.Client, path: str) -> None:
    """The task that makes the coroutines is their owner, whichever task runs them."""
    lock, inside = zk.aio.mutex(path), []
    waits = [lock.hold(timeout=SOON) for _ in range(5)]

    async def work(wait: typing.Awaitable[zklock.AsyncHold]) -> None:
        hold = await wait
        inside.append(hold)
        await asyncio.sleep(0)
        assert inside == [hold]
        inside.clear()
        await hold.release()

    await asyncio.gather(*map(work, waits))


async def test_the_owner_is_the_task_that_calls_whoever_awaits(zk: zklock.Client, path: str, ground: Ground) -> None:
    lock = zk.aio.mutex(path, reentrant=True)
    assert await asyncio.create_task(lock.acquire())
    assert await asyncio.wait_for(lock.acquire(), SOON)
    assert await asyncio.shield(lock.acquire())
    assert all(await asyncio.gather(lock.acquire()))
    for _ in range(3):
        await lock.release()
        assert lock.current is not None
    # Nor does it wait for itself if another task awaits it.
    for call in (asyncio.create_task(zk.aio.mutex(path).acquire()), asyncio.wait_for(zk.aio.mutex(path).hold(), SOON)):
        with pytest.raises(zklock.Deadlock, match="release that first"):
            await call
    await lock.release()
    assert lock.current is None and ground.children(path) == []


def test_tasks_and_threads_are_different_owners(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path, reentrant=True)

    async def main() -> None:
        async with lock:
            assert not elsewhere(lambda: lock.acquire(blocking=False))
            # The thread of the loop is another owner than the task.
            with pytest.raises(zklock.NotOwner):
                lock.release()

    async def within() -> None:
        assert not await lock.aio.acquire(blocking=False)
        with pytest.raises(zklock.NotOwner):
            await lock.aio.release()

    asyncio.run(main())
    with lock:
        asyncio.run(within())
