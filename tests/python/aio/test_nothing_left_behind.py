"""Promise 5: an attempt that fails leaves no node, and deletions that are owed are counted.

``test_cancel_sweep`` cancels at every step; this file has the other ways in which a node could be left behind.
"""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest
from aio.support import SOON, fired, free, queue, settled, soon, true
from ground import Ground

import zklock


def test_a_node_whose_reply_was_lost_is_adopted(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=4) as zk:
            lock = zk.mutex(path)
            await lock.acquire()
            await lock.release()
            hook = proxy("drop-reply", "create", "1", path)
            async with lock as hold:
                assert ground(f"fired {hook}") == "true"
                assert [f"{path}/{name}" for name in ground.children(path)] == [hold.node]
                # The hold has the node whose reply was lost.
                assert hold.node.endswith(f"{1:010d}")
            assert ground.children(path) == []

    asyncio.run(main())


@pytest.mark.parametrize("side", ["request", "reply"])
def test_a_release_whose_request_or_reply_is_lost_is_done_all_the_same(path: str, ground: Ground, side: str) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=4) as zk:
            async with zk.mutex(path):
                hook = proxy(f"drop-{side}", "delete", "1", path)
            assert ground(f"fired {hook}") == "true"
            assert ground.children(path) == [] and zk.stats().owed == 0

    asyncio.run(main())


def test_an_acquire_that_timed_out_or_was_not_to_wait_leaves_no_node(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path, timeout=0.05)
        hold = await other.aio.mutex(path).hold()
        with pytest.raises(zklock.Timeout):
            await lock.acquire()
        assert not await lock.acquire(timeout=0.05)
        assert not await lock.acquire(blocking=False)
        with pytest.raises(zklock.Timeout):
            await lock.hold()
        with pytest.raises(zklock.Timeout):
            async with lock:
                raise AssertionError("it is held")
        await settled(zk)
        assert [f"{path}/{name}" for name in ground.children(path)] == [hold.node]
        await hold.release()
        await free(zk, other, path, ground)

    asyncio.run(main())


def test_what_is_owed_is_counted_until_it_is_paid(other: zklock.Client, path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=4) as zk:
            async with other.mutex(path):
                tasks = [asyncio.create_task(client.acquire()) for client in [zk.mutex(path)]]
                await queue(ground, path, 2)
                assert zk.stats().owed == 0, "the task is still there"
                proxy("freeze", "both")
                tasks[0].cancel()
                await asyncio.wait(tasks)
                # A deletion is owed as soon as the task has its answer.
                assert zk.stats().owed == 1
                assert len(ground.children(path)) == 2
                proxy("thaw")
                await settled(zk)
                assert len(ground.children(path)) == 1, "paid means gone"

    asyncio.run(main())


def test_a_hold_that_is_forgotten_is_released_and_warned_of(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        with pytest.warns(ResourceWarning, match=f"the hold of {path} with token .* was never released"):
            await zk.aio.mutex(path).hold()
            gc.collect()
        await queue(ground, path, 0)
        # A hold that was lost or released gives no warning when it is dropped.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hold = await zk.aio.mutex(path).hold()
            hold.release()
            del hold
            gc.collect()
        await queue(ground, path, 0)
        await free(zk, other, path, ground)

    asyncio.run(main())


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


def test_what_acquire_got_outlives_the_lock_object(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        await zk.aio.mutex(path).acquire()
        gc.collect()
        assert zk.aio.mutex(path).locked() and len(ground.children(path)) == 1
        current = zk.aio.mutex(path).current
        assert current is not None and current.valid_for() > 0
        await zk.aio.mutex(path).release()
        assert ground.children(path) == [] and zk.aio.mutex(path).current is None

    asyncio.run(main())


def test_a_close_frees_what_is_held_and_ends_what_waits(
    hosts: str, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        busy = await other.aio.mutex(f"{path}/busy").hold()
        async with zklock.Client(hosts) as zk:
            hold = await zk.mutex(f"{path}/mine").hold()

            async def wait(name: str) -> None:
                async with zk.mutex(f"{path}/{name}"):
                    raise AssertionError("it is held")

            waits = [asyncio.create_task(wait(name)) for name in ("busy", "mine")]
            await queue(ground, f"{path}/busy", 2)
            await queue(ground, f"{path}/mine", 2)
        for task in waits:
            with pytest.raises(zklock.Closed):
                await soon(task)
        assert hold.lost.reason is zklock.LossReason.CLIENT_CLOSED
        assert ground.children(f"{path}/mine") == []
        assert len(ground.children(f"{path}/busy")) == 1
        await busy.release()
        # The client stays closed, for all calls.
        for call in (zk.mutex(path).acquire(), zk.mutex(path).hold(), zk.connect(), zk.mutex(path).contenders()):
            with pytest.raises(zklock.Closed):
                await call
        await zk.close()
        ground(f"delete-tree {path}")

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


def test_a_node_lost_with_its_session_is_followed_by_one_of_the_next_session(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=2) as zk:
            lock = zk.mutex(path)
            await lock.acquire()
            await lock.release()
            first = zk.session_id
            proxy("refuse", "on")
            hook = proxy("drop-reply", "create", "1", path)
            task = asyncio.create_task(lock.hold())
            assert await fired(ground, hook)
            assert len(ground.children(path)) == 1
            proxy("expire")
            assert ground.children(path) == []
            proxy("refuse", "off")
            hold = await asyncio.wait_for(task, SOON)
            assert [f"{path}/{name}" for name in ground.children(path)] == [hold.node]
            assert zk.session_id != first
            await hold.release()
            assert await true(lambda: ground.children(path) == [])

    asyncio.run(main())
