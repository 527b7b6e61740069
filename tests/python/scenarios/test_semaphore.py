"""The semaphore: as many can hold it as it has permits."""

from __future__ import annotations

import pytest
from ground import Ground
from scenes import SOON, Face, raises

import zklock


@pytest.fixture
def at(path: str) -> str:
    """The path of a semaphore, whose nodes `locks` and `leases` stay for a while."""
    return f"{path}-permits"


def test_several_permits_at_once(zk: zklock.Client, other: zklock.Client, ground: Ground, at: str, face: Face) -> None:
    three, one = face.of(zk).semaphore(at, 4, permits=3), face.of(other).semaphore(at, 4)
    assert face(three.acquire, timeout=SOON)
    ground.expect_children(f"{at}/leases", 3)
    hold = face(one.hold, timeout=SOON)
    assert face(one.acquire, blocking=False) is False
    # Permits that were acquired three at a time cannot be released one by one.
    raises(zklock.NotHeld, lambda: face(face.of(zk).semaphore(at, 4).release))
    face(three.release)
    face(hold.release)
    ground.expect_free(at)


def test_the_limit_can_change(zk: zklock.Client, hosts: str, ground: Ground, at: str, face: Face) -> None:
    limit_at = f"{at}-limit"
    # As long as the node does not exist, the limit given here counts.
    lock = face.of(zk).semaphore(at, 1, limit_at=limit_at)
    first = face(lock.hold)
    assert face(lock.acquire, blocking=False) is False
    # The call connects the client, if needed.
    with zklock.Client(hosts) as setter:
        assert face(face.of(setter).set_limit, limit_at, 2) is None
    second = face(lock.hold, timeout=SOON)
    face(first.release)
    face(second.release)
    for wrong in (("limit", 2), (at, -2)):
        raises(zklock.InvalidInput, lambda: face(face.of(zk).set_limit, *wrong))
    ground.expect_free(at)


def test_what_cannot_be(zk: zklock.Client, hosts: str, at: str) -> None:
    for client in (zklock.Client(hosts), zk, zk.aio):
        for limit, permits in ((5, 6), (5, 0), (0, 1), (-1, 1), (5, -1), (2**32, 1)):
            raises(zklock.InvalidInput, lambda: client.semaphore(at, limit, permits=permits))
        raises(zklock.InvalidInput, lambda: client.semaphore("permits", 5)).says("permits")
        raises(zklock.InvalidInput, lambda: client.semaphore(at, 5, limit_at="limit")).says("limit")
    raises(zklock.InvalidInput, lambda: zklock.Client(hosts).set_limit(at, -1)).says("-1")
