"""The nodes of kazoo's Semaphore at a path: it has no queue, and counts all children."""

from __future__ import annotations

import re
import typing

from ground import Ground

import zklock

# The name of a holder's node.
LEASE = re.compile("[0-9a-f]{32}")


def test_a_holder_is_a_child_without_a_number(ground: Ground, kazoo: typing.Any, path: str) -> None:
    semaphore = kazoo.Semaphore(path, max_leases=2)
    assert semaphore.acquire(timeout=10)
    (node,) = ground.children(path)
    assert LEASE.fullmatch(node)
    data, stat = kazoo.get(f"{path}/{node}")
    assert stat.ephemeralOwner == kazoo.client_id[0]
    # While it looks for a lease it holds a lock, whose queue is next to the path and is left behind.
    assert ground.children(f"{path}-__lock__") == []
    assert ground(f"exists {path}-__lock__") == "true"
    semaphore.release()
    ground.expect_children(path, 0)


def test_any_child_counts_as_a_lease(ground: Ground, kazoo: typing.Any, path: str) -> None:
    assert kazoo.Semaphore(path, max_leases=1).acquire(blocking=False)
    assert not kazoo.Semaphore(path, max_leases=1).acquire(blocking=False)
    kazoo.delete(f"{path}/{ground.children(path)[0]}")
    with zklock.Client(ground("servers")) as client:
        with client.mutex(path):
            assert not kazoo.Semaphore(path, max_leases=1).acquire(blocking=False)
        ground.expect_children(path, 0)
        with client.semaphore(path, 5):
            pass
    # The two directories of ours stay, and count as two of its leases for ever.
    assert ground.children(path) == ["leases", "locks"]
    assert not kazoo.Semaphore(path, max_leases=2).acquire(blocking=False)
    third = kazoo.Semaphore(path, max_leases=3)
    assert third.acquire(blocking=False)
    third.release()
