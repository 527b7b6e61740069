"""Any one of several locks: the first that is granted."""

from __future__ import annotations

import pytest
from ground import Ground
from scenes import SOON, Attempt, Face, raises, settled

import zklock


def test_the_first_that_comes_is_held(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    paths = [f"{path}-{number}" for number in range(3)]
    zks = face.of(zk)
    either = zks.any((zks.mutex(each) for each in paths), timeout=0.1)
    theirs = [other.mutex(each).hold(timeout=SOON) for each in paths]
    assert face(either.acquire, blocking=False) is False
    raises(zklock.Timeout, lambda: face(either.hold))
    settled(zk)
    for each in paths:
        ground.expect_children(each, 1)
    waiting = Attempt(lambda: face(either.hold, timeout=SOON))
    for each in paths:
        ground.expect_children(each, 2)
    theirs.pop(1).release()
    hold = waiting.result()
    assert hold.path == paths[1]
    settled(zk)
    assert [len(ground.children(each)) for each in paths] == [1, 1, 1]
    for held in theirs:
        held.release()
    face(hold.release)
    # Of those that are free, the first is taken.
    again = face(either.hold, timeout=SOON)
    assert again.path == paths[0]
    face(again.release)


def test_what_makes_no_sense_is_refused(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    mutex = zk.mutex(path)
    for client in (zk, zk.aio):
        for wrong in ([], [mutex, mutex], [mutex, other.mutex(f"{path}-2")], [zk.exclusive(path)], [zk.any([mutex])]):
            with pytest.raises(zklock.InvalidInput):
                client.any(wrong)
        with pytest.raises(TypeError):
            client.any([path])  # type: ignore[list-item]
