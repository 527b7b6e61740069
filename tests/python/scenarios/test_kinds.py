"""Locks of each kind: one holds it, the next has its turn, and a loss is told. Then what a kind has of its own."""

from __future__ import annotations

import typing

import pytest
from ground import Ground
from scenes import SOON, Attempt, Face, lose, raises, settled, times_out

import zklock

# How a client of either face makes it, and a part of the path of its node.
KINDS: dict[str, tuple[typing.Callable[..., typing.Any], str]] = {
    "mutex": (lambda zk, path, **options: zk.mutex(path, **options), "-lock-"),
    "read": (lambda zk, path, **options: zk.read_lock(path, **options), "__READ__"),
    "write": (lambda zk, path, **options: zk.write_lock(path, **options), "__WRIT__"),
    "semaphore": (lambda zk, path, **options: zk.semaphore(path, 1, **options), "/leases/"),
    "election": (lambda zk, path, **options: zk.election(path, **options), "-latch-"),
    "exclusive": (lambda zk, path, **options: zk.single_node(path, **options), "/lock"),
    "all": (lambda zk, path, **options: zk.all([zk.mutex(path), zk.write_lock(f"{path}-2")], **options), "-lock-"),
    "any": (lambda zk, path, **options: zk.any([zk.mutex(path)], **options), "-lock-"),
}
REENTRANT = [kind for kind in KINDS if kind not in ("semaphore", "any")]


@pytest.mark.parametrize("kind", KINDS)
def test_one_holds_it_and_the_next_has_its_turn(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face, kind: str
) -> None:
    make, part = KINDS[kind]
    lock = make(face.of(zk), path)
    rival = KINDS["write" if kind == "read" else kind][0](face.of(other), path, timeout=0.5)
    hold = face(lock.hold, timeout=SOON)
    assert part in hold.node and hold.path == lock.path and hold.state is zklock.HoldState.HELD
    assert all(one.holds for one in face(lock.contenders))
    assert face(rival.acquire, blocking=False) is False and face(rival.acquire, timeout=0.5) is False
    # The lock's own timeout.
    assert isinstance(times_out(lambda: face(rival.hold)).says(rival.path).error, TimeoutError)
    settled(other)
    waiting = Attempt(lambda: face(rival.hold, timeout=SOON))
    assert not waiting.wait(0.1)
    face(hold.release)
    following = waiting.result()
    assert following.token > hold.token
    lose(ground, following)
    assert following.lost.reason is zklock.LossReason.NODE_DELETED
    raises(zklock.LockLost, lambda: face(following.release))
    assert face(lock.acquire, timeout=SOON) is True and lock.locked()
    face(lock.release)
    assert not lock.locked()


def test_a_try_gives_a_hold_or_none(zk: zklock.Client, other: zklock.Client, path: str, face: Face) -> None:
    lock, rival = face.of(zk).mutex(path), face.of(other).mutex(path)
    hold = face(lock.try_acquire)
    assert isinstance(hold, zklock.AsyncHold if face.is_async else zklock.Hold) and hold.token > 0
    assert face(rival.try_acquire) is None and lock.current is None
    assert face(face.of(other).mutex(path, timeout=0.01).acquire) is False
    face(hold.release)
    face(face(rival.try_acquire).release)


@pytest.mark.parametrize("kind", REENTRANT)
async def test_one_that_is_reentrant_is_had_again_by_its_owner_alone(
    zk: zklock.Client, path: str, face: Face, kind: str
) -> None:
    lock = KINDS[kind][0](face.of(zk), path, reentrant=True, timeout=SOON)
    async with face.block(lock) as outer, face.block(lock) as inner:
        assert outer.token == inner.token
        await face.fails(zklock.NotOwner, face.elsewhere, lock.release)
    assert not lock.locked()


def test_several_permits_at_once(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face) -> None:
    three, one = face.of(zk).semaphore(path, 4, permits=3), face.of(other).semaphore(path, 4)
    assert face(three.acquire, timeout=SOON)
    ground.expect_children(f"{path}/leases", 3)
    hold = face(one.hold, timeout=SOON)
    assert face(one.acquire, blocking=False) is False
    # Permits that were acquired three at a time cannot be released one by one.
    raises(zklock.NotHeld, lambda: face(face.of(zk).semaphore(path, 4).release))
    face(three.release)
    face(hold.release)
    ground.expect_free(path)


def test_the_limit_can_change(zk: zklock.Client, hosts: str, ground: Ground, path: str, face: Face) -> None:
    limit_at = f"{path}-limit"
    # As long as the node does not exist, the limit given here counts.
    lock = face.of(zk).semaphore(path, 1, limit_at=limit_at)
    first = face(lock.hold)
    assert face(lock.acquire, blocking=False) is False
    # The call connects the client, if needed.
    with zklock.Client(hosts) as setter:
        assert face(face.of(setter).set_limit, limit_at, 2) is None
    second = face(lock.hold, timeout=SOON)
    face(first.release)
    face(second.release)
    for wrong in (("limit", 2), (path, -2)):
        raises(zklock.InvalidInput, lambda: face(face.of(zk).set_limit, *wrong))
    ground.expect_free(path)


# Observers of an election take no part, and are told who leads.


def test_an_observer_is_an_iterator_and_a_wait_has_a_limit(other: zklock.Client, path: str) -> None:
    observer = other.election(path).observe()
    # None does not end the iteration.
    assert next(observer, "the end") is None
    times_out(lambda: observer.next(timeout=0.2)).says("200ms")
    raises(zklock.InvalidInput, lambda: observer.next(timeout=-1))


def test_the_end_of_an_observer(zk: zklock.Client, other: zklock.Client, path: str, face: Face) -> None:
    observer = face.of(other).election(path).observe()
    assert face(observer.next) is None
    waiting = Attempt(lambda: face(observer.next))
    assert not waiting.wait(0.1)
    other.close()
    raises(zklock.Closed, waiting.result)
    raises(zklock.Closed, lambda: face(observer.__anext__ if face.is_async else observer.__next__))
    # An observer need not be read to its end.
    face(face.of(zk).election(path).observe().next)
    settled(zk)


# Several locks at once: all of them, or any one.


def test_the_order_of_naming_makes_no_difference(zk: zklock.Client, path: str) -> None:
    one, two = zk.mutex(path), zk.mutex(f"{path}-2")
    zk.all([one, two]).acquire()
    assert zk.all([two, one]).locked()
    # Whoever holds the set holds its members.
    assert not one.acquire(timeout=0.1)
    zk.all(iter([two, one, zk.mutex(path)])).release()
    raises(zklock.NotHeld, zk.all([one, two]).release)


def test_a_set_may_be_of_sets_and_of_locks_of_both_faces(zk: zklock.Client, path: str) -> None:
    pair = zk.all([zk.mutex(path), zk.read_lock(f"{path}-2")])
    for client in (zk, zk.aio):
        assert client.all([pair, zk.semaphore(f"{path}-3", 2).aio], timeout=5).path == f"{path}, {path}-2, {path}-3"
    with pair as hold:
        assert hold.path == f"{path}, {path}-2"
    with zk.any([zk.mutex(path), zk.aio.read_lock(f"{path}-2")]) as hold:
        assert hold.path == path
