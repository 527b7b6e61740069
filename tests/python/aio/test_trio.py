"""Under trio, where only blocks of a lock work, all other coroutines raise an error that says so, and leave nothing behind."""

from __future__ import annotations

import typing

import anyio
import pytest
from ground import Ground

import zklock

trio: typing.Any = pytest.importorskip("trio")


def test_trio_is_told_that_it_is_not_served(zk: zklock.Client, path: str, ground: Ground) -> None:
    lock, hold = zk.aio.mutex(path), zk.mutex(f"{path}/held").hold()

    async def main() -> None:
        async def loss() -> None:
            await hold.lost

        async def client() -> None:
            async with zklock.Client("127.0.0.1:1"):
                raise AssertionError("it is connected")

        calls: list[typing.Callable[[], typing.Awaitable[object]]] = [
            lock.acquire,
            lock.hold,
            lock.contenders,
            lock.try_acquire,
            loss,
            client,
        ]
        for call in calls:
            with pytest.raises(RuntimeError, match="under trio .* make the blocking call in a thread"):
                await call()
        assert not lock.locked()

    try:
        trio.run(main)
        anyio.run(main, backend="trio")
    finally:
        hold.release()
    # The attempts that they had started are withdrawn.
    ground.expect_children(f"{path}/held", 0)
    ground(f"delete-tree {path}")
    with zk.mutex(path):
        assert len(ground.children(path)) == 1


def test_trio_is_told_even_where_there_is_nothing_to_wait_for(zk: zklock.Client, path: str) -> None:
    """A call that works by chance in a test would fail in production."""
    served = []

    async def main() -> None:
        for number in range(1000):
            try:
                await zk.aio.connect()
                served.append(number)
            except RuntimeError:
                pass

    trio.run(main)
    assert served == []
