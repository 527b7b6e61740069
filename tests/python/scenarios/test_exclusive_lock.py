"""The exclusive lock: one plain node, for jobs that try once."""

from __future__ import annotations

from ground import Ground
from scenes import SOON, Attempt, Far, expire, lose, raises, settled

import zklock


def test_it_is_one_node(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str) -> None:
    with zk.exclusive(path, timeout=0) as hold:
        assert hold.node == f"{path}/lock"
        companion, node = sorted(ground.children(path))
        assert node == "lock" and companion.startswith("holder-") and companion.endswith("-of-lock")
        assert not other.exclusive(path).acquire(blocking=False)
        raises(zklock.Timeout, lambda: other.exclusive(path, timeout=0).hold())
        (holder,) = other.exclusive(path).contenders()
        assert holder.token == hold.token and holder.holds
    ground.expect_children(path, 0)
    assert other.exclusive(path).contenders() == []


def test_one_that_waits_is_woken(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    lock = zk.exclusive(path)
    lock.acquire()
    waiting = Attempt(lambda: other.exclusive(path).hold(timeout=SOON))
    assert not waiting.wait(0.3)
    token = lock.current.token if lock.current else 0
    lock.release()
    hold = waiting.result()
    assert hold.token > token
    hold.release()


def test_the_same_client_twice(zk: zklock.Client, path: str) -> None:
    with zk.exclusive(path):
        assert not zk.exclusive(path).acquire(timeout=0.1)
        assert not Attempt(lambda: zk.exclusive(path).acquire(blocking=False)).result()
        # The mutex of this path has another queue.
        assert not zk.mutex(path).locked()
    again = zk.exclusive(path, reentrant=True)
    with again as outer, again as inner:
        assert outer.token == inner.token


def test_it_is_lost_and_free(far: Far, other: zklock.Client, ground: Ground, path: str) -> None:
    hold = far.zk.exclusive(path).hold()
    lose(ground, hold)
    raises(zklock.LockLost, hold.release)
    hold = far.zk.exclusive(path).hold(timeout=SOON)
    waiting = Attempt(lambda: other.exclusive(path).hold(timeout=SOON))
    expire(far.proxy)
    waiting.result().release()
    assert hold.lost.wait(SOON)
    raises(zklock.LockLost, hold.release)


def test_a_wait_that_was_in_vain_leaves_nothing(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    with zk.exclusive(path) as hold:
        assert not other.exclusive(path).acquire(timeout=0.1)
        settled(other)
        assert hold.valid_for() > 0 and len(ground.children(path)) == 2
