"""anyio on asyncio: cancel scopes and deadlines."""

from __future__ import annotations

import anyio
import pytest
from aio.support import free, queue, settled
from ground import Ground

import zklock


async def test_a_scope_that_moves_on_leaves_no_node(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    lock = zk.aio.mutex(path)
    async with other.mutex(path):
        for way in (lock.acquire, lock.hold, lock.__aenter__):
            with anyio.move_on_after(0.05) as scope:
                await way()
            assert scope.cancelled_caught
        with pytest.raises(TimeoutError), anyio.fail_after(0.05):
            async with lock:
                raise AssertionError("it is held")
        await settled(zk)
        assert len(ground.children(path)) == 1
    await free(zk, other, path, ground)


async def test_a_scope_that_ends_in_the_block_releases(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    with anyio.move_on_after(0.1) as scope:
        async with zk.aio.mutex(path):
            await anyio.sleep_forever()
    # The scope cancels again at every wait, even that of the release, which must go on.
    assert scope.cancelled_caught
    await queue(ground, path, 0)
    await free(zk, other, path, ground)
    with anyio.CancelScope() as outer:
        async with zk.aio.mutex(path):
            outer.cancel()
            with anyio.CancelScope(shield=True):
                assert (await zk.aio.mutex(path).contenders())[0].session == zk.session_id
    await queue(ground, path, 0)
    await free(zk, other, path, ground)
