"""The exclusive lock in asyncio."""

from __future__ import annotations

import asyncio

import pytest
from aio.support import soon
from ground import Ground

import zklock


def test_it_is_one_node(zk: zklock.Client, other: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        lock = zk.aio.exclusive(path, timeout=0)
        async with lock as hold:
            assert hold.node == f"{path}/lock"
            assert await other.aio.exclusive(path).acquire(blocking=False) is False
            with pytest.raises(zklock.Timeout):
                await asyncio.create_task(lock.hold())
            waiting = asyncio.create_task(other.aio.exclusive(path).hold())
            await asyncio.sleep(0.1)
            assert not waiting.done()
        successor = await soon(waiting)
        assert successor.token > hold.token
        await successor.release()
        assert ground.children(path) == []

    asyncio.run(main())
