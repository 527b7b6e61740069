"""A loss cancels the block that it concerns in asyncio, under trio, and in anyio on either, and goes well with their scopes and groups.

For what is asyncio's own see test_cancelling.py.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import types
import typing

import anyio
import anyio.to_thread
import pytest
from aio.support import free
from ground import Ground
from scenes import eventually, lose, settled

import zklock

trio: typing.Any = pytest.importorskip("trio")

HOSTS: dict[str, typing.Callable[..., typing.Any]] = {
    "trio": trio.run,
    "anyio on asyncio": functools.partial(anyio.run, backend="asyncio"),
    "anyio on trio": functools.partial(anyio.run, backend="trio"),
}
Run = typing.Callable[[typing.Callable[[], typing.Awaitable[object]]], object]


@pytest.fixture(params=HOSTS)
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine function, in each host."""
    return HOSTS[request.param]


def test_a_loss_cancels_the_block_and_becomes_lock_lost(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, run: Run
) -> None:
    done: list[str] = []

    async def work(hold: zklock.BaseHold | None) -> None:
        lose(ground, hold) if hold else ground(f"delete {path}/{ground.children(path)[0]}")
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
            done.append("cleaned up")

    async def by_block() -> None:
        async with zk.mutex(path) as hold:
            await work(hold)

    async def by_thread() -> None:
        hold = await anyio.to_thread.run_sync(zk.mutex(path).hold)
        try:
            async with hold.cancel_on_loss():
                await work(hold)
        finally:
            with pytest.raises(zklock.LockLost):
                await anyio.to_thread.run_sync(hold.release)

    async def by_run() -> None:
        async with zk.mutex(path) as hold:
            await hold.run(work(hold))

    async def by_job() -> None:
        async with zk.job(f"{path}/job", every="1d") as run:
            assert run.hold is not None
            await work(run.hold)

    @zk.mutex(path)
    async def by_decorator() -> None:
        await work(None)

    async def main() -> None:
        for way in (by_block, by_thread, by_run, by_decorator, by_job):
            with pytest.raises(zklock.LockLost) as raised:
                await way()
            assert raised.value.reason is zklock.LossReason.NODE_DELETED
            # Nothing goes on to be cancelled.
            await anyio.sleep(0.01)
        assert isinstance(raised.value.__cause__, (asyncio.CancelledError, trio.Cancelled))

    run(main)
    assert done == ["cleaned up"] * 5
    with other.mutex(path, timeout=0):
        pass
    ground(f"delete-tree {path}")


def test_other_ends_of_the_block_stay_what_they_are(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, run: Run
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path, timeout=30)
        async with lock as hold:
            await anyio.sleep(0.01)
            assert hold.state is zklock.HoldState.HELD
            with pytest.raises(TimeoutError), anyio.fail_after(0.01):
                await anyio.sleep_forever()
        assert hold.valid_for() == 0
        with pytest.raises(LookupError) as raised:
            async with lock as hold:
                lose(ground, hold)
                raise LookupError("of the work")
        assert "others may have held the lock too" in getattr(raised.value, "__notes__")[0]
        with anyio.CancelScope() as outside:
            async with lock as hold:
                outside.cancel()
                lose(ground, hold)
                await anyio.sleep_forever()
        assert outside.cancelled_caught
        with anyio.move_on_after(0.01) as late:
            async with lock:
                await anyio.sleep_forever()
        assert late.cancelled_caught
        await anyio.sleep(0.01)

    run(main)
    asyncio.run(free(zk, other, path, ground))


@pytest.mark.parametrize("fails", [False, True])
def test_a_loss_ends_a_group_of_tasks_and_what_fails_in_it_comes_out(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, run: Run, fails: bool
) -> None:
    ended: list[int] = []

    async def child(number: int) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(number)
            if fails and number == 1:
                raise LookupError("of the work")

    async def main() -> None:
        with pytest.raises(BaseException) as raised:
            async with zk.mutex(path) as hold:
                async with anyio.create_task_group() as group:
                    for number in range(3):
                        group.start_soon(child, number)
                    await anyio.sleep(0.01)
                    lose(ground, hold)
                    if fails:
                        await anyio.sleep_forever()
        if fails:
            assert [repr(error) for error in getattr(raised.value, "exceptions")] == ["LookupError('of the work')"]
        else:
            assert type(raised.value) is zklock.LockLost
        await anyio.sleep(0.01)

    run(main)
    assert sorted(ended) == [0, 1, 2]
    asyncio.run(free(zk, other, path, ground))


