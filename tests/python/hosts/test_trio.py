"""trio, and anyio on either loop: the blocking calls, each on a thread of the host."""

from __future__ import annotations

import typing

import anyio
import anyio.to_thread
import pytest
from ground import Ground
from hosts.inside import PATIENCE, WORKERS, Inside, acquired

import zklock

trio: typing.Any = pytest.importorskip("trio")

def test_workers_of_trio_take_turns(zk: zklock.Client, ground: Ground, path: str) -> None:
    inside = Inside(WORKERS)

    async def work() -> None:
        await inside.come(lambda: acquired(zk.mutex(path)), trio.to_thread.run_sync, trio.sleep)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            while not inside.all:
                await trio.sleep(0.001)
            for _ in range(WORKERS - 1):
                nursery.start_soon(work)

    trio.run(main)
    inside.expect_turns()
    ground.expect_children(path, 0)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_workers_of_anyio_take_turns(zk: zklock.Client, ground: Ground, path: str, backend: str) -> None:
    inside = Inside(WORKERS)

    async def work() -> None:
        acquire = lambda: zk.mutex(path).hold(timeout=PATIENCE).release  # noqa: E731
        await inside.come(acquire, anyio.to_thread.run_sync, anyio.sleep)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            while not inside.all:
                await anyio.sleep(0.001)
            for _ in range(WORKERS - 1):
                group.start_soon(work)

    anyio.run(main, backend=backend)
    inside.expect_turns()
    ground.expect_children(path, 0)
