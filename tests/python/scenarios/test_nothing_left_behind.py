"""Promise 5: an attempt that fails, and a release whose reply is lost, leave no node.

For forgotten holds see guests/test_collection.py.
"""

from __future__ import annotations


import pytest
from conftest import SESSION
from ground import Ground
from scenes import SOON, Attempt, Face, Far, hook, raises, sequence, settled

import zklock


@pytest.mark.parametrize("lost", ["drop-reply", "drop-request"])
def test_what_was_lost_on_its_way_is_done_once(far: Far, ground: Ground, path: str, face: Face, lost: str) -> None:
    zk, proxy = far
    lock = face.of(zk).mutex(path)
    creation, deletion = (hook(proxy, lost, kind, path) for kind in ("create", "delete"))
    hold = face(lock.hold, timeout=SOON)
    # The hold has the node whose reply was lost, if there was one.
    assert creation.has_fired() and len(ground.children(path)) == 1 and sequence(hold) == 0
    face(hold.release)
    assert deletion.has_fired() and hold.state is zklock.HoldState.RELEASED
    assert ground.children(path) == [] and zk.stats().owed == 0


def test_a_try_at_the_first_use_leaves_no_node_where_connecting_takes_too_long(
    hosts: str, ground: Ground, path: str, face: Face
) -> None:
    proxy = ground.proxy("1")
    zk = zklock.Client(proxy.hosts, session_timeout=SESSION)
    gate = hook(proxy, "hold-reply", "connect")
    lock = face.of(zk).mutex(path)
    raises(zklock.Unreachable, lambda: face(lock.acquire, timeout=0.3))
    gate.wait()
    gate.open()
    zk.connect()
    # It is connected, and did not go on to acquire.
    assert zk.stats().grants == 0 and ground.children(path) == []
    zk.close()


def test_what_is_owed_is_counted_until_it_is_paid(
    zk: zklock.Client, far: Far, ground: Ground, path: str, face: Face
) -> None:
    with zk.mutex(path):
        attempt = Attempt(lambda: face(face.of(far.zk).mutex(path).acquire, timeout=1))
        ground.expect_children(path, 2)
        # The caller is still there.
        assert far.zk.stats().owed == 0 or attempt.is_over()
        far.proxy("freeze", "both")
        # It is late, or noticed the outage: either way it has left its node behind.
        assert attempt.wait(SOON)
        assert far.zk.stats().owed == 1 and len(ground.children(path)) == 2
        far.proxy("thaw")
        settled(far.zk)
        # Once nothing is owed, the node is gone.
        assert len(ground.children(path)) == 1
