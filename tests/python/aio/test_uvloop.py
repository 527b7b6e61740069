"""uvloop, if it is installed."""

from __future__ import annotations

import asyncio
import typing

import pytest
from aio.support import run_in, settled
from aio.test_loop import everything
from ground import Ground

import zklock

uvloop: typing.Any = pytest.importorskip("uvloop")


def test_uvloop_serves_as_well(zk: zklock.Client, path: str, ground: Ground) -> None:
    run_in(uvloop.new_event_loop(), everything(zk, path, ground))


def test_a_cancel_at_any_moment_of_an_acquire_in_uvloop_leaves_no_node(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock, outcomes = zk.aio.mutex(path), set()
        for number in range(300):
            task = asyncio.create_task(lock.acquire())
            for _ in range(number * 37 % 300):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            outcomes.add(task.cancelled())
            if not task.cancelled():
                await lock.release()
        assert True in outcomes
        await settled(zk)
        assert ground.children(path) == [] and await lock.acquire(blocking=False)
        await lock.release()

    run_in(uvloop.new_event_loop(), main())
