"""Observers of an election: they take no part, and are told who leads. For the election itself see test_kinds.py."""

from __future__ import annotations

from scenes import SOON, Attempt, Connect, Face, raises, settled, times_out

import zklock


def test_an_observer_is_an_iterator_and_a_wait_has_a_limit(other: zklock.Client, path: str) -> None:
    observer = other.election(path).observe()
    # None does not end the iteration.
    assert next(observer, "the end") is None
    times_out(lambda: observer.next(timeout=0.2)).says("200ms")
    raises(zklock.InvalidInput, lambda: observer.next(timeout=-1))
    for lock in (other.semaphore(path, 2), other.semaphore(path, 2).aio, other.all([other.mutex(path)])):
        raises(zklock.InvalidInput, lock.observe).says(path, "observe")


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
