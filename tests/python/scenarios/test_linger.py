"""A node stays after a release as long as nobody else wants the lock, and a holder learns when somebody does."""

from __future__ import annotations

import queue

import pytest
from ground import Ground
from scenes import SOON, Attempt, Face, in_asyncio

import zklock


@pytest.mark.parametrize("kind", ["mutex", "read_lock", "write_lock"])
def test_a_lock_that_lingers_is_taken_again(zk: zklock.Client, ground: Ground, path: str, face: Face, kind: str) -> None:
    lock = getattr(face.of(zk), kind)(path, linger=SOON)
    first = face(lock.hold)
    face(first.release)
    assert first.state is zklock.HoldState.RELEASED and first.valid_for() == 0 and not lock.locked()
    # Another object for the same lock is not another contender, nor is the other face.
    there = getattr(zk if face.is_async else zk.aio, kind)(path, linger=SOON)
    for side, again in ((face, lock), (Face(not face.is_async), there), (face, getattr(face.of(zk), kind)(path, linger=SOON))):
        hold = side(again.hold, timeout=0)
        assert hold.token == first.token
        side(hold.release)
        assert side(again.acquire, blocking=False)
        side(again.release)
    assert len(ground.children(path)) == 1
    zk.close()
    ground.expect_children(path, 0)


@pytest.mark.parametrize("linger", [None, SOON])
def test_a_holder_learns_that_others_wait_however_it_listens(
    zk: zklock.Client, other: zklock.Client, path: str, face: Face, linger: float | None
) -> None:
    lock, told = face.of(zk).mutex(path, linger=linger), queue.Queue[str]()
    hold = face(lock.hold, timeout=SOON)
    wanted = hold.wanted
    hold.on_wanted(lambda: told.put("first"))
    hold.on_wanted(lambda: told.put("second"))
    hold.on_lost(lambda reason: told.put("lost"))
    assert not wanted and not wanted.is_set() and not hold.wanted.wait(0.05) and not wanted.wait(-1)
    waits = [Attempt(wanted.wait), Attempt(lambda: in_asyncio(lambda: wanted))]
    theirs = Attempt(lambda: other.mutex(path).hold(timeout=SOON))
    assert [wait.result() for wait in waits] == [True, True]
    assert wanted and hold.wanted.is_set() and hold.wanted.wait(0) and hold.wanted.wait()
    assert [told.get(timeout=SOON), told.get(timeout=SOON)] == ["first", "second"]
    # A program that asks later is told at once.
    hold.on_wanted(lambda: told.put("late"))
    assert told.get(timeout=SOON) == "late"
    face(hold.release)
    assert not wanted and not hold.wanted.wait() and not wanted.wait(SOON)
    with theirs.result() as next_one:
        # It waits for nobody, and nobody waits for it.
        assert not next_one.wanted.wait(0.05)
    assert told.empty()


@pytest.mark.parametrize("end", ["release", "loss"])
def test_a_wait_for_others_ends_with_the_hold(zk: zklock.Client, ground: Ground, path: str, face: Face, end: str) -> None:
    told = queue.Queue[str]()
    hold = face(face.of(zk).mutex(path, linger=SOON).hold, timeout=SOON)
    hold.on_wanted(lambda: told.put("wanted"))
    waits = [Attempt(hold.wanted.wait), Attempt(lambda: in_asyncio(lambda: hold.wanted))]
    assert not waits[0].wait(0.05) and not waits[1].done()
    if end == "release":
        # Its node lingers, and may be given to the next.
        face(hold.release)
    else:
        ground(f"delete {hold.node}")
    assert [wait.result() for wait in waits] == [False, False] and not hold.wanted
    assert told.empty()


@pytest.mark.parametrize("handoffs", [0, 1])
def test_as_many_turns_within_the_client_are_without_a_request(
    zk: zklock.Client, other: zklock.Client, path: str, face: Face, handoffs: int
) -> None:
    lock = face.of(zk).mutex(path, max_local_handoffs=handoffs)
    first = face(lock.hold, timeout=SOON)
    mine = Attempt(lambda: face(lock.hold, timeout=SOON))
    assert first.wanted.wait(SOON)
    face(first.release)
    second = mine.result()
    assert (second.token == first.token) is (handoffs == 1)
    theirs = Attempt(lambda: other.mutex(path).hold(timeout=SOON))
    assert second.wanted.wait(SOON)
    face(second.release)
    theirs.result().release()
