"""A blocking call would stop the event loop of its thread, with whatever task could end the wait. So it is refused."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import typing

import pytest
from aio.support import SOON, free, queue, soon
from ground import Ground
from scenes import elsewhere

import zklock

REFUSED = "would stop it: use `async with`.*aio.*asyncio.to_thread"
GOES_ON = f"{REFUSED}.*goes on in the background"


def enter(manager: typing.ContextManager[object]) -> None:
    with manager:
        raise AssertionError("it was entered")


@pytest.mark.parametrize(
    "call",
    [
        lambda zk, path: zk.mutex(path).acquire(),
        lambda zk, path: zk.mutex(path).acquire(timeout=5),
        lambda zk, path: zk.mutex(path).acquire(blocking=False),
        lambda zk, path: zk.mutex(path).hold(),
        lambda zk, path: zk.semaphore(path, 5).hold(),
        lambda zk, path: enter(zk.mutex(path)),
        lambda zk, path: enter(zk.mutex(path, linger=SOON)),
        lambda zk, path: enter(zk.mutex(path, reentrant=True)),
        lambda zk, path: zk.mutex(path).contenders(),
        lambda zk, path: zk.mutex(path).evict(f"{path}/x"),
        lambda zk, path: zk.mutex(path).break_lock(),
        lambda zk, path: zk.mutex(path).request_release(),
        lambda zk, path: zk.election(path).observe().next(),
        lambda zk, path: next(iter(zk.election(path).observe())),
        lambda zk, path: zk.barrier(path).set(),
        lambda zk, path: zk.barrier(path).wait(timeout=0),
        lambda zk, path: zk.double_barrier(path, 1).enter(),
        lambda zk, path: enter(zk.double_barrier(path, 1)),
        lambda zk, path: zk.set_limit(path, 5),
        lambda zk, path: zk.connect(),
    ],
)
async def test_a_call_that_waits_is_refused_and_nothing_is_done(
    zk: zklock.Client, ground: Ground, path: str, call: typing.Callable[[zklock.Client, str], object]
) -> None:
    with pytest.raises(zklock.Deadlock, match=REFUSED) as caught:
        call(zk, path)
    assert "background" not in str(caught.value)
    # In another thread it is right.
    await asyncio.to_thread(zk.mutex(path).contenders)
    assert zk.stats().grants == zk.stats().owed == 0 and ground.children(path) == []


async def test_a_call_of_a_hold_is_refused_and_what_ends_it_is_done_all_the_same(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    hold = await asyncio.to_thread(zk.mutex(path).hold)
    for call in (
        hold.confirm,
        lambda: hold.read(path),
        hold.guarded().create(f"{path}-2").commit,
        hold.lost.wait,
        hold.wanted.wait,
    ):
        with pytest.raises(zklock.Deadlock, match=REFUSED):
            call()
    assert hold.state is zklock.HoldState.HELD and not hold.lost
    with pytest.raises(zklock.Deadlock, match=GOES_ON):
        hold.release()
    assert hold.valid_for() == 0
    await queue(ground, path, 0)
    with pytest.raises(zklock.NotHeld):
        hold.release()
    lock = zk.mutex(path)
    assert await asyncio.to_thread(lock.acquire)
    with pytest.raises(zklock.Deadlock, match=GOES_ON):
        lock.release()
    await queue(ground, path, 0)
    await free(zk, other, path, ground)


async def test_the_end_of_a_block_releases_or_closes_in_the_background(
    zk: zklock.Client, other: zklock.Client, hosts: str, ground: Ground, path: str
) -> None:
    # The exception of the block is not replaced.
    for failure, error in ((zklock.Deadlock, None), (LookupError, LookupError())):
        client = zklock.Client(hosts)
        for block in (await asyncio.to_thread(zk.mutex(path).hold), zk.mutex(f"{path}-2"), client):
            with pytest.raises(failure), contextlib.ExitStack() as stack:
                await asyncio.to_thread(stack.enter_context, block)
                if error:
                    raise error
            await queue(ground, path, 0)
        assert client.connection_state is zklock.ConnectionState.CLOSED
    await free(zk, other, path, ground)


def test_an_inner_hold_is_released_because_that_waits_for_nothing(zk: zklock.Client, ground: Ground, path: str) -> None:
    lock = zk.mutex(path, reentrant=True)

    async def main() -> None:
        lock.release()

    with lock:
        assert lock.acquire()
        asyncio.run(main())
        assert len(ground.children(path)) == 1 and lock.locked()


async def test_a_member_leaves_and_a_client_is_closed_in_the_background(hosts: str, ground: Ground, path: str) -> None:
    zk = zklock.Client(hosts)
    with pytest.raises(zklock.Deadlock, match=REFUSED):
        enter(zk)
    assert zk.connection_state is None
    member = await asyncio.to_thread(zk.double_barrier(path, 1).enter)
    with pytest.raises(zklock.Deadlock, match=GOES_ON):
        member.leave()
    await queue(ground, path, 0)
    await asyncio.to_thread(zk.mutex(path).acquire)
    with pytest.raises(zklock.Deadlock, match=GOES_ON):
        zk.close()
    assert zk.connection_state is zklock.ConnectionState.CLOSED
    await queue(ground, path, 0)
    with pytest.raises(zklock.Closed):
        await zk.aio.connect()
    # There is nothing to wait for.
    zklock.Client(hosts).close()


def test_other_threads_and_callbacks_may_block(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    async def main() -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with zk.mutex(path, cancel=False) as hold:

            def work() -> None:
                with other.mutex(f"{path}-2", timeout=SOON):
                    loop.call_soon_threadsafe(done.set)

            hold.on_lost(lambda reason: work())
            await asyncio.to_thread(ground, f"delete {hold.node}")
            await soon(done.wait())
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            with pytest.raises(zklock.LockLost):
                await hold.release()
        elsewhere(lambda: asyncio.run(inner()))

    async def inner() -> None:
        with pytest.raises(zklock.Deadlock, match=REFUSED):
            zk.mutex(path).acquire()

    asyncio.run(main())
    # When the loop is over, or does not run, its thread may block.
    loop = asyncio.new_event_loop()
    try:
        with zk.mutex(path):
            loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()


async def test_the_aio_of_an_asyncio_object_is_itself(hosts: str, path: str) -> None:
    async with zklock.Client(hosts) as zk:
        assert zk.aio is zk
        lock, barrier, doors = zk.mutex(path), zk.barrier(path), zk.double_barrier(path, 1)
        assert lock.aio is lock and barrier.aio is barrier and doors.aio is doors
        async with zk.aio.mutex(path).aio as hold:
            assert hold.token > 0
