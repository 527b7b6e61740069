"""The end of clients: its effects, and their limits, in any order."""

from __future__ import annotations


import pytest
from conftest import SESSION
from ground import Ground
from scenes import SOON, Attempt, Face, Far, raises

import zklock

SAYS = "the client is closed: make a new one"


def test_a_close_frees_what_is_held_and_ends_what_waits(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    zks, busy = face.of(zk), other.mutex(f"{path}-busy").hold(timeout=SOON)
    hold, kept = face(zks.mutex(path).hold, timeout=SOON), zks.mutex(f"{path}-kept")
    assert face(kept.acquire, timeout=SOON)
    loss = Attempt(lambda: hold.lost.wait())
    queued = [Attempt(lambda: face(zks.mutex(busy.path).acquire)), Attempt(lambda: face(zks.mutex(busy.path).hold))]
    ground.expect_children(busy.path, 2)
    face(zks.close)
    assert ground.children(path) == [] and ground.children(kept.path) == [] and len(ground.children(busy.path)) == 1
    for attempt in queued:
        raises(zklock.Closed, attempt.result).says(SAYS)
    assert loss.result() is True and hold.lost.reason is zklock.LossReason.CLIENT_CLOSED
    assert hold.state is zklock.HoldState.LOST and hold.valid_for() == 0 and not kept.locked()
    for call in (hold.confirm, hold.guarded().commit):
        raises(zklock.LockLost, lambda: face(call))
    for release in (hold.release, kept.release):
        raises(zklock.LockLost, lambda: face(release)).says("closed")
        raises(zklock.NotHeld, lambda: face(release))
    stats = zk.stats()
    assert (stats.sessions, stats.grants, stats.losses, stats.owed) == (1, 2, 2, 0)
    # The other client is not affected.
    busy.release()


def test_a_closed_client_says_so_and_does_nothing(far: Far, ground: Ground, path: str, face: Face) -> None:
    zk, proxy = far
    zks = face.of(zk)
    lock = zks.mutex(path)
    face(face(lock.hold, timeout=SOON).release)
    for _ in range(2):
        face(zks.close)
    proxy("record")
    for closed in (lock, zks.mutex(path)):
        for call in (
            closed.acquire,
            lambda: closed.acquire(blocking=False),
            lambda: closed.acquire(timeout=SOON),
            closed.hold,
            lambda: closed.hold(timeout=0),
            face.enter(closed),
            closed.contenders,
            zks.connect,
            lambda: zks.connect(timeout=0),
            zks.guard,
            face.enter(zks),
        ):
            raises(zklock.Closed, lambda: face(call)).says(SAYS)
        assert not closed.locked() and closed.current is None
        raises(zklock.NotHeld, lambda: face(closed.release))
    assert zk.session_id is None and zk.session_timeout is None
    assert zk.stats().owed == 0 and "closed" in repr(zk)
    # A wrong argument is reported first.
    raises(zklock.InvalidInput, lambda: zks.mutex("relative"))
    assert "request:" not in proxy("messages")
    assert ground.children(path) == []


def test_the_end_of_a_block_of_a_client_closes_it(hosts: str, ground: Ground, path: str) -> None:
    with zklock.Client(hosts, session_timeout=SESSION) as zk:
        assert zk.session_id is not None and zk.session_timeout == SESSION
        assert zk.mutex(path).acquire()
        assert len(ground.children(path)) == 1
    assert ground.children(path) == []
    raises(zklock.Closed, zk.connect)
    # A client may be closed within its block.
    with zklock.Client(hosts) as zk:
        zk.close()
    failure = ValueError("in the block")
    with pytest.raises(ValueError) as caught:
        with zklock.Client(hosts) as zk:
            raise failure
    assert caught.value is failure and failure.__context__ is None
    raises(zklock.Closed, zk.connect)
