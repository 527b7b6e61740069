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
from aio.support import SOON, Loop, counted, free, steps
from ground import Ground
from scenes import eventually, lose

import zklock

Coroutine = typing.Coroutine[typing.Any, typing.Any, None]
Work = typing.Callable[[zklock.AsyncHold], Coroutine]


async def by_block(lock: zklock.AsyncLock, work: Work) -> None:
    async with lock as hold:
        await work(hold)


async def by_cancel_on_loss(lock: zklock.AsyncLock, work: Work) -> None:
    async with await lock.hold() as hold, hold.cancel_on_loss() as same:
        assert same is hold
        await work(hold)


async def by_run(lock: zklock.AsyncLock, work: Work) -> None:
    async with await lock.hold() as hold:
        await hold.run(work(hold))


Way = typing.Callable[[zklock.AsyncLock, Work], Coroutine]


async def expect_no_stray_cancel(own: int = 0) -> None:
    """Checks that nothing is left that would cancel this task."""
    await steps(10)
    if sys.version_info >= (3, 11):
        assert this_task().cancelling() == own


def this_task() -> asyncio.Task[typing.Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def endless() -> None:
    """What goes on until it is cancelled."""
    await asyncio.sleep(SOON)
    raise AssertionError("it was not cancelled")


def lose_unheard(ground: Ground, hold: zklock.AsyncHold, calls: int = 1) -> None:
    """Makes it lost. The loop has been called, but stands still, and so learns of all in its next round."""
    made = counted()
    lose(ground, hold)
    eventually(lambda: len(made) == calls)


# What may happen in a block.


async def fails(ground: Ground, hold: zklock.AsyncHold) -> None:
    raise LookupError("of the work")


async def fails_after_its_loss(ground: Ground, hold: zklock.AsyncHold) -> None:
    await swallows_the_cancellation(ground, hold)
    raise LookupError("of the work")


async def swallows_the_cancellation(ground: Ground, hold: zklock.AsyncHold) -> None:
    lose(ground, hold)
    with contextlib.suppress(asyncio.CancelledError):
        await endless()
    # It is cancelled once.
    await steps(10)


async def ends_before_it_hears_of_its_loss(ground: Ground, hold: zklock.AsyncHold) -> None:
    lose_unheard(ground, hold)


async def is_lost_after_a_task_group_has_failed(ground: Ground, hold: zklock.AsyncHold) -> None:
    assert sys.version_info >= (3, 11)
    with contextlib.suppress(Exception):
        async with asyncio.TaskGroup() as group:
            group.create_task(fails(ground, hold))
    lose(ground, hold)
    await endless()


async def is_cancelled_before_it_hears_of_its_loss(ground: Ground, hold: zklock.AsyncHold) -> None:
    asyncio.get_running_loop().call_soon(this_task().cancel)
    lose_unheard(ground, hold)
    await endless()


async def is_cancelled_by_another_callback_for_the_loss(ground: Ground, hold: zklock.AsyncHold) -> None:
    loop, cancel = asyncio.get_running_loop(), this_task().cancel
    hold.on_lost(lambda reason: loop.call_soon_threadsafe(cancel))
    lose_unheard(ground, hold, calls=2)
    await endless()


async def is_cancelled_while_it_cleans_up(ground: Ground, hold: zklock.AsyncHold) -> None:
    lose_unheard(ground, hold)
    try:
        await endless()
    finally:
        asyncio.get_running_loop().call_soon(this_task().cancel)
        await endless()


# How a block ends then. Another's cancellation stays one, although the hold is lost too.
ENDS: dict[typing.Callable[[Ground, zklock.AsyncHold], Coroutine], type[BaseException]] = {
    fails: LookupError,
    fails_after_its_loss: LookupError,
    swallows_the_cancellation: zklock.LockLost,
    ends_before_it_hears_of_its_loss: zklock.LockLost,
    is_lost_after_a_task_group_has_failed: zklock.LockLost,
    is_cancelled_before_it_hears_of_its_loss: asyncio.CancelledError,
    is_cancelled_by_another_callback_for_the_loss: asyncio.CancelledError,
    is_cancelled_while_it_cleans_up: asyncio.CancelledError,
}
# Older tasks do not count their cancellations.
OF_COUNTS = (is_lost_after_a_task_group_has_failed, is_cancelled_by_another_callback_for_the_loss)


@pytest.mark.parametrize("way", [by_block, by_cancel_on_loss, by_run])
@pytest.mark.parametrize("work", [work for work in ENDS if sys.version_info >= (3, 11) or work not in OF_COUNTS])
async def test_a_block_ends_as_its_work_does_or_with_its_loss(
    zk: zklock.Client, path: str, ground: Ground, way: Way, work: typing.Any
) -> None:
    with pytest.raises(ENDS[work]) as raised:
        await way(zk.aio.mutex(path), lambda hold: work(ground, hold))
    if ENDS[work] is LookupError:
        assert raised.value.args == ("of the work",)
        notes = getattr(raised.value, "__notes__", [])
        assert ["others may have held the lock too" in note for note in notes] == [True] * (work is fails_after_its_loss)
    # Before Python 3.13 a group of tasks never takes back its own cancellation.
    of_a_group = work is is_lost_after_a_task_group_has_failed and sys.version_info < (3, 13)
    await expect_no_stray_cancel(own=ENDS[work] is asyncio.CancelledError or of_a_group)


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
                await endless()
    await free(zk, other, path, ground)


async def test_a_block_of_a_hold_that_has_ended_does_not_begin(zk: zklock.Client, path: str, ground: Ground) -> None:
    lost, released = await zk.aio.mutex(f"{path}-2").hold(), await zk.aio.mutex(path).hold()
    lose(ground, lost)
    await released.release()
    for hold, kind in ((lost, zklock.LockLost), (released, zklock.NotHeld)):
        said: set[str] = set()
        for begin in (hold.cancel_on_loss().__aenter__, lambda hold=hold: hold.run(endless())):
            with pytest.raises(kind) as raised:
                await begin()
            said.add(str(raised.value))
        with pytest.raises(kind) as raised:
            await hold.release()
        assert kind is zklock.NotHeld or said == {str(raised.value)}
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
                await endless()
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
    gc.collect()
    assert begun == [] and unraisable == []


async def test_run_takes_a_coroutine(zk: zklock.Client, path: str) -> None:
    async with zk.aio.mutex(path) as hold:
        for wrong in (endless, asyncio.get_running_loop().create_future(), None, 5):
            with pytest.raises(zklock.InvalidInput, match="run takes a coroutine"):
                typing.cast("typing.Any", hold).run(wrong)
        assert await asyncio.wait_for(hold.run(asyncio.sleep(0, 7)), 30) == 7
        assert await asyncio.gather(*(hold.run(asyncio.sleep(0, number)) for number in range(3))) == [0, 1, 2]
