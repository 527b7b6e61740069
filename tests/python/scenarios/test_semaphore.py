"""The semaphore: as many can hold it as it has permits."""

from __future__ import annotations

import functools
import threading

import pytest
from ground import Ground
from scenes import SOON, Attempt, Connect, Far, elsewhere, eventually, expire, lose, raises, settled

import zklock


@pytest.fixture
def at(path: str) -> str:
    """The path of a semaphore, whose nodes `locks` and `leases` stay for a while."""
    return f"{path}-permits"


def test_as_many_hold_it_as_it_has_permits(zk: zklock.Client, other: zklock.Client, ground: Ground, at: str) -> None:
    mine, its = zk.semaphore(at, 3), other.semaphore(at, 3)
    with mine, its, its as third:
        assert not mine.acquire(blocking=False)
        assert not mine.acquire(timeout=0.1)
        raises(zklock.Timeout, lambda: mine.hold(timeout=0.1)).says(at)
        ground.expect_children(f"{at}/locks", 0)
        ground.expect_children(f"{at}/leases", 3)
        assert third.node.startswith(f"{at}/leases/")
    ground.expect_free(at)


def test_a_thread_may_hold_several_and_gives_back_the_latest(zk: zklock.Client, ground: Ground, at: str) -> None:
    lock = zk.semaphore(at, 3)
    nodes = []
    for _ in range(3):
        assert lock.acquire()
        assert lock.current is not None
        nodes.append(lock.current.node)
    assert len(set(nodes)) == 3
    for node in reversed(nodes):
        assert lock.locked()
        assert lock.current is not None and lock.current.node == node
        lock.release()
        assert ground(f"exists {node}") == "false"
    raises(zklock.NotHeld, lock.release)
    with lock as outer, lock as inner:
        assert outer.node != inner.node
        assert ground.expect_children(f"{at}/leases", 2)
    ground.expect_free(at)


def test_a_permit_belongs_to_nobody(zk: zklock.Client, ground: Ground, at: str) -> None:
    lock = zk.semaphore(at, 2)
    elsewhere(lock.acquire)
    lock.release()
    ground.expect_free(at)
    # A thread releases its own permit first.
    elsewhere(lock.acquire)
    lock.acquire()
    assert lock.current is not None
    own = lock.current.node
    lock.release()
    assert ground(f"exists {own}") == "false"
    assert lock.current is None and lock.locked()
    lock.release()
    ground.expect_free(at)


def test_several_permits_at_once(zk: zklock.Client, other: zklock.Client, ground: Ground, at: str) -> None:
    three, one = zk.semaphore(at, 4, permits=3), other.semaphore(at, 4)
    with three:
        ground.expect_children(f"{at}/leases", 3)
        with one:
            assert not one.acquire(blocking=False)
            # Permits that were acquired three at a time cannot be released one by one.
            raises(zklock.NotHeld, zk.semaphore(at, 4).release)
    first, second = one.hold(), one.hold()
    assert not three.acquire(timeout=0.1)
    waiting = Attempt(lambda: three.hold(timeout=SOON))
    ground.expect_children(f"{at}/locks", 1)
    assert not waiting.is_over()
    second.release()
    waiting.result().release()
    first.release()
    ground.expect_free(at)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_whichever_permit_comes_back_wakes_who_waits(
    zk: zklock.Client, other: zklock.Client, ground: Ground, at: str, which: int
) -> None:
    holds = [zk.semaphore(at, 3).hold() for _ in range(3)]
    waiting = Attempt(lambda: other.semaphore(at, 3).hold(timeout=SOON))
    ground.expect_children(f"{at}/locks", 1)
    holds.pop(which).release()
    waiting.result().release()
    for hold in holds:
        hold.release()
    ground.expect_free(at)


