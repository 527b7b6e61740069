"""Promise 7: a grant is delivered only with a live lease, checked when the task goes on."""

from __future__ import annotations

import pytest
from aio.support import granted, settled
from ground import Ground
from scenes import eventually, expire

import zklock


@pytest.mark.parametrize("blow", ["node", "session"])
async def test_a_grant_that_is_lost_before_it_is_fetched_is_not_delivered(
    other: zklock.Client, path: str, ground: Ground, blow: str
) -> None:
    proxy = ground.proxy("1")
    async with zklock.Client(proxy.hosts, session_timeout=4) as zk:
        lock = zk.mutex(path)

        async def block() -> object:
            async with lock:
                raise AssertionError("it has begun")

        task = await granted(ground, other.mutex(path), path, lock.acquire() if blow == "session" else block())
        assert zk.stats().grants == 1
        # The loop does something else while the grant waits for it and becomes invalid.
        if blow == "node":
            ground(f"delete {path}/{ground.children(path)[0]}")
        else:
            expire(proxy)
        eventually(lambda: zk.stats().losses == 1)
        with pytest.raises(zklock.LockLost):
            await task
        assert not lock.locked()
        await settled(zk)
        async with lock:
            pass
