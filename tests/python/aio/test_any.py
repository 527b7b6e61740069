"""Any one of several locks in asyncio."""

from __future__ import annotations

import asyncio

from aio.support import queue, settled
from ground import Ground

import zklock


def test_the_first_that_comes_is_held(zk: zklock.Client, other: zklock.Client, path: str, ground: Ground) -> None:
    paths = [f"{path}-{number}" for number in range(3)]

    async def main() -> None:
        either = zk.aio.any([zk.aio.mutex(each) for each in paths], timeout=30)
        theirs = [await other.aio.mutex(each).hold() for each in paths]
        cancelled, waiting = (asyncio.ensure_future(either.hold()) for _ in range(2))
        for each in paths:
            await queue(ground, each, 2)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        await theirs.pop().release()
        hold = await waiting
        assert cancelled.cancelled() and hold.path == paths[2]
        await settled(zk)
        for each in paths:
            await queue(ground, each, 1)
        for held in (hold, *theirs):
            await held.release()

    asyncio.run(main())
