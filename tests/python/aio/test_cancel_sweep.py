"""Promise 5: whenever a task is cancelled, above all around the grant, it leaves no hold and no node."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import typing

import pytest
from aio.support import SOON, Loop, fired, free, queue, run_in, settled, soon, steps, true
from ground import Ground
from scenes import elsewhere

import zklock

# So short that a wait outlasts its heartbeat, and the grant needs a check.
SHORT, HEARTBEAT = 2.0, 0.2

# The messages of an acquire that has to queue.
CONTENDED = [
    ("request", "create"),
    ("reply", "create"),
    ("request", "get-children"),
    ("reply", "get-children"),
    ("request", "get-data"),
    ("reply", "get-data"),
    ("reply", "event"),
    ("request", "multi"),
    ("reply", "multi"),
]


async def by_acquire(lock: zklock.AsyncLock) -> None:
    await lock.acquire()
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
    try:
        await asyncio.Event().wait()
    finally:
        await lock.release()


WAYS = [by_acquire, by_hold, by_block, by_wait_for]


async def ends(task: asyncio.Future[typing.Any]) -> None:
    """Waits until the task ends, which must be by its cancel."""
    done, _ = await asyncio.wait({task}, timeout=SOON)
    assert done and task.cancelled(), task


async def waiting(ground: Ground, path: str) -> None:
    """Waits until a task is in the queue, without a thread that would call the loop."""
    assert await true(lambda: len(ground.children(path)) == 2)


@pytest.mark.parametrize("count", range(7))
@pytest.mark.parametrize("way", WAYS)
def test_a_cancel_in_any_round_of_the_loop_after_the_grant_leaves_no_hold(
    zk: zklock.Client,
    other: zklock.Client,
    path: str,
    ground: Ground,
    way: typing.Callable[[zklock.AsyncLock], typing.Coroutine[typing.Any, typing.Any, None]],
    count: int,
) -> None:
    loop = Loop()

    async def main() -> None:
        holder, lock = other.mutex(path), zk.aio.mutex(path)
        elsewhere(holder.acquire)
        task = asyncio.create_task(way(lock))
        await waiting(ground, path)
        called = loop.listen()
        elsewhere(holder.release)
        # The loop is blocked while the grant comes, so the task only learns of it when the loop goes on.
        assert called.wait(SOON)
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

    run_in(loop, main())


@pytest.mark.parametrize("count", range(4))
def test_a_cancel_of_the_bare_coroutine_is_either_a_grant_or_a_cancel(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, count: int
) -> None:
    loop = Loop()

    async def main() -> None:
        holder, lock = other.mutex(path), zk.aio.mutex(path)
        elsewhere(holder.acquire)
        task = asyncio.create_task(lock.acquire())
        await waiting(ground, path)
        called = loop.listen()
        elsewhere(holder.release)
        assert called.wait(SOON)
        await steps(count)
        assert task.cancel() == (count < 2)
        await asyncio.wait({task})
        assert task.cancelled() == (count < 2)
        if not task.cancelled():
            # The task has its answer, so its caller has the lock.
            assert task.result() and lock.locked()
            await lock.release()
        await free(zk, other, path, ground)

    run_in(loop, main())


@pytest.mark.parametrize("count", range(3))
def test_two_cancels_leave_no_hold_either(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, count: int
) -> None:
    loop = Loop()

    async def main() -> None:
        holder, lock = other.mutex(path), zk.aio.mutex(path)
        elsewhere(holder.acquire)
        cancels: list[asyncio.CancelledError] = []

        async def stubborn() -> None:
            while len(cancels) < 2:
                try:
                    async with lock:
                        await asyncio.Event().wait()
                except asyncio.CancelledError as cancel:
                    cancels.append(cancel)
            raise cancels[-1]

        task = asyncio.create_task(stubborn())
        await waiting(ground, path)
        called = loop.listen()
        elsewhere(holder.release)
        assert called.wait(SOON)
        await steps(count)
        task.cancel()
        task.cancel()
        # It tries again, and is cancelled at whichever step it has reached.
        await steps(count)
        while not task.done():
            task.cancel()
            await asyncio.sleep(0.001)
        assert len(cancels) == 2
        await free(zk, other, path, ground)

    run_in(loop, main())


@pytest.mark.parametrize("side, kind", CONTENDED)
def test_a_cancel_at_any_step_in_a_queue_leaves_no_node(
    other: zklock.Client, path: str, ground: Ground, side: str, kind: str
) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=SHORT) as zk:
            hold = await other.aio.mutex(path).hold()
            hook = proxy(f"hold-{side}", kind, "1", path)
            task = asyncio.create_task(zk.mutex(path).acquire())
            late = kind in ("event", "multi")
            if late:
                await queue(ground, path, 2)
                await asyncio.sleep(HEARTBEAT)
                await hold.release()
            assert await fired(ground, hook)
            task.cancel()
            await ends(task)
            # The message is held, so the client cannot know yet what became of the node.
            assert await true(lambda: zk.stats().owed == 1)
            ground(f"open {hook}")
            await settled(zk)
            if not late:
                assert [f"{path}/{name}" for name in ground.children(path)] == [hold.node]
                await hold.release()
            assert ground.children(path) == []

    asyncio.run(main())


def test_a_cancel_at_any_moment_of_an_acquire_of_a_free_lock_leaves_no_node(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)
        begun = time.perf_counter()
        for _ in range(10):
            await lock.acquire()
            await lock.release()
        # The grants come in the first half of this span, the cancels at any time in it.
        span = (time.perf_counter() - begun) / 10
        granted = cancelled = 0
        for number in range(400):
            task = asyncio.create_task(lock.acquire())
            pause = span * (number * 37 % 100) / 100
            if number % 2:
                asyncio.get_running_loop().call_later(pause, task.cancel)
            else:
                end = time.perf_counter() + pause
                while time.perf_counter() < end:
                    await asyncio.sleep(0)
                task.cancel()
            await asyncio.wait({task})
            # About half come too early and half too late, however fast the machine is at the moment.
            if task.cancelled():
                cancelled += 1
                span *= 1.02
            else:
                granted += 1
                span *= 0.98
                assert task.result()
                await lock.release()
        assert granted and cancelled, f"no race: {granted} granted, {cancelled} cancelled"
        await free(zk, other, path, ground)

    asyncio.run(main())


def test_a_cancel_at_any_moment_of_a_hand_over_leaves_no_node(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock, there = zk.aio.mutex(path), other.aio.mutex(path)
        entered, spans, span = [0], [], 0.0

        async def enter() -> None:
            async with lock:
                entered[0] += 1

        for number in range(250):
            hold = await there.hold()
            task = asyncio.create_task(enter())
            # It is on the wire before the release, though perhaps not yet in the queue.
            await steps(1)
            begun = time.perf_counter()
            released = hold.release()
            if number < 10:
                await task
                spans.append(time.perf_counter() - begun)
                span = sorted(spans)[len(spans) // 2] * 1.5
            else:
                before = entered[0]
                end = begun + span * (number * 37 % 100) / 100
                while time.perf_counter() < end:
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait({task})
                span *= 0.98 if entered[0] > before else 1.02
            await released
        assert 10 < entered[0] < 250, "no race"
        await free(zk, other, path, ground)

    asyncio.run(main())


def test_a_timeout_of_asyncio_at_any_moment_leaves_no_node(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)
        begun = time.perf_counter()
        for _ in range(10):
            await lock.acquire()
            await lock.release()
        span = (time.perf_counter() - begun) / 10
        granted = late = 0
        for number in range(300):
            try:
                await asyncio.wait_for(lock.acquire(), span * (number * 37 % 100 + 1) / 100)
                granted += 1
                span *= 0.98
                await lock.release()
            except asyncio.TimeoutError:
                late += 1
                span *= 1.02
                # Nobody holds it without knowing that.
                assert not lock.locked()
        assert granted and late, f"no race: {granted} granted, {late} late"
        await free(zk, other, path, ground)

    asyncio.run(main())


@pytest.mark.parametrize("block", [False, True])
def test_a_release_that_is_cancelled_goes_on(other: zklock.Client, path: str, ground: Ground, block: bool) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=SHORT) as zk:
            lock, leave = zk.mutex(path), asyncio.Event()

            async def work() -> None:
                if block:
                    async with lock:
                        await leave.wait()
                else:
                    await lock.acquire()
                    await leave.wait()
                    await lock.release()

            task = asyncio.create_task(work())
            await queue(ground, path, 1)
            hook = proxy("hold-request", "delete", "1", path)
            leave.set()
            assert await fired(ground, hook)
            task.cancel()
            await ends(task)
            assert not lock.locked()
            assert zk.stats().owed == 1 and len(ground.children(path)) == 1
            ground(f"open {hook}")
            await settled(zk)
            assert ground.children(path) == []
            await (await other.aio.mutex(path).hold(timeout=0)).release()

    asyncio.run(main())


def test_a_cancel_in_the_block_and_another_at_its_end_leave_no_node(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=SHORT) as zk:
            lock = zk.mutex(path)
            task = asyncio.create_task(by_block(lock))
            assert await true(lock.locked)
            hook = proxy("hold-request", "delete", "1", path)
            task.cancel()
            assert await fired(ground, hook)
            assert not task.done(), "it waits for the release"
            task.cancel()
            await ends(task)
            ground(f"open {hook}")
            await settled(zk)
            assert ground.children(path) == []

    asyncio.run(main())


def test_a_release_that_is_never_awaited_is_done(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)
        await lock.acquire()
        lock.release()
        assert not lock.locked()
        hold = await lock.hold()
        hold.release()
        await queue(ground, path, 0)
        await settled(zk)

    asyncio.run(main())


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_task_cancelled_before_or_just_after_its_first_step_leaves_no_node(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, count: int
) -> None:
    async def main() -> None:
        for _ in range(20):
            task = asyncio.create_task(zk.aio.mutex(path).acquire())
            await steps(count)
            if task.cancel():
                await ends(task)
            else:
                # It was granted in its first step, so this thread must have slept in that.
                assert count
                await zk.aio.mutex(path).release()
        await free(zk, other, path, ground)

    asyncio.run(main())


def test_a_cancel_while_it_connects_leaves_no_node(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        client = zklock.Client(proxy.hosts, session_timeout=SHORT)
        hook = proxy("hold-reply", "connect", "1")
        proxy("record")
        tasks = [asyncio.create_task(client.aio.mutex(path).acquire()) for _ in range(3)]
        assert await fired(ground, hook)
        for task in tasks[:2]:
            task.cancel()
            await ends(task)
        ground(f"open {hook}")
        # The connection is made for the call that still wants it, and for no other.
        assert await soon(tasks[2])
        assert proxy("messages").count("request:create:") == proxy("messages").count(f"request:create:{path}")
        assert len(ground.children(path)) == 1
        await client.aio.mutex(path).release()
        await client.aio.close()

    asyncio.run(main())


def test_a_wait_for_a_loss_that_is_cancelled_does_not_harm_the_hold(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
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

    asyncio.run(main())
