"""Any one of several locks: the first that is granted."""

from __future__ import annotations

import pytest
from ground import Ground
from scenes import SOON, Attempt, raises, settled

import zklock


def test_the_first_that_comes_is_held(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str) -> None:
    paths = [f"{path}-{number}" for number in range(3)]
    either = zk.any(zk.mutex(each) for each in paths)
    theirs = [other.mutex(each).hold(timeout=SOON) for each in paths]
    assert not either.acquire(blocking=False)
    raises(zklock.Timeout, lambda: either.hold(timeout=0.1))
    settled(zk)
    for each in paths:
        ground.expect_children(each, 1)
    waiting = Attempt(lambda: either.hold(timeout=SOON))
    for each in paths:
        ground.expect_children(each, 2)
    theirs.pop(1).release()
    hold = waiting.result()
    assert hold.path == paths[1]
    settled(zk)
    assert [len(ground.children(each)) for each in paths] == [1, 1, 1]
    hold.release()
    with either as again:
        assert again.path == paths[1] and either.locked()
    assert not either.locked()
    ground.expect_children(paths[1], 0)
    for held in theirs:
        held.release()


def test_of_those_that_are_free_the_first_is_taken(zk: zklock.Client, path: str) -> None:
    either = zk.any([zk.mutex(f"{path}-1"), zk.read(f"{path}-2"), zk.semaphore(f"{path}-3", 1)], timeout=0)
    holds = [either.hold() for _ in range(2)]
    assert [hold.path for hold in holds] == [f"{path}-1", f"{path}-2"]
    for hold in holds:
        hold.release()


def test_what_makes_no_sense_is_refused(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    mutex = zk.mutex(path)
    for wrong in ([], [mutex, mutex], [mutex, other.mutex(f"{path}-2")], [zk.exclusive(path)], [zk.any([mutex])]):
        with pytest.raises(zklock.InvalidInput):
            zk.any(wrong)
    with pytest.raises(TypeError):
        zk.any([path])  # type: ignore[list-item]
