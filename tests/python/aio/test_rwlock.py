"""The read/write lock in asyncio: the sides belong to tasks."""

from __future__ import annotations

import asyncio

import pytest
from aio.support import queue, settled, soon
from ground import Ground

import zklock


def test_tasks_read_together_and_write_alone(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        read, write = zk.aio.read(path, timeout=5), zk.aio.write(path, timeout=5)
        inside, most, together = 0, 0, asyncio.Event()

        async def look() -> None:
            nonlocal inside, most
            async with read:
                inside += 1
                most = max(most, inside)
                if inside > 1:
                    together.set()
                # Wait for another reader, but not for ever, because a writer may be between them.
                await asyncio.wait({asyncio.ensure_future(together.wait())}, timeout=1)
                await asyncio.sleep(0.01)
                inside -= 1

        async def change() -> None:
            async with write:
                assert inside == 0
                await asyncio.sleep(0.01)
                assert inside == 0

        await soon(asyncio.gather(*(look() for _ in range(5)), *(change() for _ in range(3)), look()))
        assert most > 1
        assert ground.children(path) == []

    asyncio.run(main())


def test_a_task_may_go_on_as_a_reader_and_not_as_a_writer(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        read, write = zk.aio.read(path), zk.aio.write(path, reentrant=True)
        await write.acquire()
        ahead = asyncio.create_task(other.aio.write(path).hold())
        await queue(ground, path, 2)
        assert await soon(read.acquire())
        await write.release()
        assert read.locked() and not write.locked() and not ahead.done()
        assert await write.acquire(timeout=0.1) is False
        assert await write.acquire(blocking=False) is False
        await read.release()
        await (await soon(ahead)).release()
        # If any task may release the write side, another task may be writing.
        async with zk.aio.write(path):
            assert await read.acquire(timeout=0.1) is False
            assert await read.acquire(blocking=False) is False
        async with zk.aio.read(path, reentrant=True):
            with pytest.raises(zklock.Deadlock):
                await write.acquire()

        # Another task is another reader.
        async def look() -> None:
            async with read:
                pass

        async with read:
            await soon(asyncio.create_task(look()))

    asyncio.run(main())


def test_the_sides_are_released_each_by_itself(zk: zklock.Client, path: str) -> None:
    async def main() -> None:
        read, write = zk.aio.read(path, reentrant=True), zk.aio.write(path, reentrant=True)
        async with write as outer, write as inner, read as reading:
            # The reader has the token of its writer, and the next writer's is greater.
            assert outer.token == inner.token == reading.token and outer.node != reading.node
            assert read.current is not None and read.current.node == reading.node
        with pytest.raises(zklock.NotHeld):
            await read.release()
        await settled(zk)

    asyncio.run(main())
