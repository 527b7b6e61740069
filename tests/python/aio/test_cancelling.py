"""In asyncio a loss cancels the block that it concerns, and nothing else: the block's own exceptions and other cancellations stay.

For what all loops have in common, such as timeouts and groups of tasks, see test_hosts.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import typing
import warnings

import pytest
from aio.support import SOON, Loop, free, run_in, soon, steps
from ground import Ground
from scenes import eventually, in_asyncio, lose

import zklock

counts = pytest.mark.skipif(sys.version_info < (3, 11), reason="tasks do not count their cancellations")
T = typing.TypeVar("T")
Work = typing.Callable[[zklock.AsyncHold], typing.Coroutine[typing.Any, typing.Any, T]]


async def by_block(lock: zklock.AsyncLock, work: Work[T]) -> T:
    async with lock as hold:
        return await work(hold)


async def by_cancel_on_loss(lock: zklock.AsyncLock, work: Work[T]) -> T:
    async with await lock.hold() as hold, hold.cancel_on_loss() as same:
        assert same is hold
        return await work(hold)


async def by_run(lock: zklock.AsyncLock, work: Work[T]) -> T:
    async with await lock.hold() as hold:
        return await hold.run(work(hold))


WAYS = [by_block, by_cancel_on_loss, by_run]
Way = typing.Callable[[zklock.AsyncLock, Work[typing.Any]], typing.Coroutine[typing.Any, typing.Any, typing.Any]]
every_way = pytest.mark.parametrize("way", WAYS)


async def expect_no_stray_cancel() -> None:
    """Checks that nothing is left that would cancel this task."""
    await steps(10)
    if sys.version_info >= (3, 11):
        task = asyncio.current_task()
        assert task is not None and task.cancelling() == 0


async def endless() -> None:
    await asyncio.Event().wait()


@every_way
@pytest.mark.parametrize("is_lost", [False, True])
async def test_the_works_own_exception_stays(
    zk: zklock.Client, path: str, ground: Ground, way: Way, is_lost: bool
) -> None:
    async def work(hold: zklock.AsyncHold) -> None:
        if is_lost:
            lose(ground, hold)
            with contextlib.suppress(asyncio.CancelledError):
                await endless()
        raise LookupError("of the work")

    with pytest.raises(LookupError) as raised:
        await soon(way(zk.aio.mutex(path), work))
    assert raised.value.args == ("of the work",)
    notes = getattr(raised.value, "__notes__", [])
    assert len(notes) == is_lost and all("others may have held the lock too" in note for note in notes)
    await expect_no_stray_cancel()


@every_way
@pytest.mark.parametrize("outside", ["first", pytest.param("together", marks=counts), "while it cleans up"])
def test_a_cancellation_from_outside_stays_one_although_the_hold_is_lost_too(
    zk: zklock.Client, path: str, ground: Ground, way: Way, outside: str
) -> None:
    loop = Loop()

    async def work(hold: zklock.AsyncHold) -> None:
        task = asyncio.current_task()
        assert task is not None
        if outside == "first":
            loop.call_soon(task.cancel)
        if outside == "together":
            cancel = task.cancel
            hold.on_lost(lambda reason: loop.call_soon_threadsafe(cancel))
        calls = loop.count()
        lose(ground, hold)
        # The loop learns of all in one round.
        eventually(lambda: len(calls) == (2 if outside == "together" else 1))
        try:
            await endless()
        finally:
            if outside == "while it cleans up":
                loop.call_soon(task.cancel)
                await endless()

    async def main() -> None:
        task = asyncio.create_task(way(zk.aio.mutex(path), work))
        await asyncio.wait({task}, timeout=SOON)
        assert task.cancelled(), task

    run_in(loop, main())


@counts
@every_way
async def test_a_loss_after_a_task_group_has_failed_becomes_lock_lost(
    zk: zklock.Client, path: str, ground: Ground, way: Way
) -> None:
    async def fail() -> None:
        raise LookupError

    async def work(hold: zklock.AsyncHold) -> None:
        assert sys.version_info >= (3, 11)
        with contextlib.suppress(Exception):
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        lose(ground, hold)
        await endless()

    with pytest.raises(zklock.LockLost):
        await soon(way(zk.aio.mutex(path), work))


async def test_a_block_in_an_async_generator_is_refused_unless_it_is_its_consumers_block(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def acquiring() -> typing.AsyncIterator[zklock.AsyncHold]:
        async with zk.aio.mutex(path) as hold:
            yield hold

    async def holding() -> typing.AsyncIterator[zklock.AsyncHold]:
        async with await zk.aio.mutex(path).hold() as hold, hold.cancel_on_loss():
            yield hold

    for generator in (acquiring, holding):
        with pytest.raises(zklock.InvalidInput, match=f"generator {generator.__name__}.*asynccontextmanager"):
            async for _ in generator():
                raise AssertionError("it has begun")
        with pytest.raises(zklock.LockLost):
            async with contextlib.asynccontextmanager(generator)() as hold:
                lose(ground, hold)
                await soon(endless())
    await free(zk, other, path, ground)


@every_way
async def test_work_that_swallows_the_cancellation_ends_with_lock_lost(
    zk: zklock.Client, path: str, ground: Ground, way: Way
) -> None:
    went_on = []

    async def work(hold: zklock.AsyncHold) -> None:
        lose(ground, hold)
        with contextlib.suppress(asyncio.CancelledError):
            await endless()
        # It is cancelled once.
        await steps(10)
        went_on.append(hold.lost.is_set())

    with pytest.raises(zklock.LockLost):
        await soon(way(zk.aio.mutex(path), work))
    assert went_on == [True]
    await expect_no_stray_cancel()


@every_way
def test_a_loss_that_is_heard_of_as_the_block_is_left_cancels_nothing_after_it(
    zk: zklock.Client, path: str, ground: Ground, way: Way
) -> None:
    loop = Loop()

    async def main() -> None:
        async def work(hold: zklock.AsyncHold) -> None:
            calls = loop.count()
            lose(ground, hold)
            # The loop has been called, and only learns of that after the block, because it stands still.
            eventually(lambda: calls)

        with pytest.raises(zklock.LockLost):
            await way(zk.aio.mutex(path), work)
        await expect_no_stray_cancel()

    run_in(loop, main())


async def test_a_block_of_a_hold_that_has_ended_does_not_begin(zk: zklock.Client, path: str, ground: Ground) -> None:
    lock = zk.aio.mutex(path)
    hold = await lock.hold()
    await hold.release()
    with pytest.raises(zklock.NotHeld):
        async with hold.cancel_on_loss():
            raise AssertionError("it has begun")
    with pytest.raises(zklock.NotHeld):
        await hold.run(asyncio.sleep(0))
    hold = await lock.hold()
    lose(ground, hold)
    with pytest.raises(zklock.LockLost) as raised:
        async with hold.cancel_on_loss():
            raise AssertionError("it has begun")
    with pytest.raises(zklock.LockLost):
        await hold.run(asyncio.sleep(0))
    assert raised.value.reason is zklock.LossReason.NODE_DELETED
    with pytest.raises(zklock.LockLost) as released:
        await hold.release()
    assert str(raised.value) == str(released.value)
    await expect_no_stray_cancel()


async def test_a_block_that_cannot_begin_releases_what_it_has_acquired(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Scope:
        """Cannot be woken, since nothing can refer to it weakly."""

        __slots__ = ()

        def entering(self, entering: object) -> object:
            return entering

    async with zk.aio.mutex(path):
        pass
    monkeypatch.setattr("zklock._cancelling._TaskScope", lambda path: Scope())
    with pytest.raises(TypeError, match="weak reference"):
        async with zk.aio.mutex(path):
            raise AssertionError("it has begun")
    await free(zk, other, path, ground)


async def test_a_block_is_entered_once(zk: zklock.Client, path: str) -> None:
    async with zk.aio.mutex(path) as hold:
        block = hold.cancel_on_loss()
        async with block:
            with pytest.raises(RuntimeError):
                await block.__aenter__()


@pytest.mark.parametrize("first", ["inner", "outer"])
async def test_if_two_nested_holds_are_lost_together_the_clean_up_is_not_disturbed(
    zk: zklock.Client, path: str, ground: Ground, first: str
) -> None:
    done: list[str] = []

    async def work(outer: zklock.AsyncHold, inner: zklock.AsyncHold) -> None:
        holds = [outer, inner] if first == "outer" else [inner, outer]
        lose(ground, holds[0])
        try:
            await endless()
        finally:
            lose(ground, holds[1])
            await steps(10)
            await asyncio.sleep(0.05)
            done.append("cleaned up")

    with pytest.raises(zklock.LockLost) as raised:
        async with zk.aio.mutex(f"{path}/outer") as outer:
            async with zk.aio.mutex(f"{path}/inner") as inner:
                await work(outer, inner)
    assert done == ["cleaned up"] and f"{path}/{first}" in str(raised.value)
    await expect_no_stray_cancel()
    ground(f"delete-tree {path}")


async def test_what_outlives_the_inner_loss_is_cancelled_by_the_outer_one(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    passed: list[str] = []
    with pytest.raises(zklock.LockLost, match=f"{path}/outer"):
        async with zk.aio.mutex(f"{path}/outer") as outer:
            with contextlib.suppress(zklock.LockLost):
                async with zk.aio.mutex(f"{path}/inner") as inner:
                    lose(ground, inner)
                    lose(ground, outer)
                    await endless()
            passed.append("the inner block")
            await endless()
    assert passed == ["the inner block"]
    await expect_no_stray_cancel()
    ground(f"delete-tree {path}")


def test_a_loss_after_the_end_of_the_loop_is_passed_over(
    zk: zklock.Client, path: str, ground: Ground, unraisable: list[typing.Any]
) -> None:
    loop = Loop()
    hold = loop.run_until_complete(zk.aio.mutex(path).hold())

    async def enter() -> object:
        block = hold.cancel_on_loss()
        await block.__aenter__()
        return block

    # Were it collected, there would be nothing to cancel.
    task = loop.create_task(enter())
    block = loop.run_until_complete(task)
    loop.close()
    calls = loop.count()
    lose(ground, hold)
    eventually(lambda: calls)
    del block, task
    with pytest.raises(zklock.LockLost):
        in_asyncio(hold.release)
    assert unraisable == []


async def test_with_cancel_false_a_loss_cancels_nothing(zk: zklock.Client, path: str, ground: Ground) -> None:
    with pytest.raises(zklock.LockLost):
        async with zk.aio.mutex(path, cancel=False) as hold:
            lose(ground, hold)
            await hold.lost
            await asyncio.sleep(0.01)
    with pytest.raises(zklock.LockLost):
        async with zk.aio.job(f"{path}/job", every="1d", cancel=False) as run:
            assert run.hold is not None
            lose(ground, run.hold)
            await run.hold.lost
            await asyncio.sleep(0.01)
    ground(f"delete-tree {path}")


async def test_a_block_without_its_lock_takes_back_its_cancellation(zk: zklock.Client, path: str, ground: Ground) -> None:
    lock = zk.aio.mutex(path)
    with contextlib.suppress(zklock.NotHeld):
        async with lock as hold:
            lose(ground, hold)
            with contextlib.suppress(asyncio.CancelledError):
                await soon(endless())
            with pytest.raises(zklock.LockLost):
                await lock.release()
    await expect_no_stray_cancel()


async def test_a_callback_that_takes_long_does_not_delay_the_cancellation(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    goes_on, has_ended = threading.Event(), threading.Event()

    def callback(reason: zklock.LossReason) -> None:
        goes_on.wait(30)
        has_ended.set()

    hold = await zk.aio.mutex(path).hold()
    hold.on_lost(callback)
    with pytest.raises(zklock.LockLost):
        async with hold.cancel_on_loss():
            lose(ground, hold)
            await endless()
    assert not has_ended.is_set()
    goes_on.set()
    with pytest.raises(zklock.LockLost):
        await hold.release()


def test_outside_of_a_task_there_is_nothing_to_cancel(zk: zklock.Client, path: str) -> None:
    with zk.mutex(path) as hold:
        with pytest.raises(RuntimeError, match="no running event loop"):
            hold.cancel_on_loss().__aenter__().send(None)

        async def main() -> None:
            loop, outcome = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

            def enter() -> None:
                try:
                    hold.cancel_on_loss().__aenter__().send(None)
                except RuntimeError as error:
                    outcome.set_result(str(error))

            loop.call_soon(enter)
            assert "no task here" in await outcome

        asyncio.run(main())


async def test_a_coroutine_that_never_starts_is_closed(
    zk: zklock.Client, path: str, ground: Ground, unraisable: list[typing.Any]
) -> None:
    begun: list[str] = []

    async def work() -> None:
        begun.append("work")

    hold = await zk.aio.mutex(path).hold()
    task = asyncio.create_task(hold.run(work()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    hold.run(work()).close()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        hold.run(work())  # type: ignore[unused-coroutine]
        gc.collect()
    # One warning, and not another one for the work.
    assert len(seen) == 1 and "run" in str(seen[0].message)
    lose(ground, hold)
    with pytest.raises(zklock.LockLost):
        await hold.run(work())
    with pytest.raises(zklock.LockLost):
        await hold.release()
    gc.collect()
    assert begun == [] and unraisable == []


async def test_run_takes_a_coroutine(zk: zklock.Client, path: str) -> None:
    async with zk.aio.mutex(path) as hold:
        for wrong in (endless, asyncio.get_running_loop().create_future(), None, 5):
            with pytest.raises(zklock.InvalidInput, match="run takes a coroutine"):
                typing.cast("typing.Any", hold).run(wrong)
        assert await asyncio.wait_for(hold.run(asyncio.sleep(0, 7)), 30) == 7
        assert await asyncio.gather(*(hold.run(asyncio.sleep(0, number)) for number in range(3))) == [0, 1, 2]
