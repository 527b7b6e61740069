"""The set of locks in asyncio."""

from __future__ import annotations

import asyncio

import pytest
from aio.support import queue, settled, soon
from ground import Ground

import zklock


def test_all_or_none(zk: zklock.Client, other: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        aio = zk.aio
        both = aio.all([aio.mutex(path), aio.read(f"{path}-2")], timeout=5)
        async with both as hold:
            assert hold.path == f"{path}, {path}-2" and both.locked()
            assert not await other.aio.mutex(path).acquire(blocking=False)
            assert not await aio.mutex(path).acquire(timeout=0.1)
            assert [one.role for one in await both.contenders()] == ["exclusive", "read"]
        async with other.aio.mutex(path):
            assert await both.acquire(timeout=0.1) is False
            await settled(zk)
            await queue(ground, f"{path}-2", 0)
        for wrong in ([], [aio.mutex(path), zk.read(path)], [other.aio.mutex(path)]):
            with pytest.raises(zklock.InvalidInput):
                aio.all(wrong)
        # The same lock, whichever face it comes from.
        assert aio.all([aio.mutex(path), zk.mutex(path)]).path == path

    asyncio.run(main())


def test_no_order_of_arrival_can_deadlock(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    async def main() -> None:
        taken: set[int] = set()

        async def work(client: zklock.AsyncClient, first: int) -> None:
            for turn in range(6):
                wanted = {first, (first + 1 + turn % 2) % 3}
                order = sorted(wanted, reverse=turn % 2 == 0)
                async with client.all([client.mutex(f"{path}-{which}") for which in order], timeout=30):
                    assert not taken & wanted
                    taken.update(wanted)
                    await asyncio.sleep(0)
                    taken.difference_update(wanted)

        workers = [work(client, first) for client in (zk.aio, other.aio) for first in range(3)]
        await asyncio.wait_for(asyncio.gather(*workers), 30)

    asyncio.run(main())
