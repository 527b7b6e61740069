"""The barrier and the double barrier."""

from __future__ import annotations

import pytest
from ground import Ground
from scenes import SOON, Attempt, Face, Far, eventually, expire, raises, settled, times_out

import zklock


@pytest.fixture
def at(path: str) -> str:
    return path.replace("/locks/", "/barriers/")


def gone(ground: Ground, at: str) -> None:
    """Waits until no member is left. The node `ready` may be left, but lets nobody in."""
    eventually(lambda: set(ground.children(at)) <= {"ready"})


def test_who_comes_waits_until_it_is_removed(zk: zklock.Client, other: zklock.Client, at: str, face: Face) -> None:
    barrier, its = face.of(zk).barrier(at), face.of(other).barrier(at)
    # The barrier does not exist yet.
    assert face(barrier.wait) is True and face(its.is_set) is False and face(barrier.remove) is False
    assert face(barrier.set) is True and face(its.set) is False and face(its.is_set) is True
    assert face(its.wait, timeout=0.1) is False
    assert face(its.wait, timeout=0) is False
    waiting = [Attempt(lambda: face(its.wait)), Attempt(lambda: face(barrier.wait, timeout=SOON))]
    assert not waiting[0].wait(0.2) and not waiting[1].done()
    assert face(its.remove) is True
    assert [attempt.result() for attempt in waiting] == [True, True]


def test_who_is_alone_is_late_and_leaves_nothing(zk: zklock.Client, ground: Ground, at: str, face: Face) -> None:
    meeting = face.of(zk).double_barrier(at, 2, timeout=0.1)
    times_out(lambda: face(meeting.enter)).says(at)
    for call in (lambda: face(face.enter(meeting)), lambda: face(meeting.enter, timeout=0)):
        # The member counts until its node is gone.
        settled(zk)
        gone(ground, at)
        raises(zklock.Timeout, call)
    gone(ground, at)
    raises(zklock.NotHeld, lambda: face(face.exit(meeting), None, None, None))


def test_who_leaves_waits_for_the_others(
    zk: zklock.Client, other: zklock.Client, ground: Ground, at: str, face: Face
) -> None:
    waiting = Attempt(lambda: face(face.of(other).double_barrier(at, 2).enter, timeout=SOON))
    mine = face(face.of(zk).double_barrier(at, 2).enter, timeout=SOON)
    its = waiting.result()
    assert mine.node != its.node and mine.loss is None
    times_out(lambda: face(mine.leave, timeout=0.1)).says("others")
    raises(zklock.NotHeld, lambda: face(mine.leave))
    face(its.leave, timeout=SOON)
    gone(ground, at)
    # One that is forgotten leaves.
    face(face.of(zk).double_barrier(at, 1).enter)
    gone(ground, at)


@pytest.mark.parametrize("ends", ["by itself", "with its member lost"])
async def test_a_block_that_raises_leaves_and_waits_for_nobody(
    zk: zklock.Client, far: Far, ground: Ground, at: str, face: Face, ends: str
) -> None:
    waiting = Attempt(lambda: face(face.of(zk).double_barrier(at, 2).enter, timeout=SOON))
    raised = LookupError()
    with pytest.raises(LookupError):
        async with face.block(face.of(far.zk).double_barrier(at, 2)) as member:
            assert waiting.wait(SOON) and member.loss is None
            if ends != "by itself":
                expire(far.proxy)
                eventually(lambda: member.loss is not None)
            raise raised
    notes = getattr(raised, "__notes__", [])
    assert [at in note and "lost: its session expired" in note for note in notes] == [True] * (ends != "by itself")
    # It counts as a member that has left, so the other one does not wait for it.
    await face.make(waiting.result().leave, timeout=SOON)
    gone(ground, at)
