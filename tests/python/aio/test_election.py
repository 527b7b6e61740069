"""The election in asyncio, and observers: a cancelled call loses no report."""

from __future__ import annotations

import asyncio
import gc
import typing

import pytest
from aio.support import Loop, run_in, settled, soon
from ground import Ground
from scenes import elsewhere

import zklock


async def until(observer: zklock.AsyncObserver, token: typing.Optional[int]) -> None:
    """Waits until this leader is reported."""
    async for leader in observer:
        if (leader.token if leader else None) == token:
            return


def test_an_observer_is_told_who_leads_and_of_every_change(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        observer = other.aio.election(path).observe()
        assert await soon(observer.next()) is None
        async with zk.aio.election(path) as lead:
            await soon(until(observer, lead.token))
            campaign = asyncio.create_task(other.aio.election(path).hold())
        successor = await soon(campaign)
        await soon(until(observer, successor.token))
        ground(f"delete {successor.node}")
        await soon(until(observer, None))
        assert await soon(successor.lost) is zklock.LossReason.NODE_DELETED

    asyncio.run(main())


@pytest.mark.parametrize("late", [False, True])
def test_what_a_cancelled_look_has_seen_the_next_one_tells(
    zk: zklock.Client, other: zklock.Client, path: str, late: bool
) -> None:
    loop = Loop()

    async def main() -> None:
        observer = other.aio.election(path).observe()
        assert await soon(observer.next()) is None
        for _ in range(5):
            look = asyncio.ensure_future(observer.next())
            await asyncio.sleep(0)
            await asyncio.sleep(0.02)
            called = loop.listen()
            lead = elsewhere(zk.election(path).hold)
            if late:
                # The observer has seen it, and the loop was called, but the task has not gone on yet.
                assert called.wait(10)
            look.cancel()
            await soon(asyncio.wait({look}))
            assert look.cancelled()
            await soon(until(observer, lead.token))
            elsewhere(lead.release)
            await soon(until(observer, None))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(observer.next(), 0.1)
        # Several calls are served one after the other.
        looks = [asyncio.ensure_future(observer.next()) for _ in range(2)]
        await asyncio.sleep(0.02)
        lead = elsewhere(zk.election(path).hold)
        first, _ = await soon(asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED))
        elsewhere(lead.release)
        told = [one and one.token for one in await soon(asyncio.gather(*looks))]
        assert sorted(told, key=str) == sorted([lead.token, None], key=str) and len(first) == 1

    run_in(loop, main())


def test_the_end_of_an_observer(zk: zklock.Client, hosts: str, path: str) -> None:
    async def main() -> None:
        apart = zklock.Client(hosts, session_timeout=4).aio
        observer = apart.election(path).observe()
        assert repr(observer) == f'<zklock.AsyncObserver of "{path}">'
        assert await soon(observer.next()) is None
        look = asyncio.ensure_future(observer.next())
        await asyncio.sleep(0.05)
        await apart.close()
        with pytest.raises(zklock.Closed):
            await soon(look)
        with pytest.raises(zklock.Closed):
            await soon(observer.__anext__())
        # An observer need not be read to its end, and its calls need not be awaited.
        look = asyncio.ensure_future(zk.aio.election(path).observe().next())
        await asyncio.sleep(0)
        look.cancel()
        del look, observer
        gc.collect()
        await settled(zk)
        with pytest.raises(zklock.InvalidInput):
            zk.aio.semaphore(path, 1).observe()

    asyncio.run(main())
