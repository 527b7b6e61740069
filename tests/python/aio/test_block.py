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


class Open(typing.NamedTuple):
    """An open block."""

    hold: zklock.AsyncHold
    end: typing.Callable[[], typing.Awaitable[object]]


async def by_generator(lock: zklock.AsyncLock) -> Open:
    generator = stream(lock)
    return Open(await generator.__anext__(), generator.aclose)


async def by_decorated_generator(lock: zklock.AsyncLock) -> Open:
    manager = contextlib.asynccontextmanager(stream)(lock)
    return Open(await manager.__aenter__(), lambda: manager.__aexit__(None, None, None))


async def by_task(lock: zklock.AsyncLock) -> Open:
    """The block ends in another task than it began in, as in some frameworks."""
    opened = await asyncio.create_task(by_generator(lock))

    async def end() -> None:
        await opened.end()

    return Open(opened.hold, lambda: asyncio.create_task(end()))


WAYS = [by_generator, by_decorated_generator, by_task]


@pytest.mark.parametrize("way", WAYS)
async def test_of_two_blocks_in_one_task_each_ends_its_own_hold(
    zk: zklock.Client,
    path: str,
    way: typing.Callable[[zklock.AsyncLock], typing.Awaitable[Open]],
) -> None:
    # A loss would cancel the consumer of a bare generator, which is refused: see test_cancelling.py.
    lock = zk.aio.semaphore(path, 3, cancel=way is by_decorated_generator)
    first, second = await way(lock), await way(lock)
    await first.end()
    assert first.hold.state is zklock.HoldState.RELEASED
    assert second.hold.valid_for() > 0 and await second.hold.confirm() > 0
    await second.end()
    assert second.hold.state is zklock.HoldState.RELEASED
