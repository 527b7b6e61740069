"""The end of an ``async with`` block in a generator, and within the interpreter. For the rest see scenarios/test_exit.py."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import sys
import types
import typing

import pytest
from aio.support import queue, steps, true
from ground import Ground

import zklock


@pytest.mark.parametrize("options", [{}, {"reentrant": True}, {"cancel": False}])
async def test_a_signal_that_raises_while_a_block_ends_leaves_no_hold_behind(
    zk: zklock.Client, path: str, ground: Ground, options: dict[str, typing.Any]
) -> None:
    """Context managers written in Python can be interrupted like this, and would then leave the hold behind."""
    lock, raised_in = zk.aio.mutex(path, **options), ["nothing"]
    for nth in range(9):
        calls = itertools.count()

        def interrupt(frame: types.FrameType, event: str, _: object) -> None:
            if event == "call" and next(calls) == nth:
                raised_in.append(frame.f_code.co_name)
                raise KeyboardInterrupt

        await lock.__aenter__()
        with contextlib.suppress(KeyboardInterrupt):
            sys.setprofile(interrupt)
            try:
                ending = lock.__aexit__(None, None, None)
            finally:
                sys.setprofile(None)
            await ending
        await queue(ground, path, 0)
        assert not lock.locked()
    assert ("leave" in raised_in) == options.get("cancel", True)


async def stream(lock: zklock.AsyncLock) -> typing.AsyncGenerator[zklock.AsyncHold, None]:
    async with lock as hold:
        yield hold


async def test_a_generator_that_is_forgotten_within_a_block_releases(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    lock = zk.aio.mutex(path, cancel=False)
    async for _ in stream(lock):
        assert lock.locked()
        break
    # The loop closes the generator, in another task.
    gc.collect()
    await steps(3)
    assert await true(lambda: not lock.locked())
    await queue(ground, path, 0)
    assert await other.aio.mutex(path).acquire(blocking=False)
    await other.aio.mutex(path).release()


async def test_of_two_blocks_in_one_task_each_ends_its_own_hold(zk: zklock.Client, path: str) -> None:
    lock = zk.aio.semaphore(path, 3, cancel=False)
    blocks = [stream(lock) for _ in range(2)]
    # They end in another task than they began in, as in some frameworks.
    first, second = [await asyncio.ensure_future(block.__anext__()) for block in blocks]
    await asyncio.ensure_future(blocks[0].aclose())
    assert first.state is zklock.HoldState.RELEASED
    assert second.valid_for() > 0 and await second.confirm() > 0
    await asyncio.ensure_future(blocks[1].aclose())
    assert second.state is zklock.HoldState.RELEASED
