"""Listing the queue, removing a contender from it, and options for queueing."""

from __future__ import annotations

import time

from ground import Ground
from scenes import SOON, Attempt, Face, raises, stat

import zklock


def test_contenders_say_who_and_what_they_are(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    lock = face.of(zk).write_lock(path)
    hold = face(lock.hold, timeout=SOON)
    waiting = Attempt(lambda: face(face.of(other).read_lock(path).hold, timeout=SOON))
    ground.expect_children(path, 2)
    writer, reader = face(lock.contenders)
    node = stat(ground, hold.node)
    assert writer.node == hold.node == f"{path}/{writer.name}"
    assert (writer.role, writer.holds, reader.role, reader.holds) == ("write", True, "read", False)
    assert (writer.session, reader.session) == (zk.session_id, other.session_id) == (node["owner"], reader.session)
    assert writer.token == hold.token == node["czxid"] < reader.token
    assert writer.identity == ground(f"data {hold.node}")
    assert abs(time.time() - reader.since) < 60
    assert {writer.naming, reader.naming} == {"curator"}
    face(hold.release)
    face(waiting.result().release)


def test_who_is_evicted_or_broken_is_told_and_the_next_one_has_its_turn(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    lock, theirs = face.of(zk).mutex(path), face.of(other).mutex(path)
    assert face(lock.break_lock) == face(lock.request_release) == []
    hold = face(lock.hold, timeout=SOON)
    waiting = Attempt(lambda: face(theirs.hold, timeout=SOON))
    ground.expect_children(path, 2)
    for node in (path, "/", "", f"{path}/other", hold.node.rpartition("/")[2]):
        raises(zklock.InvalidInput, lambda: face(lock.evict, node)).says("take one of those that it lists")
    assert face(theirs.evict, hold.node) is True
    second = waiting.result()
    assert face(lock.evict, hold.node) is False
    assert [one.node for one in face(lock.request_release)] == [second.node]
    assert second.wanted.wait(SOON)
    assert [one.node for one in face(lock.break_lock)] == [second.node]
    for gone in (hold, second):
        assert gone.lost.wait(SOON) and gone.lost.reason is zklock.LossReason.NODE_DELETED
        raises(zklock.LockLost, lambda: face(gone.release))


def test_who_cannot_see_ours_is_refused_unless_it_is_told_otherwise(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    theirs = face.of(other)
    with zk.mutex(path, naming="kazoo") as hold:
        name = hold.node.rpartition("/")[2]
        assert "__lock__" in name and [one.naming for one in zk.mutex(path).contenders()] == ["kazoo"]
        lock = theirs.mutex(path, timeout=SOON)
        calls = [lock.acquire, lambda: lock.acquire(blocking=False), lambda: lock.acquire(timeout=1), lock.hold]
        for call in (*calls, lambda: lock.hold(timeout=0), face.enter(lock)):
            raises(zklock.ForeignContender, lambda: face(call)).says(name)
        assert face(theirs.mutex(path, foreign="ignore-unknown").acquire, blocking=False) is False
        waiting = Attempt(lambda: face(theirs.mutex(path, foreign="ignore-unknown").hold, timeout=SOON))
        ground.expect_children(path, 2)
    face(waiting.result().release)


def test_the_queue_is_that_of_the_path_and_not_of_the_lock(zk: zklock.Client, path: str) -> None:
    """Locks of different kinds at one path are different locks for a release, but share the queue that is listed."""
    with zk.mutex(path) as hold:
        assert [one.node for one in zk.write_lock(path).contenders()] == [hold.node]
        raises(zklock.NotHeld, zk.write_lock(path).release)
        raises(zklock.NotHeld, zk.election(path).release)
        assert zk.write_lock(path).current is None
