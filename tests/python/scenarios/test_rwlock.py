"""The read/write lock: many readers or one writer, in the order of arrival."""

from __future__ import annotations

import contextlib
import functools
import threading

import pytest
from ground import Ground
from scenes import SOON, Attempt, Connect, elsewhere, lose, raises

import zklock


def roles(lock: zklock.Lock) -> list[tuple[str, bool]]:
    return [(contender.role, contender.holds) for contender in lock.contenders()]


def test_readers_hold_together_and_a_writer_alone(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    read, write = zk.read(path), zk.write(path)
    with read as first, other.read(path) as second:
        assert first.valid_for() > 0 and second.valid_for() > 0
        assert elsewhere(lambda: write.acquire(blocking=False)) is False
        assert other.mutex(f"{path}").path == path
    with write as alone:
        assert alone.token > second.token
        for lock in (other.read(path), other.write(path)):
            assert not lock.acquire(blocking=False)
            assert not lock.acquire(timeout=0.1)


def test_a_writer_that_waits_is_not_starved_by_readers(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    order: list[str] = []

    def work(lock: zklock.Lock, name: str) -> None:
        with lock:
            order.append(name)

    with zk.read(path):
        attempts = []
        for place, (kind, name) in enumerate([("write", "writer"), ("read", "late"), ("read", "later")], 2):
            lock = other.write(path) if kind == "write" else other.read(path)
            attempts.append(Attempt(functools.partial(work, lock, name)))
            ground.expect_children(path, place)
        assert roles(zk.read(path)) == [("read", True), ("write", False), ("read", False), ("read", False)]
        assert not other.read(path).acquire(blocking=False)
        assert order == []
    for attempt in attempts:
        attempt.result()
    assert order[0] == "writer" and len(order) == 3


def test_a_writer_may_go_on_as_a_reader(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str) -> None:
    write, read = zk.write(path, reentrant=True), zk.read(path)
    write.acquire()
    ahead = Attempt(lambda: other.write(path).hold(timeout=SOON))
    ground.expect_children(path, 2)
    # It is granted at once, although a writer is in the queue.
    assert read.acquire(timeout=SOON)
    write.release()
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
    # If any thread may release the hold, the call waits.
    with zk.read(path), zk.read(path) as second:
        raises(zklock.Timeout, lambda: zk.write(path).hold(timeout=0.1)).says(path, "itself")
        assert len(zk.read(path).contenders()) == 2 and second.valid_for() > 0
    with zk.write(path):
        assert zk.write(path).acquire(timeout=0.1) is False


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_write_hold_that_any_thread_can_release_keeps_its_acquirer_from_reading(
    zk: zklock.Client, path: str, reentrant: bool
) -> None:
    read, stop = zk.read(path, reentrant=reentrant), threading.Event()
    hold = zk.write(path).hold()

    def work() -> bool:
        assert stop.wait(SOON)
        was_held = hold.valid_for() > 0
        hold.release()
        return was_held

    writes = Attempt(work)
    assert not read.acquire(blocking=False)
    raises(zklock.Timeout, lambda: read.hold(timeout=0.1)).says(path, "itself")
    stop.set()
    with read as reading:
        assert reading.token > hold.token
    assert writes.result()


def test_the_sides_are_released_each_by_itself(zk: zklock.Client, path: str) -> None:
    write, read = zk.write(path, reentrant=True), zk.read(path)
    with write:
        raises(zklock.NotHeld, read.release)
        with read as reading:
            assert read.current is not None and read.current.node == reading.node
            assert write.current is not None and write.current.node != reading.node
        assert write.locked() and not read.locked()
    raises(zklock.NotHeld, write.release)


def test_both_sides_can_be_reentrant(zk: zklock.Client, path: str) -> None:
    write, read = zk.write(path, reentrant=True), zk.read(path, reentrant=True)
    with write as outer, write as inner, read as reading, read as again:
        assert outer.token == inner.token and reading.token == again.token
        assert reading.node == again.node != outer.node
        raises(zklock.NotOwner, lambda: elsewhere(write.release))
        raises(zklock.NotOwner, lambda: elsewhere(read.release))


def test_readers_of_one_client_are_threads_of_their_own(zk: zklock.Client, ground: Ground, path: str) -> None:
    read, together = zk.read(path), threading.Barrier(4, timeout=SOON)

    def work() -> None:
        with read:
            together.wait()

    for attempt in [Attempt(work) for _ in range(4)]:
        attempt.result()


def test_a_reader_is_told_when_its_node_is_deleted(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    mine, its = zk.read(path).hold(), other.read(path).hold()
    lose(ground, mine)
    assert mine.lost.reason is zklock.LossReason.NODE_DELETED
    assert its.valid_for() > 0
    raises(zklock.LockLost, mine.release)
    its.release()


def test_a_mutex_of_that_path_which_does_not_see_the_readers_is_refused(
    zk: zklock.Client, other: zklock.Client, path: str
) -> None:
    with zk.read(path) as hold:
        refused = raises(zklock.ForeignContender, lambda: other.mutex(path).hold(timeout=SOON))
        refused.says(path, hold.node.rpartition("/")[2])
        # Told to go ahead, it waits for the reader as for any other.
        assert not other.mutex(path, foreign="go-ahead").acquire(timeout=0.2)


def test_in_the_names_of_kazoo(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str) -> None:
    read, write = zk.read(path, dialect="kazoo"), other.write(path, dialect="kazoo")
    with read as hold:
        assert "__rlock__" in hold.node
        assert [contender.dialect for contender in read.contenders()] == ["kazoo"]
        assert not write.acquire(blocking=False)
    with write as hold:
        assert "__lock__" in hold.node


@pytest.mark.parametrize("count", [8])
def test_what_writers_write_no_reader_sees_half(connect: Connect, path: str, count: int) -> None:
    clients = [connect() for _ in range(3)]
    halves, rounds = [0, 0], 12
    inside, writers = threading.Semaphore(count), threading.Lock()

    def work(number: int) -> None:
        zk = clients[number % len(clients)]
        for turn in range(rounds):
            if (number + turn) % 4 == 0:
                with zk.write(path, timeout=30):
                    assert writers.acquire(blocking=False)
                    # No reader is inside.
                    for _ in range(count):
                        assert inside.acquire(blocking=False)
                    halves[0] += 1
                    halves[1] += 1
                    for _ in range(count):
                        inside.release()
                    writers.release()
            else:
                with zk.read(path, timeout=30), contextlib.ExitStack() as leave:
                    assert inside.acquire(blocking=False)
                    leave.callback(inside.release)
                    assert halves[0] == halves[1]

    for attempt in [Attempt(functools.partial(work, number)) for number in range(count)]:
        attempt.result(within=50)
    assert halves[0] > 0
