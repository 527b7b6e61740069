"""Listing the queue, and removing a contender from it, in asyncio."""

from __future__ import annotations

import asyncio

import pytest
from aio.support import queue, soon
from ground import Ground

import zklock


def test_evict_and_break(zk: zklock.Client, other: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)
        hold = await lock.hold()
        waiting = asyncio.create_task(other.aio.mutex(path).hold())
        await queue(ground, path, 2)
        holder, waiter = await lock.contenders()
        assert (holder.node, holder.holds, waiter.holds) == (hold.node, True, False)
        with pytest.raises(zklock.InvalidInput):
            await lock.evict("/elsewhere/_c_")
        assert await other.aio.mutex(path).evict(holder.node) is True
        assert await soon(hold.lost) is zklock.LossReason.NODE_DELETED
        second = await soon(waiting)
        assert [one.node for one in await lock.revoke()] == [second.node]
        assert await soon(second.wanted) is True
        assert await lock.evict(holder.node) is False
        assert [one.node for one in await lock.break_lock()] == [second.node]
        assert await soon(second.lost) is zklock.LossReason.NODE_DELETED
        assert await lock.break_lock() == []
        for gone in (hold, second):
            with pytest.raises(zklock.LockLost):
                await gone.release()

    asyncio.run(main())


def test_words_that_nobody_knows(zk: zklock.Client, path: str) -> None:
    for name in ("dialect", "foreign", "watching"):
        with pytest.raises(zklock.InvalidInput):
            zk.aio.mutex(path, **{name: "klingon"})  # type: ignore[arg-type]
