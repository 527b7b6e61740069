"""Promise 7: a grant is delivered only with a live lease, checked when the task goes on."""

from __future__ import annotations

import asyncio
import time

import pytest
from aio.support import SOON, Loop, granted, run_in, settled
from ground import Ground
from scenes import expire

import zklock


@pytest.mark.parametrize("blow", ["node", "session"])
def test_a_grant_that_is_lost_before_it_is_fetched_is_not_delivered(
    other: zklock.Client, path: str, ground: Ground, blow: str
) -> None:
    proxy, loop = ground.proxy("1"), Loop()

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=4) as zk:
            lock = zk.mutex(path)

            async def block() -> None:
                async with lock:
                    raise AssertionError("it has begun")

            begin = lock.acquire if blow == "session" else block
            task = await granted(loop, ground, other.mutex(path), path, lambda: asyncio.create_task(begin()))
            assert zk.stats().grants == 1
            # The loop does something else while the grant waits for it and becomes invalid.
            if blow == "node":
                ground(f"delete {path}/{ground.children(path)[0]}")
            else:
                expire(proxy)
            end = time.monotonic() + SOON
            while zk.stats().losses == 0 and time.monotonic() < end:
                time.sleep(0.01)
            with pytest.raises(zklock.LockLost):
                await task
            assert not lock.locked()
            await settled(zk)
            async with lock:
                pass

    run_in(loop, main())
