"""The barrier and the double barrier in asyncio."""

from __future__ import annotations

import asyncio
import random

import pytest
from aio.support import settled, soon, true
from ground import Ground

import zklock


def test_who_comes_waits_until_it_is_removed(zk: zklock.Client, path: str) -> None:
    async def main() -> None:
        at = path.replace("/locks/", "/barriers/")
        barrier = zk.aio.barrier(at)
        assert await barrier.wait() and not await barrier.is_set() and not await barrier.remove()
        assert await barrier.set() and not await barrier.set() and await barrier.is_set()
        assert await barrier.wait(timeout=0.1) is False and await barrier.wait(timeout=0) is False
        waiting = [asyncio.create_task(barrier.wait()) for _ in range(3)]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(barrier.wait(), 0.1)
        assert not any(task.done() for task in waiting)
        assert await barrier.remove()
        assert await soon(asyncio.gather(*waiting)) == [True, True, True]

    asyncio.run(main())


def test_all_begin_together_and_end_together(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        at, inside = path.replace("/locks/", "/barriers/"), 0

        async def work(client: zklock.AsyncClient) -> None:
            nonlocal inside
            for turn in range(3):
                async with client.double_barrier(at, 4, timeout=10):
                    assert inside >= 4 * turn
                    inside += 1
                assert inside >= 4 * (turn + 1)

        await asyncio.wait_for(asyncio.gather(*(work([zk.aio, other.aio][number % 2]) for number in range(4))), 40)
        assert await true(lambda: set(ground.children(at)) <= {"ready"})

    asyncio.run(main())


def test_a_block_that_raises_waits_for_nobody(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        at = path.replace("/locks/", "/barriers/")
        waiting = asyncio.create_task(other.aio.double_barrier(at, 2).enter())
        within: list[zklock.AsyncMember] = []
        with pytest.raises(LookupError):
            async with zk.double_barrier(at, 2) as member:
                assert isinstance(member, zklock.AsyncMember)
                within += [member, await soon(waiting)]
                raise LookupError
        mine, its = within
        with pytest.raises(zklock.NotHeld):
            await mine.leave()
        await soon(its.leave())
        with pytest.raises(zklock.NotHeld):
            await its.leave()
        # Leaving begins at once, even without an await.
        async with await zk.aio.double_barrier(at, 1).enter(timeout=5) as member:
            assert member.path == at and member.loss is None
        (await zk.aio.double_barrier(at, 1).enter()).leave()
        assert await true(lambda: set(ground.children(at)) <= {"ready"})

    asyncio.run(main())


def test_a_cancel_at_any_moment_leaves_nothing(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    chance = random.Random(7)

    async def main() -> None:
        at = path.replace("/locks/", "/barriers/")

        async def work() -> None:
            async with zk.aio.double_barrier(at, 2):
                await asyncio.Event().wait()

        for turn in range(30):
            partner = None
            task = asyncio.create_task(work())
            await asyncio.sleep(chance.uniform(0, 0.02))
            if turn % 2:
                partner = asyncio.create_task(other.aio.double_barrier(at, 2).enter(timeout=0.5))
                await asyncio.sleep(chance.uniform(0, 0.02))
            task.cancel()
            await soon(asyncio.wait({task}))
            assert task.cancelled()
            if partner:
                try:
                    member = await soon(partner)
                except zklock.Timeout:
                    continue
                await soon(member.leave())
        await settled(zk)
        await settled(other)
        assert await true(lambda: set(ground.children(at)) <= {"ready"})

    asyncio.run(main())