def test_nested_blocks_end_from_the_inside(zk: zklock.Client, path: str, ground: Ground, run: Run) -> None:
    passed: list[str] = []

    async def main() -> None:
        with pytest.raises(zklock.LockLost, match=f"{path}/outer"):
            async with zk.mutex(f"{path}/outer") as outer:
                with pytest.raises(zklock.LockLost, match=f"{path}/inner"):
                    async with zk.mutex(f"{path}/inner") as inner:
                        lose(ground, inner)
                        await anyio.sleep_forever()
                passed.append("the inner block")
                lose(ground, outer)
                await anyio.sleep_forever()

    run(main)
    assert passed == ["the inner block"]
    ground(f"delete-tree {path}")


def test_a_wait_that_is_cancelled_leaves_the_queue(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, run: Run
) -> None:
    async def main() -> None:
        with anyio.move_on_after(0.1) as scope:
            async with zk.mutex(path):
                raise AssertionError("it is held")
        assert scope.cancelled_caught
        with pytest.raises(zklock.Timeout):
            async with zk.mutex(path, timeout=0.05):
                raise AssertionError("it is held")
        with anyio.CancelScope() as before:
            before.cancel()
            async with zk.mutex(path):
                await anyio.sleep_forever()
        assert before.cancelled_caught

    with other.mutex(path):
        run(main)
        settled(zk)
        assert len(ground.children(path)) == 1
    # A call that was withdrawn before it began warns of nothing, which would be an error.
    gc.collect()


def test_trio_has_no_owner_for_a_reentrant_lock(zk: zklock.Client, path: str) -> None:
    async def main() -> None:
        with pytest.raises(zklock.InvalidInput, match="under trio"):
            async with zk.mutex(path, reentrant=True):
                raise AssertionError("it is held")

    trio.run(main)


async def test_trio_as_a_guest_of_asyncio_does_not_confuse_it(zk: zklock.Client, path: str, ground: Ground) -> None:
    """A task of trio and a task of asyncio in one thread."""

    async def in_trio() -> None:
        async with zk.mutex(f"{path}/trio") as hold:
            lose(ground, hold)
            await trio.sleep_forever()

    loop = asyncio.get_running_loop()
    done = loop.create_future()
    trio.lowlevel.start_guest_run(
        in_trio, run_sync_soon_threadsafe=loop.call_soon_threadsafe, done_callback=done.set_result
    )
    with pytest.raises(zklock.LockLost, match=f"{path}/asyncio"):
        async with zk.mutex(f"{path}/asyncio") as hold:
            lose(ground, hold)
            await asyncio.sleep(30)
    with pytest.raises(zklock.LockLost, match=f"{path}/trio"):
        (await asyncio.wait_for(done, 30)).unwrap()
    ground(f"delete-tree {path}")


def test_a_loss_after_the_end_of_trio_is_passed_over(
    zk: zklock.Client, path: str, ground: Ground, unraisable: list[typing.Any]
) -> None:
    hold = zk.mutex(path).hold()
    tried: list[str] = []

    async def main() -> object:
        block = hold.cancel_on_loss()
        await block.__aenter__()
        scope: typing.Any = block._scope
        token = scope._token

        def run_sync_soon(*call: typing.Any) -> None:
            try:
                token.run_sync_soon(*call)
            finally:
                tried.append("to cancel")

        scope._token = types.SimpleNamespace(run_sync_soon=run_sync_soon)
        # The scope is left, and the alarm stays set.
        scope.leave(None)
        return block

    block = trio.run(main)
    lose(ground, hold)
    eventually(lambda: tried)
    del block
    assert unraisable == []


def test_trio_is_told_that_only_blocks_of_a_lock_work_there(zk: zklock.Client, path: str, ground: Ground) -> None:
    lock, hold = zk.aio.mutex(path), zk.mutex(f"{path}/held").hold()

    async def main() -> None:
        calls: list[typing.Callable[[], typing.Awaitable[object]]] = [
            lock.acquire,
            lock.hold,
            lock.contenders,
            lock.try_acquire,
            # There is nothing to wait for, but a call that works by chance in a test would fail in production.
            zk.aio.connect,
            lambda: hold.lost,
            zklock.Client("127.0.0.1:1").__aenter__,
        ]
        for call in calls:
            with pytest.raises(RuntimeError, match="under trio .* make the blocking call in a thread"):
                await call()
        assert not lock.locked()

    with hold:
        trio.run(main)
    # The attempts that they had started are withdrawn.
    ground.expect_children(f"{path}/held", 0)
    ground(f"delete-tree {path}")
    with zk.mutex(path):
        assert len(ground.children(path)) == 1
