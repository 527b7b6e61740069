"""Blocks of one lock in one task that end in another order than they began: each ends its own hold."""

from __future__ import annotations

import asyncio
import contextlib
import random
import typing

import pytest

import zklock


class Open(typing.NamedTuple):
    """An open block."""

    hold: zklock.AsyncHold
    end: typing.Callable[[], typing.Awaitable[object]]


async def stream(lock: zklock.AsyncLock) -> typing.AsyncGenerator[zklock.AsyncHold]:
    async with lock as hold:
        yield hold


async def by_generator(lock: zklock.AsyncLock) -> Open:
    generator = stream(lock)
    return Open(await generator.__anext__(), generator.aclose)


async def by_failing_generator(lock: zklock.AsyncLock) -> Open:
    generator = stream(lock)

    async def end() -> None:
        with pytest.raises(LookupError):
            await generator.athrow(LookupError())

    return Open(await generator.__anext__(), end)


async def by_decorated_generator(lock: zklock.AsyncLock) -> Open:
    manager = contextlib.asynccontextmanager(stream)(lock)
    return Open(await manager.__aenter__(), lambda: manager.__aexit__(None, None, None))


async def by_stack(lock: zklock.AsyncLock) -> Open:
    stack = contextlib.AsyncExitStack()
    return Open(await stack.enter_async_context(lock), stack.aclose)


async def by_task(lock: zklock.AsyncLock) -> Open:
    """The block ends in another task than it began in, as in some frameworks."""
    opened = await asyncio.create_task(by_generator(lock))

    async def end() -> None:
        await opened.end()

    return Open(opened.hold, lambda: asyncio.create_task(end()))


WAYS = [by_generator, by_failing_generator, by_decorated_generator, by_stack, by_task]


@pytest.mark.parametrize("way", WAYS)
def test_the_first_ends_first(
    zk: zklock.Client,
    path: str,
    way: typing.Callable[[zklock.AsyncLock], typing.Awaitable[Open]],
) -> None:
    async def main() -> None:
        lock = zk.aio.semaphore(path, 3)
        first, second = await way(lock), await way(lock)
        await first.end()
        assert first.hold.state is zklock.HoldState.RELEASED
        assert second.hold.valid_for() > 0 and await second.hold.confirm() > 0
        await second.end()
        assert second.hold.state is zklock.HoldState.RELEASED

    asyncio.run(main())


def test_they_end_in_any_order(zk: zklock.Client, path: str) -> None:
    async def main() -> None:
        chance, lock = random.Random(7), zk.aio.semaphore(path, 20)
        for _ in range(5):
            blocks = [await chance.choice(WAYS)(lock) for _ in range(10)]
            chance.shuffle(blocks)
            while blocks:
                ended = blocks.pop()
                await ended.end()
                assert ended.hold.state is zklock.HoldState.RELEASED
                assert all(block.hold.state is zklock.HoldState.HELD for block in blocks)
        assert not lock.locked()

    asyncio.run(main())
