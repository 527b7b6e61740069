"""Promise 5 for all kinds of lock: whenever a task is cancelled, it leaves no hold and no node."""

from __future__ import annotations

import asyncio
import random
import typing

import pytest
from aio.support import settled, soon
from ground import Ground

import zklock

Make = typing.Callable[[zklock.AsyncClient, str], zklock.AsyncLock]

KINDS: dict[str, Make] = {
    "read": lambda zk, path: zk.read(path),
    "write": lambda zk, path: zk.write(path),
    "semaphore": lambda zk, path: zk.semaphore(path, 2, permits=2),
    "election": lambda zk, path: zk.election(path),
    "exclusive": lambda zk, path: zk.exclusive(path),
    "any": lambda zk, path: zk.any([zk.mutex(path), zk.semaphore(f"{path}-permits", 1)]),
    "all": lambda zk, path: zk.all([zk.mutex(path), zk.semaphore(f"{path}-permits", 1)]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_taken", [False, True])
def test_a_cancel_at_any_moment_leaves_nothing(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, kind: str, is_taken: bool
) -> None:
    chance = random.Random(7)
    at = f"{path}-{kind}"

    async def work(lock: zklock.AsyncLock) -> None:
        async with lock:
            await asyncio.Event().wait()

    async def main() -> None:
        blocker = KINDS["write" if kind == "read" else kind](other.aio, at)
        lock = KINDS[kind](zk.aio, at)
        for _ in range(30):
            hold = await blocker.hold() if is_taken else None
            tasks = [asyncio.create_task(work(lock)) for _ in range(2)]
            await asyncio.sleep(chance.uniform(0, 0.03))
            # The grant and the cancel happen at the same time.
            begun = hold.release() if hold else None
            if begun:
                await asyncio.sleep(chance.uniform(0, 0.006))
            for task in tasks:
                task.cancel()
            await soon(asyncio.wait(tasks))
            assert all(task.cancelled() for task in tasks), tasks
            if begun:
                await begun
            assert not lock.locked() and lock.current is None
        await settled(zk)
        await settled(other)
        for queue in (at, f"{at}-permits"):
            await asyncio.to_thread(ground.expect_free, queue)
        # Others can have the lock at once.
        assert await blocker.acquire(timeout=5)
        await blocker.release()

    asyncio.run(main())
