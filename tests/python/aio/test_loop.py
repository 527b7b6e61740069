"""Loops: many of them, loops that end too early, and loops in debug mode."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import typing
import weakref

import pytest
from aio.support import SOON, Loop, free, queue, run_in, settled, soon, steps, true
from ground import Ground
from punctual import not_later
from scenes import without_garbage

import zklock


def quiet() -> asyncio.AbstractEventLoop:
    """A loop that does not report destroyed tasks."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    return loop


def test_a_grant_that_comes_after_its_loop_was_closed_is_let_go(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    loop = quiet()
    hold = other.mutex(path).hold()
    task = loop.create_task(zk.aio.mutex(path).acquire())
    loop.run_until_complete(queue(ground, path, 2))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    hold.release()
    without_garbage(lambda: zk.stats().grants == 1)
    # Nobody can receive the grant any more, but it is kept as long as the task exists.
    assert not zk.mutex(path).locked()
    del task
    gc.collect()
    ground.expect_children(path, 0)
    asyncio.run(free(zk, other, path, ground))


@pytest.mark.parametrize("by_value", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_loop_closed_while_a_task_holds_frees_the_lock(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, by_value: bool, reentrant: bool
) -> None:
    loop, lock = quiet(), zk.aio.mutex(path, reentrant=reentrant)

    async def work() -> None:
        async with await lock.hold() if by_value else lock:
            await asyncio.Event().wait()

    task = loop.create_task(work())
    assert loop.run_until_complete(true(lock.locked))
    loop.close()
    del task
    # The block ends with its task, which is garbage.
    without_garbage(lambda: not lock.locked())
    ground.expect_children(path, 0)
    asyncio.run(free(zk, other, path, ground))


async def test_a_task_that_is_forgotten_while_it_waits_leaves_no_node(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL, "asyncio"):
        hold = await other.aio.mutex(path).hold()
        task = asyncio.create_task(zk.aio.mutex(path).acquire())
        await queue(ground, path, 2)
        # The wait does not keep the task alive, nor does anybody else.
        gone_by = weakref.ref(task)
        del task
        gc.collect()
        assert gone_by() is None
        await queue(ground, path, 1)
        await hold.release()
    await free(zk, other, path, ground)


async def everything(zk: zklock.Client, path: str, ground: Ground) -> None:
    """Makes one call of each kind, for other kinds of loop."""
    lock = zk.aio.mutex(path, timeout=SOON)

    async def wait() -> bool:
        return await lock.acquire()

    async with lock as hold:
        assert await asyncio.create_task(hold.confirm()) > 0
        await hold.guarded().create(f"{path}-state").delete(f"{path}-state").commit()
        waiters = [asyncio.create_task(wait()) for _ in range(3)]
        lost = asyncio.ensure_future(hold.lost)
        await true(lambda: len(ground.children(path)) == 2)
        waiters[1].cancel()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiters[2]), 0.05)
    assert await soon(lost) is None
    assert await soon(waiters[0])
    lock.release()
    assert await soon(waiters[2])
    await lock.release()
    with pytest.raises(zklock.LockLost):
        async with lock as hold:
            ground(f"delete {hold.node}")
            assert await hold.lost is zklock.LossReason.NODE_DELETED
    with pytest.raises(zklock.NotHeld):
        await lock.release()
    await settled(zk)
    assert ground.children(path) == []


def test_uvloop_serves_as_well(zk: zklock.Client, path: str, ground: Ground) -> None:
    uvloop: typing.Any = pytest.importorskip("uvloop")
    run_in(uvloop.new_event_loop(), everything(zk, path, ground))


def test_debug_mode_has_nothing_to_say(
    zk: zklock.Client, path: str, ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        # Every step is reported, with the representation of its task.
        asyncio.get_running_loop().slow_callback_duration = 0
        await everything(zk, path, ground)

    with caplog.at_level(logging.WARNING, "asyncio"):
        asyncio.run(main(), debug=True)
    said = {record.getMessage() for record in caplog.records if record.name == "asyncio"}
    assert any("AsyncHold.confirm" in message for message in said), "no step of ours was told"
    assert all(message.startswith("Executing ") for message in said), said


async def test_the_loop_goes_on_while_tasks_wait(other: zklock.Client, path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")
    # A server that is silent counts as an outage after the try timeout.
    async with zklock.Client(proxy.hosts, session_timeout=4, try_timeout=SOON) as zk:
        async with other.mutex(path):
            tasks = [asyncio.create_task(zk.mutex(path).acquire(timeout=0.5)) for _ in range(20)]
            await queue(ground, path, 2)
            proxy("freeze", "both")
            rounds, begun = 0, time.monotonic()
            while not all(task.done() for task in tasks):
                rounds += 1
                await asyncio.sleep(0.001)
            lasted = time.monotonic() - begun
            not_later(lasted / rounds, 0.02)
            assert [task.result() for task in tasks] == [False] * 20
            # Nor does a wait keep the loop busy.
            clock = time.process_time()
            assert await zk.mutex(path).acquire(timeout=0.5) is False
            not_later(time.process_time() - clock, 0.25)
            proxy("thaw")
            await settled(zk)


def test_a_loop_is_not_kept_by_what_was_waited_for_in_it(zk: zklock.Client, path: str) -> None:
    async def main() -> None:
        async with zk.aio.mutex(path) as hold:
            lost = asyncio.ensure_future(hold.lost)
            await steps(2)
            lost.cancel()

    loop = Loop()
    loop.run_until_complete(main())
    loop.close()
    kept = weakref.ref(loop)
    del loop
    without_garbage(lambda: kept() is None)
