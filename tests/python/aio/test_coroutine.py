"""Calls return coroutines, with which asyncio and its users can do everything that they do with coroutines."""

from __future__ import annotations

import asyncio
import collections.abc
import gc
import inspect
import sys
import typing

import pytest
from aio.support import SOON, queue, soon, steps
from ground import Ground

import zklock


async def test_it_is_a_coroutine_for_asyncio_and_an_awaitable_for_all(
    zk: zklock.Client, path: str, unraisable: list[typing.Any]
) -> None:
    lock = zk.aio.mutex(path)
    for call in (lock.acquire(), lock.hold(), lock.contenders(), zk.aio.connect(), lock.__aenter__()):
        assert asyncio.iscoroutine(call) and inspect.isawaitable(call)
        assert isinstance(call, collections.abc.Coroutine)
        assert "not awaited yet" in repr(call)
        call.close()
        assert "over" in repr(call)
    del call
    gc.collect()
    # A closed coroutine need not be awaited, so there is no warning, which would be an error here.
    assert unraisable == [] and not lock.locked()


def test_a_coroutine_that_is_never_awaited_warns_and_does_nothing(zk: zklock.Client, path: str, ground: Ground) -> None:
    lock = zk.aio.mutex(path)
    calls: dict[str, typing.Callable[[], object]] = {
        "AsyncLock.acquire": lock.acquire,
        "AsyncLock.hold": lock.hold,
        "AsyncLock.contenders": lock.contenders,
        "AsyncClient.connect": zk.aio.connect,
    }
    for name, call in calls.items():
        with pytest.warns(RuntimeWarning, match=f"^{name} was never awaited$"):
            call()
            gc.collect()
    assert zk.stats().grants == 0 and ground.children(path) == []


async def test_awaiting_twice_is_an_error(zk: zklock.Client, path: str, ground: Ground) -> None:
    lock = zk.aio.mutex(path)
    call = lock.acquire()
    assert await call
    for _ in range(2):
        with pytest.raises(RuntimeError, match="AsyncLock.acquire has been awaited already"):
            await call
    await lock.release()
    cancelled = lock.acquire()
    task = asyncio.create_task(cancelled)
    await steps(1)
    if not task.cancel():
        # Granted in its first step: this thread must have slept in it.
        await lock.release()
    await asyncio.wait({task})
    with pytest.raises(RuntimeError, match="awaited already"):
        await cancelled
    await queue(ground, path, 0)


async def test_awaiting_in_two_tasks_is_an_error_for_one(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    lock = zk.aio.mutex(path)
    async with other.mutex(path):
        call = lock.acquire()
        tasks = [asyncio.create_task(call) for _ in range(2)]
        await queue(ground, path, 2)
    done, _ = await asyncio.wait(tasks, timeout=SOON)
    assert len(done) == 2
    results = [task.exception() or task.result() for task in tasks]
    assert sorted(map(type, results), key=repr) == [RuntimeError, bool], results
    assert zk.stats().grants == 1
    await lock.release()
    assert ground.children(path) == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
async def test_eager_tasks_own_their_locks(zk: zklock.Client, path: str, ground: Ground) -> None:
    eager: typing.Any = vars(asyncio)["eager_task_factory"]
    asyncio.get_running_loop().set_task_factory(eager)
    lock, order = zk.aio.mutex(path, reentrant=True), []

    async def work(number: int) -> None:
        async with lock as outer, lock as inner:
            assert outer.token == inner.token
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(asyncio.create_task(work(number)) for number in range(10)))
    assert sorted(order) == list(range(10))
    # It may even be granted in its first step, which is within this call.
    task = asyncio.create_task(lock.acquire())
    if not task.cancel():
        await lock.release()
    await asyncio.wait({task})
    await queue(ground, path, 0)


def test_without_a_loop_it_says_so(zk: zklock.Client, path: str, ground: Ground) -> None:
    call = zk.aio.mutex(path).acquire()
    with pytest.raises(RuntimeError, match="run in an asyncio event loop"):
        call.send(None)
    # The attempt that it had started is withdrawn.
    ground.expect_children(path, 0)


@pytest.mark.parametrize("connected", [True, False])
async def test_the_first_tasks_at_a_new_lock_are_served_in_the_order_of_their_arrival(
    hosts: str, path: str, connected: bool
) -> None:
    zk = zklock.Client(hosts).aio
    if connected:
        await zk.connect()
    order: list[int] = []

    async def work(number: int) -> None:
        # A lock object of its own, as in most programs.
        async with zk.mutex(path):
            order.append(number)

    await soon(asyncio.gather(*map(work, range(10))))
    assert order == list(range(10))
    await zk.close()
