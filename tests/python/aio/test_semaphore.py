"""The semaphore in asyncio."""

from __future__ import annotations

import asyncio

import pytest
from aio.support import queue, settled, soon
from ground import Ground

import zklock


def test_as_many_tasks_hold_it_as_it_has_permits(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        at = f"{path}-permits"
        inside, most, all_inside = 0, 0, asyncio.Event()

        async def work() -> None:
            nonlocal inside, most
            async with zk.aio.semaphore(at, 3):
                inside += 1
                most = max(most, inside)
                if inside == 3:
                    all_inside.set()
                # They meet, however slow the machine is.
                await soon(all_inside.wait())
                await asyncio.sleep(0.02)
                inside -= 1

        await soon(asyncio.gather(*(work() for _ in range(10))))
        assert most == 3
        await asyncio.to_thread(ground.expect_free, at)

    asyncio.run(main())


def test_a_task_may_hold_several_and_gives_back_the_latest(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        at = f"{path}-permits"
        lock = zk.aio.semaphore(at, 3)
        nodes = []
        for _ in range(3):
            assert await lock.acquire()
            assert lock.current is not None
            nodes.append(lock.current.node)
        assert await lock.acquire(blocking=False) is False
        for node in reversed(nodes):
            assert lock.current is not None and lock.current.node == node
            await lock.release()
            assert ground(f"exists {node}") == "false"
        with pytest.raises(zklock.NotHeld):
            await lock.release()
        async with zk.aio.semaphore(at, 3, permits=2), lock:
            assert not await lock.acquire(timeout=0.1)
        # Anybody may release a permit.
        await asyncio.create_task(lock.acquire())
        await lock.release()
        await settled(zk)
        await asyncio.to_thread(ground.expect_free, at)

    asyncio.run(main())


def test_the_limit_can_change_while_others_wait(zk: zklock.Client, path: str, ground: Ground, hosts: str) -> None:
    async def main() -> None:
        at = f"{path}-permits"
        # The call connects the client, if needed.
        async with zklock.Client(hosts, session_timeout=4) as other:
            lock = zk.aio.semaphore(at, 1, limit_at=f"{at}-limit")
            async with lock:
                waiting = asyncio.create_task(lock.hold())
                await queue(ground, f"{at}/locks", 1)
                assert await other.set_limit(f"{at}-limit", 2) is None  # type: ignore[func-returns-value]
                await (await soon(waiting)).release()
            with pytest.raises(zklock.InvalidInput):
                await other.set_limit("limit", 2)
            with pytest.raises(zklock.InvalidInput):
                await other.set_limit(at, -2)
        await zklock.Client(hosts).aio.set_limit(f"{at}-limit", 1)
        await asyncio.to_thread(ground.expect_free, at)

    asyncio.run(main())
