"""asyncio with the blocking calls on threads of its pool. For reentrant locks see scenarios/test_owners.py."""

from __future__ import annotations

import asyncio
import concurrent.futures
import typing

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
    holds = [await loop.run_in_executor(one, zk.read(path).hold) for _ in range(5)]
    assert len({hold.node for hold in holds}) == 5
    assert not await asyncio.to_thread(lambda: zk.write(path).acquire(blocking=False))
    for hold in holds:
        await asyncio.to_thread(hold.release)
    one.shutdown()
    ground.expect_children(path, 0)


async def test_a_thread_does_not_read_beside_what_it_has_acquired_for_another_job(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    loop, one = asyncio.get_running_loop(), concurrent.futures.ThreadPoolExecutor(1)
    writing = await loop.run_in_executor(one, zk.write(path).hold)
    read = zk.read(path)
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
