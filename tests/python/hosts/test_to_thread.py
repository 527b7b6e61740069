"""asyncio with the blocking calls on threads of its pool, where one thread serves many jobs."""

from __future__ import annotations

import asyncio
import concurrent.futures

from ground import Ground
from scenes import SOON

import zklock


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
    waits = loop.run_in_executor(one, lambda: read.hold(timeout=SOON))
    await asyncio.to_thread(ground.expect_children, path, 2)
    assert not waits.done() and writing.valid_for() > 0
    await asyncio.to_thread(writing.release)
    reading = await waits
    assert reading.token > writing.token
    await asyncio.to_thread(reading.release)
    one.shutdown()
    ground.expect_children(path, 0)
