"""Promise 5: an attempt that fails, and a release whose reply is lost, leave no node."""

from __future__ import annotations

import functools
import gc
import threading
import time

import pytest
from conftest import SESSION
from ground import Ground
from punctual import not_later
from scenes import SOON, Attempt, ConnectFar, Far, Stat, eventually, expire, hook, raises, sequence, settled

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


def test_a_node_lost_with_its_session_is_followed_by_one_of_the_next_session(
    far: Far, ground: Ground, path: str
) -> None:
    zk, proxy = far
    lock, first = zk.mutex(path), zk.session_id
    with lock:
        pass
    proxy("refuse", "on")
    lost = hook(proxy, "drop-reply", "create", path)
    attempt = Attempt(lock.hold)
    lost.wait()
    assert len(ground.children(path)) == 1
    expire(proxy)
    hold = attempt.result()
    assert len(ground.children(path)) == 1
    stat = Stat.of(ground, hold.node)
    assert hold.token == stat.czxid and stat.owner == zk.session_id != first
    assert zk.stats().sessions == 2
    hold.release()
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


def test_an_acquire_that_timed_out_or_was_not_to_wait_leaves_no_node(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    with zk.mutex(path) as hold:
        lock = other.mutex(path, timeout=0.03)
        for timeout in (0, 0.001, 0.05):
            assert not lock.acquire(timeout=timeout)
            raises(zklock.Timeout, lambda: lock.hold(timeout=timeout))
            ground.expect_children(path, 1)
        assert not lock.acquire(blocking=False)
        raises(zklock.Timeout, lock.__enter__)
        settled(other)
        # Nothing is left but the holder's node.
        assert ground.children(path) == [hold.node.rpartition("/")[2]]


@pytest.mark.parametrize("side", ["hold-request", "hold-reply"])
@pytest.mark.parametrize("kind", ["create", "get-children", "get-data"])
def test_an_attempt_that_gives_up_at_any_step_leaves_no_node(
    zk: zklock.Client, far: Far, ground: Ground, path: str, side: str, kind: str
) -> None:
    with zk.mutex(path):
        lock = far.zk.mutex(path)
        gate = hook(far.proxy, side, kind, path)
        assert not lock.acquire(timeout=0.3)
        assert gate.has_fired()
        # The client does not know yet whether there is a node, so its deletion is owed.
        assert far.zk.stats().owed == 1
        gate.open()
        settled(far.zk)
        assert len(ground.children(path)) == 1


@pytest.mark.parametrize("kind", ["create", "get-children"])
def test_an_attempt_at_a_free_lock_that_gives_up_at_any_step_leaves_no_node(
    far: Far, ground: Ground, path: str, kind: str
) -> None:
    zk, proxy = far
    lock = zk.mutex(path)
    with lock:
        pass
    gate = hook(proxy, "hold-reply", kind, path)
    # The grant is on its way when the timeout ends.
    assert not lock.acquire(timeout=0.3)
    assert gate.has_fired() and zk.stats().owed == 1 and not lock.locked()
    gate.open()
    settled(zk)
    assert ground.children(path) == []
    with lock:
        pass


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


def test_what_is_owed_is_counted_from_the_moment_that_the_caller_has_its_answer(
    zk: zklock.Client, far: Far, ground: Ground, path: str
) -> None:
    with zk.mutex(path):
        lock = far.zk.mutex(path)
        for _ in range(20):
            gate = hook(far.proxy, "hold-request", "delete", path)
            assert not lock.acquire(timeout=0.01)
            # A program that ends its process when nothing is owed relies on this.
            assert far.zk.stats().owed == 1 or gate.has_fired()
            gate.wait()
            assert far.zk.stats().owed == 1
            gate.open()
            settled(far.zk)
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


def test_a_hold_that_is_forgotten_in_a_cycle_is_released_by_the_collector(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    class Job:
        def __init__(self) -> None:
            self.hold = zk.mutex(path).hold(timeout=SOON)
            self.itself = self

    with pytest.warns(ResourceWarning):
        # The warning is also expected here, because the collector may run by itself.
        Job()
        gc.collect()
    ground.expect_children(path, 0)


def test_a_hold_that_is_over_is_forgotten_without_a_word(zk: zklock.Client, ground: Ground, path: str) -> None:
    # Warnings are errors.
    hold = zk.mutex(path).hold(timeout=SOON)
    hold.release()
    del hold
    with zk.mutex(path).hold():
        pass
    hold = zk.mutex(path).hold(timeout=SOON)
    ground(f"delete {hold.node}")
    assert hold.lost.wait(SOON)
    del hold
    with zk.mutex(path) as hold:
        # The hold of a block belongs to the block.
        del hold
        gc.collect()
        assert len(ground.children(path)) == 1
    gc.collect()
    assert ground.children(path) == []


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


def test_what_was_acquired_goes_with_its_client(hosts: str, ground: Ground, path: str) -> None:
    zk = zklock.Client(hosts, session_timeout=SESSION)
    assert zk.mutex(path).acquire(timeout=SOON)
    assert len(ground.children(path)) == 1
    del zk
    gc.collect()
    ground.expect_children(path, 0, within=SESSION / 2)


def test_what_was_asked_for_in_vain_while_disconnected_is_never_sent(far: Far, path: str) -> None:
    zk, proxy = far
    online, offline = zk.mutex(path), zk.mutex(f"{path}-offline")
    with online:
        pass
    proxy("refuse", "on")
    proxy("reset")

    def is_noticed() -> bool:
        try:
            online.hold(timeout=0.03).release()
        except zklock.Unreachable:
            return True
        except (zklock.Timeout, zklock.LockLost):
            pass
        return False

    eventually(is_noticed)
    proxy("record")
    raises(zklock.Unreachable, lambda: offline.acquire(timeout=0.1))
    proxy("refuse", "off")
    with zk.mutex(path, timeout=SOON):
        pass
    said = proxy("messages")
    assert f"{path}-offline" not in said and path in said


def test_threads_that_come_and_go_leave_no_node(connect_far: ConnectFar, ground: Ground, path: str) -> None:
    """Many attempts of many kinds at once, with connections that break."""
    clients = [connect_far() for _ in range(3)]
    is_over = threading.Event()

    def work(number: int) -> int:
        lock, granted = clients[number % 3].zk.mutex(path), 0
        while not is_over.is_set():
            try:
                if lock.acquire(timeout=0.002 * (number + 1)):
                    granted += 1
                    lock.release()
            except (zklock.LockLost, zklock.Unreachable):
                pass
        return granted

    attempts = [Attempt(functools.partial(work, number)) for number in range(9)]
    for round in range(10):
        assert not is_over.wait(0.1)
        clients[round % 3].proxy("reset" if round % 2 else "cut")
    is_over.set()
    granted = sum(attempt.result() for attempt in attempts)
    # A grant may come just too late for its caller. Then the caller has no hold, and no node stays.
    assert 0 < granted <= sum(zk.stats().grants for zk, _ in clients)
    for zk, _ in clients:
        settled(zk)
    assert ground.children(path) == []
