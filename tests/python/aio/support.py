"""Helpers for the tests in asyncio."""

from __future__ import annotations

import asyncio
import time
import typing

from ground import Ground
from scenes import SOON as SOON
from scenes import elsewhere, eventually

import zklock

T = typing.TypeVar("T")


class Loop(asyncio.SelectorEventLoop):
    """A loop that counts calls from other threads, also those that it refuses because it is closed. Tests run in one."""

    calls: list[None] = []
    # What such a call begins with.
    before_a_call: typing.Callable[[], object] = staticmethod(lambda: None)

    def count(self) -> list[None]:
        """The calls from now on."""
        self.calls = []
        return self.calls

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: typing.Any, *given: typing.Any, context: typing.Any = None
    ) -> asyncio.Handle:
        # An earlier call must not count as a later one, however long its thread stays here.
        calls = self.calls
        self.before_a_call()
        try:
            return super().call_soon_threadsafe(callback, *given, context=context)
        finally:
            calls.append(None)


def counted() -> list[None]:
    """The calls of the running loop from now on."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    return loop.count()


def run_in(loop: asyncio.AbstractEventLoop, coroutine: typing.Coroutine[typing.Any, typing.Any, T]) -> T:
    """Like ``asyncio.run``, in this loop."""
    try:
        return loop.run_until_complete(coroutine)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def soon(awaitable: typing.Awaitable[T]) -> T:
    """Awaits something, but not for ever."""
    return await asyncio.wait_for(awaitable, SOON)


async def steps(count: int) -> None:
    """Lets the loop make this number of rounds."""
    for _ in range(count):
        await asyncio.sleep(0)


async def true(condition: typing.Callable[[], bool], within: float = SOON) -> bool:
    """Waits until the condition is true, but not for ever."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.005)
    return True


async def queue(ground: Ground, path: str, length: int) -> list[str]:
    """Waits until the queue has this length, while the loop goes on."""
    return await asyncio.to_thread(ground.expect_children, path, length)


async def granted(
    ground: Ground, holder: zklock.Lock, path: str, work: typing.Coroutine[typing.Any, typing.Any, T]
) -> asyncio.Task[T]:
    """A task that was granted the lock. It only learns of that when the loop goes on, which is blocked while the grant comes."""
    hold = elsewhere(holder.hold)
    task = asyncio.create_task(work)
    # Without a thread that would call the loop.
    assert await true(lambda: len(ground.children(path)) == 2)
    calls = counted()
    elsewhere(hold.release)
    eventually(lambda: calls)
    return task


async def settled(zk: zklock.Client | zklock.AsyncClient) -> None:
    """Waits until the client owes nothing."""
    assert await true(lambda: zk.stats().owed == 0), zk


async def free(zk: zklock.Client, other: zklock.Client, path: str, ground: Ground) -> None:
    """Checks that nothing was left behind at the path, and another client can have the lock at once."""
    await settled(zk)
    assert ground.children(path) == []
    assert not zk.mutex(path).locked()
    lock = other.aio.mutex(path)
    assert await lock.acquire(blocking=False)
    await lock.release()
