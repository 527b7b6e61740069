"""Promise 5: whenever a task is cancelled, above all around the grant, it leaves no hold and no node."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import typing

import pytest
from aio.support import SOON, counted, free, granted, queue, settled, soon, steps, true
from ground import Ground
from scenes import elsewhere, eventually, hook

import zklock

SESSION = 4.0


async def by_acquire(lock: zklock.AsyncLock) -> None:
    await lock.acquire()
    await holds(lock)


async def holds(lock: zklock.AsyncLock) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await lock.release()


async def by_hold(lock: zklock.AsyncLock) -> None:
    async with await lock.hold():
        await asyncio.Event().wait()


async def by_block(lock: zklock.AsyncLock) -> None:
    async with lock:
        await asyncio.Event().wait()


async def by_wait_for(lock: zklock.AsyncLock) -> None:
    await asyncio.wait_for(lock.acquire(), SOON)
    await holds(lock)


WAYS = [by_acquire, by_hold, by_block, by_wait_for]


async def ends(task: asyncio.Future[typing.Any]) -> None:
    """Waits until the task ends, which must be by its cancel."""
    done, _ = await asyncio.wait({task}, timeout=SOON)
    assert done and task.cancelled(), task


@pytest.mark.parametrize("count", range(7))
@pytest.mark.parametrize("way", WAYS)
async def test_a_cancel_in_any_round_of_the_loop_after_the_grant_leaves_no_hold(
    zk: zklock.Client,
    other: zklock.Client,
    path: str,
    ground: Ground,
    way: typing.Callable[[zklock.AsyncLock], typing.Coroutine[typing.Any, typing.Any, None]],
    count: int,
) -> None:
    lock = zk.aio.mutex(path)
    task = await granted(ground, other.mutex(path), path, way(lock))
    assert zk.stats().grants == 1 and not lock.locked()
    await steps(count)
    # In round 0 the loop has the grant, in round 1 the future, then the task.
    assert lock.locked() == (count > 1) or way is by_wait_for
    task.cancel()
    if way is by_wait_for and sys.version_info < (3, 12):
        # At this point asyncio's own version ignored the cancel if there was a result.
        await asyncio.wait({task}, timeout=0.1)
        task.cancel()
    await ends(task)
    await free(zk, other, path, ground)


@pytest.mark.parametrize("block", [False, True])
async def test_a_release_that_is_cancelled_goes_on(
    other: zklock.Client, path: str, ground: Ground, block: bool
) -> None:
    proxy = ground.proxy("1")
    async with zklock.Client(proxy.hosts, session_timeout=SESSION) as zk:
        lock = zk.mutex(path)

        async def work() -> None:
            if block:
                async with lock:
                    return
            await lock.acquire()
            await lock.release()

        deleting = hook(proxy, "hold-request", "delete", path)
        task = asyncio.create_task(work())
        await asyncio.to_thread(deleting.wait)
        task.cancel()
        await ends(task)
        assert not lock.locked()
        assert zk.stats().owed == 1 and len(ground.children(path)) == 1
        deleting.open()
        await settled(zk)
        assert ground.children(path) == []
        await (await other.aio.mutex(path).hold(timeout=0)).release()


async def test_a_cancel_while_it_connects_leaves_no_node(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")
    client = zklock.Client(proxy.hosts, session_timeout=SESSION)
    connecting = hook(proxy, "hold-reply", "connect")
    proxy("record")
    tasks = [asyncio.create_task(client.aio.mutex(path).acquire()) for _ in range(3)]
    await asyncio.to_thread(connecting.wait)
    for task in tasks[:2]:
        task.cancel()
        await ends(task)
    connecting.open()
    # The connection is made for the call that still wants it, and for no other.
    assert await soon(tasks[2])
    assert proxy("messages").count("request:create:") == proxy("messages").count(f"request:create:{path}")
    assert len(ground.children(path)) == 1
    await client.aio.mutex(path).release()
    await client.aio.close()


async def test_a_wait_for_a_loss_that_is_cancelled_does_not_harm_the_hold(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async with zk.aio.mutex(path) as hold:
        for count in range(5):
            waiter = asyncio.ensure_future(hold.lost)
            await steps(count)
            waiter.cancel()
            await ends(waiter)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(hold.lost, 0.01)
        assert hold.state is zklock.HoldState.HELD and await hold.confirm() > 0
    assert ground.children(path) == []


async def test_a_close_that_is_cancelled_goes_on(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")
    zk = zklock.Client(proxy.hosts, session_timeout=20).aio
    await zk.mutex(path).acquire()
    held = hook(proxy, "hold-request", "close")
    closing = asyncio.ensure_future(zk.close())
    await asyncio.to_thread(held.wait)
    closing.cancel()
    await ends(closing)
    assert len(ground.children(path)) == 1
    held.open()
    # Its session would last for longer.
    await queue(ground, path, 0)


@pytest.mark.parametrize("late", [False, True])
async def test_what_a_cancelled_look_at_an_election_has_seen_the_next_one_tells(
    zk: zklock.Client, other: zklock.Client, path: str, late: bool
) -> None:
    observer = other.aio.election(path).observe()
    assert await soon(observer.next()) is None
    look = asyncio.ensure_future(observer.next())
    await steps(1)
    calls = counted()
    lead = elsewhere(zk.election(path).hold)
    if late:
        # The observer has seen it, and the loop was called, but the task has not gone on yet.
        eventually(lambda: calls)
    look.cancel()
    await ends(look)
    while (leader := await soon(observer.__anext__())) is None:
        pass
    assert leader.token == lead.token
    # Several calls are served one after the other.
    looks = [asyncio.ensure_future(observer.next()) for _ in range(2)]
    await steps(1)
    elsewhere(lead.release)
    await soon(asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED))
    lead = elsewhere(zk.election(path).hold)
    told = [one and one.token for one in await soon(asyncio.gather(*looks))]
    assert sorted(told, key=str) == sorted([lead.token, None], key=str)
    elsewhere(lead.release)


async def test_a_cancelled_wait_at_a_barrier_leaves_nothing(zk: zklock.Client, path: str, ground: Ground) -> None:
    at = path.replace("/locks/", "/barriers/")
    for count in (0, 1, 2, 50):
        waits: list[asyncio.Task[typing.Any]] = [asyncio.create_task(zk.aio.double_barrier(at, 2).enter())]
        await steps(count)
        if count == 50:
            await queue(ground, at, 1)
            await zk.aio.barrier(f"{at}-set").set()
            waits.append(asyncio.create_task(zk.aio.barrier(f"{at}-set").wait()))
            await asyncio.sleep(0.05)
        for wait in waits:
            wait.cancel()
            await ends(wait)
        await settled(zk)
        assert await true(lambda: set(ground.children(at)) <= {"ready"})
