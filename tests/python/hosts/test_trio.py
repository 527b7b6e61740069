"""trio, and anyio on either loop: the blocking calls, each on a thread of the host."""

from __future__ import annotations

import functools
import typing

import anyio
import anyio.to_thread
import pytest
from ground import Ground
from hosts.inside import PATIENCE, WORKERS, Inside, acquired

import zklock

trio: typing.Any = pytest.importorskip("trio")


class Host(typing.NamedTuple):
    """How a program runs in a loop, and what it does there."""

    run: typing.Callable[..., object]
    in_a_thread: typing.Callable[..., typing.Awaitable[typing.Any]]
    sleep: typing.Callable[[float], typing.Awaitable[object]]
    group: typing.Callable[[], typing.Any]
    # As calls of the lock, or with its hold as a value.
    acquire: typing.Callable[[zklock.Lock], typing.Callable[[], None]]


def held(lock: zklock.Lock) -> typing.Callable[[], None]:
    return lock.hold(timeout=PATIENCE).release


ANYIO = (anyio.to_thread.run_sync, anyio.sleep, anyio.create_task_group, held)
HOSTS = {
    "trio": Host(trio.run, trio.to_thread.run_sync, trio.sleep, trio.open_nursery, acquired),
    "anyio on asyncio": Host(functools.partial(anyio.run, backend="asyncio"), *ANYIO),
    "anyio on trio": Host(functools.partial(anyio.run, backend="trio"), *ANYIO),
}


@pytest.mark.parametrize("host", HOSTS)
def test_workers_take_turns(zk: zklock.Client, ground: Ground, path: str, host: str) -> None:
    run, in_a_thread, sleep, group, acquire = HOSTS[host]
    inside = Inside(WORKERS)

    async def work() -> None:
        await inside.come(lambda: acquire(zk.mutex(path)), in_a_thread, sleep)

    async def main() -> None:
        async with group() as tasks:
            tasks.start_soon(work)
            while not inside.all:
                await sleep(0.001)
            for _ in range(WORKERS - 1):
                tasks.start_soon(work)

    run(main)
    inside.expect_turns()
    ground.expect_children(path, 0)
