"""The set of locks: all of them, or none."""

from __future__ import annotations

from ground import Ground
from scenes import SOON, Attempt, Face, raises, settled

import zklock


def test_all_are_held_together_or_none_is(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    zks, others, one, two = face.of(zk), face.of(other), f"{path}-1", f"{path}-2"
    both = zks.all([zks.mutex(path), zks.write(one), zks.election(two)])
    hold = face(both.hold, timeout=SOON)
    assert hold.path == both.path == f"{path}, {one}, {two}"
    # A member is not the same lock as the set.
    assert both.locked() and not zks.mutex(path).locked()
    for taken in (others.mutex(path), others.read(one), others.election(two)):
        assert face(taken.acquire, blocking=False) is False
    assert [contender.role for contender in face(both.contenders)] == ["exclusive", "write", "exclusive"]
    face(hold.release)
    missing = face(others.mutex(path).hold, timeout=SOON)
    assert face(both.acquire, timeout=0.1) is False
    settled(zk)
    ground.expect_children(one, 0)
    waiting = Attempt(lambda: face(both.hold, timeout=SOON))
    ground.expect_children(two, 1)
    assert not waiting.is_over()
    face(missing.release)
    face(waiting.result().release)
    for node in (path, one, two):
        ground.expect_children(node, 0)


def test_the_order_of_naming_makes_no_difference(zk: zklock.Client, path: str) -> None:
    one, two = zk.mutex(path), zk.mutex(f"{path}-2")
    zk.all([one, two]).acquire()
    assert zk.all([two, one]).locked()
    # Whoever holds the set holds its members.
    assert not one.acquire(timeout=0.1)
    zk.all(iter([two, one, zk.mutex(path)])).release()
    raises(zklock.NotHeld, zk.all([one, two]).release)


def test_a_set_may_be_of_sets_and_of_locks_of_both_faces(zk: zklock.Client, path: str) -> None:
    pair = zk.all([zk.mutex(path), zk.read(f"{path}-2")])
    for client in (zk, zk.aio):
        assert client.all([pair, zk.semaphore(f"{path}-3", 2).aio], timeout=5).path == f"{path}, {path}-2, {path}-3"
    with pair as hold:
        assert hold.path == f"{path}, {path}-2"


def test_what_cannot_be_a_set(zk: zklock.Client, other: zklock.Client, hosts: str, path: str) -> None:
    apart = zklock.Client(hosts)
    for client in (zk, zk.aio, apart):
        lock = client.mutex(path)
        raises(zklock.InvalidInput, lambda: client.all([])).says("one lock at least")
        raises(zklock.InvalidInput, lambda: client.all([lock, other.mutex(f"{path}-2")])).says("the client")
        raises(zklock.InvalidInput, lambda: client.all([lock, client.read(path)])).says("one path", "not the same lock")
        licence = client.semaphore(path, 2)
        raises(zklock.InvalidInput, lambda: client.all([licence, licence])).says("one path", "all the permits")
        raises(zklock.InvalidInput, lambda: client.all([lock, client.exclusive(f"{path}-2")])).says("no queue")
        for wrong in (lock, [path], None, path):
            try:
                client.all(wrong)  # type: ignore[arg-type]
            except TypeError:
                continue
            raise AssertionError(f"a set of {wrong!r}")
    # A set of one lock behaves like that lock.
    with zk.all([zk.exclusive(path)]) as hold:
        assert hold.node == f"{path}/lock"
