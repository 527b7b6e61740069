"""Promise 5: an attempt that fails leaves no node, and deletions that are owed are counted.

``test_cancel_sweep`` cancels at every step; this file has the other ways in which a node could be left behind.
"""

from __future__ import annotations

import asyncio
import gc

import pytest
from aio.support import fired, free, queue
from ground import Ground

import zklock


def test_a_task_whose_result_is_forgotten_leaves_no_hold(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        task = asyncio.create_task(zk.aio.mutex(path).hold())
        await asyncio.wait({task})
        with pytest.warns(ResourceWarning):
            del task
            gc.collect()
        await queue(ground, path, 0)
        await free(zk, other, path, ground)

    asyncio.run(main())


def test_a_close_that_is_cancelled_goes_on(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        zk = zklock.Client(proxy.hosts, session_timeout=20).aio
        await zk.mutex(path).acquire()
        hook = proxy("hold-request", "close", "1")
        closing = asyncio.ensure_future(zk.close())
        assert await fired(ground, hook)
        closing.cancel()
        await asyncio.wait({closing})
        assert closing.cancelled() and len(ground.children(path)) == 1
        ground(f"open {hook}")
        # Its session would last for longer.
        await queue(ground, path, 0)

    asyncio.run(main())
