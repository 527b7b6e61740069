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


async def test_a_reentrant_lock_acquired_twice_at_once_by_one_task_is_counted(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    lock = zk.aio.mutex(path, reentrant=True)
    # Both calls have begun before either is granted.
    assert all(await asyncio.wait_for(asyncio.gather(lock.acquire(), lock.acquire()), 3))
    await lock.release()
    await lock.release()
    assert ground.children(path) == []


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


def test_a_task_is_not_taken_for_one_that_has_ended_at_its_address(zk: zklock.Client, path: str) -> None:
    """Addresses are reused, but a lock that a dead task held does not belong to the next task at its address."""
    lock = zk.aio.mutex(path, reentrant=True)

    async def leave_behind() -> int:
        assert await lock.acquire(timeout=SOON)
        return id(asyncio.current_task())

    async def try_at(address: int) -> bool | None:
        return await lock.acquire(blocking=False) if id(asyncio.current_task()) == address else None

    async def main() -> bool:
        address = await asyncio.create_task(leave_behind())
        for _ in range(20):
            # So many tasks at once that one of them gets that address.
            tried = await asyncio.gather(*[try_at(address) for _ in range(200)])
            assert True not in tried
            if False in tried:
                return True
        return False

    assert asyncio.run(main()), "no task came to that address"
