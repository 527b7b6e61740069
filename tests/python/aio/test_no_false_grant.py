"""Promise 7: a grant is delivered only with a live lease, checked when the task goes on."""

from __future__ import annotations

import asyncio
import time

import pytest
from aio.support import SOON, Loop, queue, run_in, settled, soon, true
from ground import Ground
from scenes import elsewhere, expire

import zklock


@pytest.mark.parametrize("blow", ["node", "session"])
def test_a_grant_that_is_lost_before_it_is_fetched_is_not_delivered(
    other: zklock.Client, path: str, ground: Ground, blow: str
) -> None:
    proxy, loop = ground.proxy("1"), Loop()

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=2) as zk:
            lock, hold = zk.mutex(path), elsewhere(other.mutex(path).hold)
            task = asyncio.create_task(lock.acquire())
            assert await true(lambda: len(ground.children(path)) == 2)
            called = loop.listen()
            elsewhere(hold.release)
            assert called.wait(SOON) and zk.stats().grants == 1
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


def test_a_waiter_whose_session_expires_queues_again_in_the_next(
    other: zklock.Client, path: str, ground: Ground
) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=2) as zk:
            async with other.mutex(path):
                task = asyncio.create_task(zk.mutex(path).hold())
                before = await queue(ground, path, 2)
                first = zk.session_id
                expire(proxy)
                assert await true(lambda: len(set(ground.children(path)) - set(before)) == 1)
                assert not task.done()
            hold = await soon(task)
            assert zk.session_id != first and hold.valid_for() > 0
            await hold.release()

    asyncio.run(main())


def test_a_wait_longer_than_several_leases_ends_in_a_live_hold(path: str, hosts: str, ground: Ground) -> None:
    async def main() -> None:
        async with zklock.Client(hosts, session_timeout=1) as zk, zklock.Client(hosts, session_timeout=6) as there:
            hold = await there.mutex(path).hold()
            task = asyncio.create_task(zk.mutex(path).hold())
            await queue(ground, path, 2)
            # The lease of a session of one second is half a second.
            await asyncio.sleep(1.6)
            await hold.release()
            granted = await soon(task)
            assert granted.valid_for() > 0.1 and await granted.confirm() > 0
            await granted.release()

    asyncio.run(main())
