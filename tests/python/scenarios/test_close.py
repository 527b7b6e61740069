"""The end of clients: its effects, and their limits, in any order."""

from __future__ import annotations

import functools
import gc
import threading
import time

import pytest
from conftest import SESSION
from ground import Ground
from punctual import not_later
from scenes import SOON, Attempt, Connect, Far, elsewhere, eventually, heard, hook, raises, settled

import zklock

SAYS = "the client is closed: make a new one"


def test_a_close_frees_what_is_held_and_ends_what_waits(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    busy, own = f"{path}/busy", f"{path}/own"
    hers = other.mutex(busy).hold(timeout=SOON)
    holds = zk.mutex(own, reentrant=True)
    hold, kept = holds.hold(timeout=SOON), zk.mutex(f"{path}/kept")
    assert kept.acquire(timeout=SOON)
    loss = Attempt(lambda: hold.lost.wait())
    queued = Attempt(zk.mutex(busy).acquire)
    ground.expect_children(busy, 2)
    local = Attempt(lambda: zk.mutex(busy).acquire(timeout=6 * SOON))
    reentrant = Attempt(holds.hold)
    ground.expect_children(own, 2)
    assert not any(attempt.is_over() for attempt in (queued, local, reentrant, loss))

    zk.close()
    assert ground.children(own) == [] and ground.children(f"{path}/kept") == []
    assert len(ground.children(busy)) == 1
    for attempt in (queued, local, reentrant):
        error = attempt.error()
        assert type(error) is zklock.Closed and SAYS in str(error)
    assert loss.result() is True
    assert hold.state is zklock.HoldState.LOST and hold.valid_for() == 0
    assert hold.lost.reason is zklock.LossReason.CLIENT_CLOSED
    assert not kept.locked() and not holds.locked()
    raises(zklock.LockLost, hold.confirm)
    raises(zklock.LockLost, hold.guarded().commit)
    raises(zklock.LockLost, hold.release).says("closed")
    raises(zklock.LockLost, kept.release).says("closed")
    raises(zklock.NotHeld, kept.release)
    # The other client is not affected.
    hers.release()
    for name in ("busy", "own", "kept"):
        ground.expect_children(f"{path}/{name}", 0)
    ground(f"delete-tree {path}")


def test_a_closed_client_says_so_and_does_nothing(far: Far, ground: Ground, path: str) -> None:
    zk, proxy = far
    lock = zk.mutex(path)
    with lock:
        pass
    unused = zk.mutex(path, reentrant=True)
    zk.close()
    zk.close()
    proxy("record")
    for closed in (lock, unused, zk.mutex(path)):
        for call in (
            closed.acquire,
            lambda: closed.acquire(blocking=False),
            lambda: closed.acquire(timeout=SOON),
            closed.hold,
            lambda: closed.hold(timeout=0),
            closed.__enter__,
            closed.contenders,
        ):
            raises(zklock.Closed, call).says(SAYS)
        assert not closed.locked() and closed.current is None
        raises(zklock.NotHeld, closed.release)
    raises(zklock.Closed, zk.connect).says(SAYS)
    raises(zklock.Closed, lambda: zk.connect(timeout=0)).says(SAYS)
    raises(zklock.Closed, zk.__enter__).says(SAYS)
    assert zk.session_id is None and zk.session_timeout is None
    assert zk.stats().owed == 0 and "closed" in repr(zk)
    # A wrong argument is reported first.
    raises(zklock.InvalidInput, lambda: zk.mutex("relative"))
    assert heard(proxy, "request:") == 0
    assert ground.children(path) == []


def test_what_a_client_has_done_can_be_read_when_it_is_closed(zk: zklock.Client, ground: Ground, path: str) -> None:
    with zk.mutex(path):
        pass
    hold = zk.mutex(path).hold(timeout=SOON)
    zk.close()
    eventually(lambda: hold.lost.is_set())
    stats = zk.stats()
    assert (stats.sessions, stats.grants, stats.losses, stats.owed) == (1, 2, 1, 0)


def test_a_client_that_was_never_used_is_closed_without_a_word(far: Far, hosts: str) -> None:
    unused = zklock.Client(far.proxy.hosts)
    far.proxy("record")
    unused.close()
    unused.close()
    raises(zklock.Closed, unused.connect).says(SAYS)
    raises(zklock.Closed, unused.mutex("/never").acquire)
    assert heard(far.proxy, "request:connect") == 0
    # Whether there are servers is unknown, because nothing connects.
    nobody = zklock.Client("no-such-host.invalid:2181")
    nobody.close()
    assert "closed" in repr(nobody)


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


def test_a_close_in_the_block_of_a_lock_is_a_loss(zk: zklock.Client, path: str) -> None:
    with pytest.raises(zklock.LockLost) as caught:
        with zk.mutex(path) as hold:
            zk.close()
            assert hold.lost.is_set() and hold.valid_for() == 0
    assert caught.value.reason is zklock.LossReason.CLIENT_CLOSED


def test_a_second_close_waits_as_the_first_does(far: Far, ground: Ground, path: str) -> None:
    zk, proxy = far
    assert zk.mutex(path).acquire()
    gate = hook(proxy, "hold-request", "close")
    begun = time.monotonic()
    first = Attempt(zk.close)
    gate.wait()
    second = Attempt(zk.close)
    # Both have up to a second before they give up, so this is well within their time.
    ends_early = second.wait(0.1)
    is_in_time = time.monotonic() - begun < 0.9
    nodes = len(ground.children(path))
    gate.open()
    first.result()
    second.result()
    if is_in_time:
        assert not ends_early and nodes == 1
    ground.expect_children(path, 0)


def test_a_close_in_the_middle_of_everything_harms_nobody(connect: Connect, ground: Ground, path: str) -> None:
    for _ in range(10):
        zk = connect()
        lock = zk.mutex(path)
        attempts = [Attempt(functools.partial(lock.hold, timeout=None)) for _ in range(6)]
        closing = [Attempt(zk.close) for _ in range(2)]
        for close in closing:
            close.result()
        for attempt in attempts:
            try:
                hold = attempt.result()
            except zklock.Closed as error:
                assert SAYS in str(error)
            else:
                assert hold.state is zklock.HoldState.LOST
                raises(zklock.LockLost, hold.release)
    ground.expect_children(path, 0)


def test_a_close_while_connecting_ends_that(ground: Ground, path: str) -> None:
    proxy = ground.proxy("1")
    gate = hook(proxy, "hold-reply", "connect")
    zk = zklock.Client(proxy.hosts, session_timeout=SESSION)
    connecting, acquiring = Attempt(zk.connect), Attempt(zk.mutex(path).acquire)
    gate.wait()
    zk.close()
    gate.open()
    for attempt in (connecting, acquiring):
        error = attempt.error()
        assert type(error) is zklock.Closed and SAYS in str(error)
    # Nothing keeps the session open.
    eventually(lambda: proxy("connections") == "0")
    assert ground.children(path) == []


def test_a_callback_may_close_the_client(zk: zklock.Client, ground: Ground, path: str) -> None:
    hold, kept = zk.mutex(path).hold(timeout=SOON), zk.mutex(f"{path}/kept")
    assert kept.acquire(timeout=SOON)
    is_closed = threading.Event()

    def close(reason: zklock.LossReason) -> None:
        zk.close()
        is_closed.set()

    hold.on_lost(close)
    ground(f"delete {hold.node}")
    assert is_closed.wait(SOON)
    raises(zklock.LockLost, hold.release)
    assert not kept.locked() and ground.children(f"{path}/kept") == []
    ground(f"delete-tree {path}")


def test_a_close_that_no_server_hears_ends_all_the_same(
    ground: Ground, connect: Connect, path: str
) -> None:
    proxy = ground.proxy("1")
    zk = connect(proxy.hosts, session_timeout=1)
    hold = zk.mutex(path).hold(timeout=SOON)
    attempt = Attempt(zk.mutex(path).hold)
    elsewhere(lambda: ground.expect_children(path, 2))
    proxy("refuse", "on")
    proxy("reset")
    begun = time.monotonic()
    zk.close()
    # A second, and the delays of a busy machine.
    not_later(time.monotonic() - begun, 2)
    assert hold.lost.wait(0) and hold.lost.reason is zklock.LossReason.CLIENT_CLOSED
    assert type(attempt.error()) is zklock.Closed
    # The session times out at the servers.
    ground.expect_children(path, 0)


def test_of_two_clients_one_is_closed_and_the_other_goes_on(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    first = zk.mutex(path).hold(timeout=SOON)
    attempt = Attempt(other.mutex(path).hold)
    ground.expect_children(path, 2)
    zk.close()
    second = attempt.result()
    assert second.token > first.token and first.valid_for() == 0
    assert second.confirm() > 0
    second.release()


def test_objects_may_be_forgotten_in_any_order(hosts: str, ground: Ground, path: str) -> None:
    for last in range(4):
        objects: list[object] = []
        zk = zklock.Client(hosts, session_timeout=SESSION)
        lock = zk.mutex(path)
        hold = lock.hold(timeout=SOON)
        objects += [zk, lock, hold.lost, hold.guarded()]
        objects = objects[last:] + objects[:last]
        hold.release()
        del zk, lock, hold
        while objects:
            objects.pop()
            gc.collect()
    ground.expect_children(path, 0)


def test_a_client_that_is_closed_by_one_thread_is_closed_for_all(zk: zklock.Client, path: str) -> None:
    elsewhere(zk.close)
    raises(zklock.Closed, zk.mutex(path).acquire)
    settled(zk)
