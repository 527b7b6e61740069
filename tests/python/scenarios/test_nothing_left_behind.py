"""Promise 5: an attempt that fails, and a release whose reply is lost, leave no node."""

from __future__ import annotations

import functools
import time

import pytest
from conftest import SESSION
from ground import Ground
from punctual import not_later
from scenes import SOON, Attempt, Far, Stat, eventually, hook, raises, sequence, settled

import zklock


@pytest.mark.parametrize("lost", ["drop-reply", "drop-request"])
def test_a_node_whose_request_or_reply_was_lost_is_the_only_one(
    far: Far, ground: Ground, path: str, lost: str
) -> None:
    zk, proxy = far
    lock = zk.mutex(path)
    with lock as hold:
        last = sequence(hold)
    creation = hook(proxy, lost, "create", path)
    with lock as hold:
        assert creation.has_fired() and len(ground.children(path)) == 1
        # The hold has the node whose reply was lost, if there was one: nothing was created since.
        assert sequence(hold) == last + 1
        assert hold.token == Stat.of(ground, hold.node).czxid
    assert ground.children(path) == []


@pytest.mark.parametrize("lost", ["drop-reply", "drop-request"])
def test_a_release_whose_request_or_reply_is_lost_is_done_all_the_same(
    far: Far, ground: Ground, path: str, lost: str
) -> None:
    zk, proxy = far
    lock = zk.mutex(path)
    for end in ("block", "release", "value"):
        deletion = hook(proxy, lost, "delete", path)
        if end == "block":
            with lock as hold:
                pass
        elif end == "release":
            assert lock.acquire(timeout=SOON)
            acquired = lock.current
            assert acquired is not None
            hold = acquired
            lock.release()
        else:
            hold = lock.hold(timeout=SOON)
            hold.release()
        assert deletion.has_fired() and hold.state is zklock.HoldState.RELEASED
        assert ground.children(path) == [] and zk.stats().owed == 0


def test_a_try_at_the_first_use_leaves_no_node_where_connecting_takes_too_long(
    hosts: str, ground: Ground, path: str
) -> None:
    proxy = ground.proxy("1")
    zk = zklock.Client(proxy.hosts, session_timeout=SESSION)
    gate = hook(proxy, "hold-reply", "connect")
    lock = zk.mutex(path)
    raises(zklock.Unreachable, lambda: lock.acquire(timeout=0.3))
    assert gate.has_fired()
    gate.open()
    zk.connect()
    # It is connected, and did not go on to acquire.
    assert zk.stats().grants == 0 and ground.children(path) == []
    with lock:
        pass
    zk.close()


def test_what_is_owed_is_counted_until_it_is_paid(zk: zklock.Client, far: Far, ground: Ground, path: str) -> None:
    with zk.mutex(path):
        attempt = Attempt(lambda: far.zk.mutex(path).acquire(timeout=0.5))
        ground.expect_children(path, 2)
        # The caller is still there.
        assert far.zk.stats().owed == 0
        far.proxy("freeze", "both")
        assert attempt.result() is False
        assert far.zk.stats().owed == 1 and len(ground.children(path)) == 2
        far.proxy("thaw")
        settled(far.zk)
        # Once nothing is owed, the node is gone.
        assert len(ground.children(path)) == 1


def test_what_is_owed_is_counted_from_the_moment_that_a_hold_is_forgotten(far: Far, ground: Ground, path: str) -> None:
    zk, proxy = far
    lock = zk.mutex(path)
    for _ in range(20):
        gate = hook(proxy, "hold-request", "delete", path)
        hold = lock.hold(timeout=SOON)
        with pytest.warns(ResourceWarning):
            del hold
        assert zk.stats().owed == 1
        gate.wait()
        gate.open()
        settled(zk)
        assert ground.children(path) == []


def test_a_hold_that_is_forgotten_is_released_and_so_is_one_on_a_sick_network(
    far: Far, ground: Ground, path: str
) -> None:
    zk, proxy = far
    lock = zk.mutex(path)
    for blow in (None, "reset", "cut"):
        hold = lock.hold(timeout=SOON)
        says = f"the hold of {path} with token {hold.token} was never released: use `with`, or call release()"
        if blow:
            proxy(blow)
        with pytest.warns(ResourceWarning) as warned:
            del hold
        assert [str(warning.message) for warning in warned] == [says]
        ground.expect_children(path, 0)
        settled(zk)
    # Dropping a hold does not wait for a broken network.
    hold = lock.hold(timeout=SOON)
    proxy("freeze", "both")
    begun = time.monotonic()
    with pytest.warns(ResourceWarning):
        del hold
    not_later(time.monotonic() - begun, 1)
    proxy("thaw")
    ground.expect_children(path, 0)


def test_a_client_that_is_forgotten_without_close_takes_its_nodes_and_its_session_along(
    hosts: str, ground: Ground, path: str
) -> None:
    proxy = ground.proxy("1")
    zk = zklock.Client(proxy.hosts, session_timeout=SESSION)
    hold = zk.mutex(path).hold(timeout=SOON)
    closed = hook(proxy, "see-request", "close")
    attempt = Attempt(functools.partial(zk.mutex(path).acquire, timeout=1))
    ground.expect_children(path, 2)
    del zk
    # A hold keeps the client that it needs.
    assert hold.confirm() > 0 and not closed.has_fired()
    assert attempt.result() is False
    del attempt
    ground.expect_children(path, 1)
    assert not closed.has_fired()
    hold.release()
    ground.expect_children(path, 0)
    # The session is closed, not left to time out.
    closed.wait()
    eventually(lambda: proxy("connections") == "0")
