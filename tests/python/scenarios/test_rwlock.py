"""The read/write lock: many readers or one writer, in the order of arrival."""

from __future__ import annotations

import asyncio

import pytest
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