def test_the_limit_can_change_while_others_wait(
    zk: zklock.Client, other: zklock.Client, ground: Ground, at: str
) -> None:
    limit_at = f"{at}-limit"
    # As long as the node does not exist, the limit given here counts.
    lock = zk.semaphore(at, 1, limit_at=limit_at)
    first = lock.hold()
    assert not lock.acquire(blocking=False)
    waiting = Attempt(lambda: other.semaphore(at, 1, limit_at=limit_at).hold(timeout=SOON))
    ground.expect_children(f"{at}/locks", 1)
    zk.set_limit(limit_at, 2)
    second = waiting.result()
    other.set_limit(limit_at, 1)
    second.release()
    assert not lock.acquire(timeout=0.2)
    first.release()
    lock.acquire(timeout=SOON)
    lock.release()
    ground.expect_free(at)


def test_permits_of_three_are_not_those_of_one(zk: zklock.Client, at: str) -> None:
    with zk.semaphore(at, 4), zk.semaphore(at, 4, permits=3) as three:
        assert zk.semaphore(at, 4, permits=3).current is not None
        zk.semaphore(at, 4).release()
        assert three.valid_for() > 0 and not zk.semaphore(at, 4).locked()
        zk.semaphore(at, 4).acquire()


def test_the_limit_is_never_exceeded(connect: Connect, ground: Ground, at: str) -> None:
    clients = [connect() for _ in range(3)]
    permits, most = threading.Semaphore(4), [0]

    def work(number: int) -> None:
        lock = clients[number % 3].semaphore(at, 4, permits=1 + number % 2, timeout=30)
        for _ in range(8):
            with lock:
                for _ in range(1 + number % 2):
                    assert permits.acquire(blocking=False), "more than there are"
                most[0] += 1
                permits.release(1 + number % 2)

    for attempt in [Attempt(functools.partial(work, number)) for number in range(9)]:
        attempt.result(within=50)
    assert most == [72]
    ground.expect_free(at)


def test_permits_of_a_session_that_expired_come_back(
    far: Far, other: zklock.Client, ground: Ground, at: str
) -> None:
    hold = far.zk.semaphore(at, 2, permits=2).hold()
    waiting = Attempt(lambda: other.semaphore(at, 2).hold(timeout=SOON))
    ground.expect_children(f"{at}/locks", 1)
    expire(far.proxy)
    assert hold.lost.wait(SOON)
    waiting.result().release()
    raises(zklock.LockLost, hold.release)
    ground.expect_free(at)


def test_a_hold_of_three_permits_is_lost_with_one_of_them(zk: zklock.Client, ground: Ground, at: str) -> None:
    hold = zk.semaphore(at, 3, permits=3).hold()
    lost = ground.expect_children(f"{at}/leases", 3)[1]
    ground(f"delete {at}/leases/{lost}")
    assert hold.lost.wait(SOON)
    raises(zklock.LockLost, hold.release)
    ground.expect_free(at)


def test_what_cannot_be(zk: zklock.Client, hosts: str, at: str) -> None:
    with zklock.Client(hosts) as connected:
        for client in (zklock.Client(hosts), connected):
            for limit, permits in ((5, 6), (5, 0), (0, 1), (-1, 1), (5, -1), (2**32, 1)):
                raises(zklock.InvalidInput, lambda: client.semaphore(at, limit, permits=permits))
            raises(zklock.InvalidInput, lambda: client.semaphore("permits", 5)).says("permits")
            raises(zklock.InvalidInput, lambda: client.semaphore(at, 5, limit_at="limit")).says("limit")
            raises(zklock.InvalidInput, lambda: client.set_limit(at, -1)).says("-1")
    raises(zklock.InvalidInput, lambda: zk.set_limit("limit", 1))
    with pytest.raises(TypeError):
        zk.semaphore(at)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        zk.semaphore(at, 1, reentrant=True)  # type: ignore[call-arg]


def test_a_wait_that_was_in_vain_leaves_nothing(
    zk: zklock.Client, other: zklock.Client, ground: Ground, at: str
) -> None:
    with other.semaphore(at, 1):
        for _ in range(3):
            assert not zk.semaphore(at, 1).acquire(timeout=0.05)
        settled(zk)
        ground.expect_children(f"{at}/locks", 0)
    eventually(lambda: zk.semaphore(at, 1).acquire(blocking=False))
    zk.semaphore(at, 1).release()
    ground.expect_free(at)
