"""Observers of an election: they take no part, and are told who leads. For the election itself see test_kinds.py."""

from __future__ import annotations

import pytest
from scenes import SOON, Attempt, Connect, Face, raises, settled, times_out

import zklock


def test_an_observer_is_an_iterator_and_a_wait_has_a_limit(other: zklock.Client, path: str) -> None:
    observer = other.election(path).observe()
    # None does not end the iteration.
    assert next(observer, "the end") is None
    times_out(lambda: observer.next(timeout=0.2)).says("200ms")
    raises(zklock.InvalidInput, lambda: observer.next(timeout=-1))


def test_whoever_can_be_alone_can_be_observed(zk: zklock.Client, path: str) -> None:
    for lock in (zk.mutex(path), zk.single_node(f"{path}-2"), zk.write_lock(f"{path}-3")):
        observer = lock.observe()
        with lock as hold:
            while (holder := observer.next(timeout=SOON)) is None:
                pass
            assert holder.token == hold.token


@pytest.mark.parametrize("is_connected", [False, True])
def test_what_has_no_one_holder_cannot_be_observed(
    zk: zklock.Client, hosts: str, path: str, is_connected: bool
) -> None:
    client = zk if is_connected else zklock.Client(hosts)
    for lock in (client.semaphore(path, 2), client.all([client.mutex(path)])):
        raises(zklock.InvalidInput, lock.observe).says(path, "observe")
        raises(zklock.InvalidInput, lock.aio.observe)


def test_the_end_of_an_observer(zk: zklock.Client, connect: Connect, path: str, face: Face) -> None:
    client = connect()
    observer = face.of(client).election(path).observe()
    assert face(observer.next) is None
    waiting = Attempt(lambda: face(observer.next))
    assert not waiting.wait(0.1)
    client.close()
    assert isinstance(waiting.error(), zklock.Closed)
    raises(zklock.Closed, lambda: face(observer.__anext__ if face.is_async else observer.__next__))
    # An observer need not be read to its end.
    face(face.of(zk).election(path).observe().next)
    settled(zk)
