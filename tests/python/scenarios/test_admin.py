"""Listing the queue, removing a contender from it, and options for queueing."""

from __future__ import annotations

import time

import pytest
from ground import Ground
from scenes import SOON, Attempt, Connect, raises

import zklock


def test_contenders_say_who_and_what_they_are(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    with zk.write(path) as hold:
        waiting = Attempt(lambda: other.read(path).hold(timeout=SOON))
        ground.expect_children(path, 2)
        writer, reader = zk.write(path).contenders()
        assert writer.node == hold.node == f"{path}/{writer.name}"
        assert (writer.role, writer.holds, reader.role, reader.holds) == ("write", True, "read", False)
        assert (writer.session, reader.session) == (zk.session_id, other.session_id)
        assert writer.token == hold.token < reader.token
        assert abs(time.time() - reader.since) < 60
        assert {writer.dialect, reader.dialect} == {"curator"}
    waiting.result().release()


def test_contenders_of_a_semaphore_and_of_a_set(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    at = f"{path}-permits"
    lock = zk.semaphore(at, 1)
    with lock as hold:
        waiting = Attempt(lambda: other.semaphore(at, 1).hold(timeout=SOON))
        ground.expect_children(f"{at}/locks", 1)
        holder, *others = lock.contenders()
        assert holder.holds and holder.node == hold.node
        # The first in the queue may already have put its permit behind the others.
        assert not any(waiter.holds for waiter in others)
        assert others[-1].node.startswith(f"{at}/locks/") and others[-1].session == other.session_id
        with zk.mutex(path) as beside:
            of_both = zk.all([zk.mutex(path), lock]).contenders()
            assert {beside.node, holder.node, others[-1].node} <= {one.node for one in of_both}
    waiting.result().release()


def test_who_is_evicted_is_told_and_the_next_one_has_its_turn(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    lock = zk.mutex(path)
    hold = lock.hold()
    waiting = Attempt(lambda: other.mutex(path).hold(timeout=SOON))
    ground.expect_children(path, 2)
    node = lock.contenders()[0].node
    assert other.mutex(path).evict(node) is True
    assert hold.lost.wait(SOON)
    assert hold.lost.reason is zklock.LossReason.NODE_DELETED
    waiting.result().release()
    assert other.mutex(path).evict(node) is False
    raises(zklock.LockLost, hold.release)


def test_a_waiter_that_is_evicted_queues_again(
    zk: zklock.Client, connect: Connect, ground: Ground, path: str
) -> None:
    waits = connect(session_timeout=1)
    with zk.mutex(path):
        waiting = Attempt(lambda: waits.mutex(path).hold(timeout=SOON))
        ground.expect_children(path, 2)
        waiter = zk.mutex(path).contenders()[1]
        assert zk.mutex(path).evict(waiter.node)
        # So long that its lease has lapsed, and it checks its node when its turn comes.
        assert not waiting.wait(0.5)
    hold = waiting.result()
    assert hold.node != waiter.node and hold.token > waiter.token
    hold.release()


def test_only_contenders_of_the_lock_are_evicted(zk: zklock.Client, ground: Ground, path: str) -> None:
    with zk.mutex(path), zk.mutex(f"{path}-2") as its:
        for node in (its.node, path, "/", "", f"{path}/other", its.node.rpartition("/")[2]):
            raises(zklock.InvalidInput, lambda: zk.mutex(path).evict(node)).says("contenders()")
        assert its.confirm() > 0


def test_to_break_a_lock_is_to_evict_all_who_hold_it(
    zk: zklock.Client, other: zklock.Client, connect: Connect, ground: Ground, path: str
) -> None:
    assert zk.read(path).break_lock() == []
    readers = [zk.read(path).hold(), other.read(path).hold()]
    writing = Attempt(lambda: connect().write(path).hold(timeout=SOON))
    ground.expect_children(path, 3)
    broken = zk.write(path).break_lock()
    assert [one.node for one in broken] == [reader.node for reader in readers]
    for reader in readers:
        assert reader.lost.wait(SOON)
        raises(zklock.LockLost, reader.release)
    writing.result().release()
    permits = zk.semaphore(f"{path}-permits", 2)
    first, second = permits.hold(), permits.hold()
    assert {one.node for one in permits.break_lock()} == {first.node, second.node}
    for hold in (first, second):
        assert hold.lost.wait(SOON)
        raises(zklock.LockLost, hold.release)


def test_all_who_hold_are_asked_to_let_go(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    assert zk.read(path).revoke() == []
    readers = [zk.read(path).hold(), other.read(path).hold()]
    assert not readers[0].wanted
    assert [one.node for one in zk.write(path).revoke()] == [reader.node for reader in readers]
    for reader in readers:
        assert reader.wanted.wait(SOON)
        reader.release()


def test_the_queue_is_that_of_the_path_and_not_of_the_lock(zk: zklock.Client, path: str) -> None:
    """Locks of different kinds at one path are different locks for a release, but share the queue that is listed."""
    with zk.mutex(path) as hold:
        assert [one.node for one in zk.write(path).contenders()] == [hold.node]
        raises(zklock.NotHeld, zk.write(path).release)
        raises(zklock.NotHeld, zk.election(path).release)
        assert zk.write(path).current is None


@pytest.mark.parametrize("watching", ["nearest", "children"])
def test_whatever_is_watched_the_order_stays(
    zk: zklock.Client, connect: Connect, ground: Ground, path: str, watching: str
) -> None:
    grants: list[int] = []

    def work(client: zklock.Client, place: int) -> None:
        with client.mutex(path, watching=watching):  # type: ignore[arg-type]
            grants.append(place)

    attempts = []
    with zk.mutex(path):
        for place in range(4):
            client = connect()
            attempts.append(Attempt(lambda client=client, place=place: work(client, place)))  # type: ignore[misc]
            ground.expect_children(path, place + 2)
    for attempt in attempts:
        attempt.result()
    assert grants == [0, 1, 2, 3]


def test_the_names_of_every_dialect(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    assert zk.session_id is not None
    for dialect, part in (("curator", "-lock-"), ("kazoo", "__lock__"), ("writelock", f"x-{zk.session_id}-")):
        lock = zk.mutex(path, dialect=dialect)  # type: ignore[arg-type]
        with lock as hold:
            assert part in hold.node
            assert [one.dialect for one in other.mutex(path).contenders()] == [dialect]


def test_who_cannot_see_ours_is_refused_unless_it_is_told_otherwise(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    with zk.mutex(path, dialect="kazoo") as hold:
        name = hold.node.rpartition("/")[2]
        raises(zklock.ForeignContender, lambda: other.mutex(path).hold(timeout=SOON)).says(name)
        raises(zklock.ForeignContender, lambda: other.mutex(path).acquire(blocking=False)).says(name)
        assert not other.mutex(path, foreign="go-ahead").acquire(blocking=False)
        waiting = Attempt(lambda: other.mutex(path, foreign="go-ahead").hold(timeout=SOON))
        ground.expect_children(path, 2)
    waiting.result().release()


@pytest.mark.parametrize("is_connected", [False, True])
def test_words_that_nobody_knows(zk: zklock.Client, hosts: str, path: str, is_connected: bool) -> None:
    client = zk if is_connected else zklock.Client(hosts)
    for name in ("dialect", "foreign", "watching"):
        for kind in (client.mutex, client.read, client.write, client.aio.mutex):
            raised = raises(zklock.InvalidInput, lambda: kind(path, **{name: "klingon"}))  # type: ignore[arg-type]
            raised.says(name, "klingon")
            assert isinstance(raised.error, ValueError)
            with pytest.raises(TypeError):
                kind(path, **{name: None})  # type: ignore[arg-type]
    for side in (client.read, client.write):
        raises(zklock.InvalidInput, lambda: side(path, dialect="writelock")).says("kazoo")  # type: ignore[arg-type]
    for other_kind in (client.election, client.exclusive):
        with pytest.raises(TypeError):
            other_kind(path, dialect="kazoo")  # type: ignore[call-arg]
    for bare in (client.read, client.write, client.election, client.exclusive):
        raises(zklock.InvalidInput, lambda: bare("no/slash")).says("no/slash")
        raises(zklock.InvalidInput, lambda: bare(path, timeout=-1)).says("-1")
