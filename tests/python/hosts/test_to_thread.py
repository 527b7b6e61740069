"""asyncio with the blocking calls on threads of its pool, and the errors of a reentrant lock there."""

from __future__ import annotations

import asyncio
import concurrent.futures
import typing

import pytest
from ground import Ground
from hosts.inside import PATIENCE, WORKERS, Inside, acquired

import zklock


async def test_workers_take_turns(zk: zklock.Client, ground: Ground, path: str) -> None:
    inside = Inside(WORKERS)
    # As many threads as workers. Otherwise waiting threads could leave the holder no thread on which to release.
    asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(WORKERS + 1))

    def work() -> typing.Coroutine[typing.Any, typing.Any, None]:
        return inside.come(lambda: acquired(zk.mutex(path)), asyncio.to_thread, asyncio.sleep)

    first = asyncio.ensure_future(work())
    while not inside.all and not first.done():
        await asyncio.sleep(0.001)
    await asyncio.gather(first, *(work() for _ in range(WORKERS - 1)))
    inside.expect_turns()
    ground.expect_children(path, 0)


async def test_readers_of_one_thread_hold_together(zk: zklock.Client, ground: Ground, path: str) -> None:
    loop, one = asyncio.get_running_loop(), concurrent.futures.ThreadPoolExecutor(1)
    holds = [await loop.run_in_executor(one, zk.read_lock(path).hold) for _ in range(5)]
    assert len({hold.node for hold in holds}) == 5
    assert not await asyncio.to_thread(lambda: zk.write_lock(path).acquire(blocking=False))
    for hold in holds:
        await asyncio.to_thread(hold.release)
    one.shutdown()
    ground.expect_children(path, 0)


async def test_a_thread_does_not_read_beside_what_it_has_acquired_for_another_job(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    loop, one = asyncio.get_running_loop(), concurrent.futures.ThreadPoolExecutor(1)
    writing = await loop.run_in_executor(one, zk.write_lock(path).hold)
    read = zk.read_lock(path)
    assert not await loop.run_in_executor(one, lambda: read.acquire(blocking=False))
    waits = loop.run_in_executor(one, lambda: read.hold(timeout=PATIENCE))
    await asyncio.to_thread(ground.expect_children, path, 2)
    assert not waits.done() and writing.valid_for() > 0
    await asyncio.to_thread(writing.release)
    reading = await waits
    assert reading.token > writing.token
    await asyncio.to_thread(reading.release)
    one.shutdown()
    ground.expect_children(path, 0)


async def test_a_reentrant_lock_names_its_rule(zk: zklock.Client, ground: Ground, path: str) -> None:
    """The lock belongs to the thread of the pool that acquired it, and no other can release it."""
    lock = zk.mutex(path, reentrant=True)
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(1) as one, concurrent.futures.ThreadPoolExecutor(1) as other:

        async def on(pool: concurrent.futures.Executor, call: typing.Callable[[], object]) -> object:
            return await loop.run_in_executor(pool, call)

        assert await on(one, lock.acquire)
        rule = "reentrant.*belongs to the thread.* that acquired it: release it there"
        with pytest.raises(zklock.NotOwner, match=rule):
            await on(other, lock.release)
        hold = await loop.run_in_executor(one, lock.hold)
        with pytest.raises(zklock.NotOwner, match=rule):
            await on(other, hold.release)
        assert await on(other, lambda: lock.acquire(timeout=0.1)) is False
        with pytest.raises(zklock.Deadlock, match="reentrant.*release that first"):
            await on(one, zk.mutex(path).acquire)
        await on(one, hold.release)
        await on(one, lock.release)
    ground.expect_children(path, 0)
