"""The read/write lock: many readers or one writer, in the order of arrival."""

from __future__ import annotations

import asyncio
import threading

import pytest
from aio.support import queue, soon
from ground import Ground
from scenes import SOON, Attempt, raises, times_out

import zklock


def test_a_writer_may_go_on_as_a_reader(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str) -> None:
    write, read = zk.write(path, reentrant=True), zk.read(path)
    write.acquire()
    ahead = Attempt(lambda: other.write(path).hold(timeout=SOON))
    ground.expect_children(path, 2)
    # It is granted at once, although a writer is in the queue.
    assert read.acquire(timeout=SOON)
    assert read.current is not None and write.current is not None and read.current.node != write.current.node
    write.release()
    # Each side is released by itself.
    raises(zklock.NotHeld, write.release)
    assert read.locked() and not write.locked()
    assert not ahead.wait(0.3)
    read.release()
    ahead.result().release()


def test_a_task_may_go_on_as_a_reader_and_not_as_a_writer(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        read, write = zk.aio.read(path), zk.aio.write(path, reentrant=True)
        await write.acquire()
        ahead = asyncio.create_task(other.aio.write(path).hold())
        await queue(ground, path, 2)
        assert await soon(read.acquire())
        await write.release()
        assert read.locked() and not write.locked() and not ahead.done()
        assert await write.acquire(timeout=0.1) is False
        await read.release()
        await (await soon(ahead)).release()
        # If any task may release the write side, another task may be writing.
        async with zk.aio.write(path):
            assert await read.acquire(timeout=0.1) is False

    asyncio.run(main())


def test_a_reader_that_alone_can_release_and_wants_to_write_is_told_that_it_would_wait_for_itself(
    zk: zklock.Client, path: str
) -> None:
    with zk.read(path, reentrant=True):
        for write in (zk.write(path, reentrant=True), zk.write(path)):
            raises(zklock.Deadlock, write.acquire).says(path, "read side", "release that first")
            raises(zklock.Deadlock, lambda: write.hold(timeout=SOON))
            assert write.acquire(blocking=False) is False

    async def main() -> None:
        async with zk.aio.read(path, reentrant=True):
            with pytest.raises(zklock.Deadlock):
                await zk.aio.write(path).acquire()

    asyncio.run(main())
    # If any thread may release the hold, the call waits.
    with zk.read(path):
        times_out(lambda: zk.write(path).hold(timeout=0.1)).says(path, "itself")


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_write_hold_that_any_thread_can_release_keeps_its_acquirer_from_reading(
    zk: zklock.Client, path: str, reentrant: bool
) -> None:
    read, stop = zk.read(path, reentrant=reentrant), threading.Event()
    hold = zk.write(path).hold()

    def work() -> None:
        assert stop.wait(SOON)
        hold.release()

    writes = Attempt(work)
    assert not read.acquire(blocking=False)
    times_out(lambda: read.hold(timeout=0.1)).says(path, "itself")
    stop.set()
    with read as reading:
        assert reading.token > hold.token
    writes.result()


def test_threads_of_one_client_read_together(zk: zklock.Client, path: str) -> None:
    read, together = zk.read(path), threading.Barrier(4, timeout=SOON)

    def work() -> None:
        with read:
            together.wait()

    for attempt in [Attempt(work) for _ in range(4)]:
        attempt.result()
