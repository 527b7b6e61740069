"""A reentrant lock belongs to the thread that acquired it, which may acquire it again. Others may not release it."""

from __future__ import annotations

import gc
import logging
import time

import pytest
from ground import Ground, Proxy
from punctual import not_later
from scenes import SOON, Attempt, Far, asked, elsewhere, eventually, lose, raises, settled

import zklock


def asked_for_it(proxy: Proxy) -> list[str]:
    """The recorded requests, except the listing that a holder sends after a heartbeat, as it may on a slow machine."""
    return [said for said in asked(proxy) if not said.startswith("request:getchildren:")]


def test_an_inner_acquire_asks_nobody_and_only_the_last_release_frees(far: Far, ground: Ground, path: str) -> None:
    zk, proxy = far
    lock = zk.mutex(path, reentrant=True)
    outer = lock.hold(timeout=SOON)
    proxy("record")
    # Another object for the same lock works as well, and so do all ways to acquire it.
    again = zk.mutex(path, reentrant=True)
    inner = [lock.hold(timeout=timeout) for lock in (lock, again) for timeout in (None, 0.001, 0)]
    assert {(hold.token, hold.node) for hold in inner} == {(outer.token, outer.node)}
    assert again.acquire() and lock.acquire(blocking=False) and lock.acquire(timeout=1)
    with again as block:
        assert block.token == outer.token and block is not outer
    # Any order is allowed, here the outer hold first.
    outer.release()
    assert outer.state is zklock.HoldState.RELEASED and outer.valid_for() == 0
    raises(zklock.NotHeld, outer.release).says(path, "released before")
    for hold in inner:
        hold.release()
    lock.release()
    again.release()
    assert lock.locked() and lock.current is not None and lock.current.valid_for() > 0
    assert asked_for_it(proxy) == []
    assert len(ground.children(path)) == 1
    lock.release()
    assert len(asked_for_it(proxy)) == 1
    assert ground.children(path) == [] and not lock.locked()
    raises(zklock.NotHeld, lock.release).says(path)
    with lock as hold:
        assert hold.token > outer.token


def test_an_inner_acquire_needs_no_server(far: Far, path: str) -> None:
    zk, proxy = far
    lock = zk.mutex(path, reentrant=True)
    with lock:
        proxy("freeze", "both")
        begun = time.monotonic()
        with lock:
            assert lock.acquire()
            lock.release()
        took = time.monotonic() - begun
        proxy("thaw")
        # An answer of the server would have taken as long as the network was frozen.
        not_later(took, 0.5)


def test_another_thread_waits_for_a_reentrant_lock_like_anybody(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    lock = zk.mutex(path, reentrant=True)
    outer = lock.hold(timeout=SOON)
    assert not elsewhere(lambda: lock.acquire(blocking=False))
    raises(zklock.Timeout, lambda: elsewhere(lambda: lock.hold(timeout=0))).says(path)
    other = Attempt(lock.hold)
    ground.expect_children(path, 2)
    with lock as inner:
        assert inner.token == outer.token
    assert not other.is_over()
    outer.release()
    hold = other.result()
    assert hold.token > outer.token
    # The owner's thread has ended. A new thread does not become the owner, even if the system gives it the same number.
    for _ in range(20):
        raises(zklock.NotOwner, lambda: elsewhere(hold.release))
        assert not elsewhere(lambda: lock.acquire(blocking=False))
    # Nobody can release it any more, except the garbage collector.
    with pytest.warns(ResourceWarning, match="never released"):
        del hold, other
        gc.collect()
    ground.expect_children(path, 0)


def test_a_release_by_another_thread_is_refused_and_changes_nothing(far: Far, ground: Ground, path: str) -> None:
    zk, proxy = far
    lock = zk.mutex(path, reentrant=True)
    assert lock.acquire(timeout=SOON)
    hold = lock.current
    assert hold is not None
    proxy("record")
    for release in (lock.release, hold.release, zk.mutex(path, reentrant=True).release):
        raises(zklock.NotOwner, lambda: elsewhere(release)).says(path, "release it there")
        assert hold.state is zklock.HoldState.HELD and hold.valid_for() > 0
    assert asked_for_it(proxy) == []
    assert len(ground.children(path)) == 1
    lock.release()
    assert ground.children(path) == []


def test_the_end_of_a_block_in_another_thread_is_refused_for_a_reentrant_lock(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path, reentrant=True)
    with lock as hold:
        raises(zklock.NotOwner, lambda: elsewhere(lambda: lock.__exit__(None, None, None)))
        assert hold.valid_for() > 0
    assert hold.state is zklock.HoldState.RELEASED


def test_a_second_acquire_by_the_same_thread_waits_as_that_of_any_thread(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    lock, again = zk.mutex(path), zk.mutex(path, timeout=0.1)
    hold = lock.hold(timeout=SOON)
    for other in (lock, again):
        assert other.acquire(timeout=0.1) is False
        raises(zklock.Timeout, lambda: other.hold(timeout=0.1)).says(path, "holds it itself")
        # A try does not wait.
        assert other.acquire(blocking=False) is False
        raises(zklock.Timeout, lambda: other.hold(timeout=0)).says(path, "is held by this thread or task itself")
    raises(zklock.Timeout, again.__enter__).says(path, "holds it itself")
    # Nothing has changed.
    assert hold.state is zklock.HoldState.HELD

    # A release by another ends the wait.
    def release() -> None:
        ground.expect_children(path, 2)
        hold.release()

    releases = Attempt(release)
    assert lock.acquire(timeout=SOON)
    releases.result()
    lock.release()


def test_a_wait_for_oneself_is_logged_and_no_other_is(
    zk: zklock.Client, ground: Ground, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    def told() -> list[str]:
        said = [record for record in caplog.records if record.levelname == "WARNING"]
        return [line for line in map(logging.LogRecord.getMessage, said) if path in line]

    lock = zk.mutex(path)
    with lock:
        elsewhere(lambda: lock.acquire(timeout=0.1))
        assert lock.acquire(blocking=False) is False
        assert lock.acquire(timeout=0.1) is False
        eventually(told)
        (line,) = told()
        assert "waits for it again" in line and "unless another thread" in line and "release it first" in line
        assert "reentrant" not in line
    # If holds go from thread to thread, as they do from here on, there is nothing to warn about.
    hold = lock.hold(timeout=SOON)
    elsewhere(hold.release)
    with lock:
        assert lock.acquire(timeout=0.1) is False
    # Lines come in order, so this line comes after any line of that wait.
    lose(ground, lock.hold(timeout=SOON))
    eventually(lambda: "hold lost" in told()[-1])
    assert len(told()) == 2


def test_what_only_this_thread_can_release_it_does_not_wait_for(zk: zklock.Client, ground: Ground, path: str) -> None:
    with zk.mutex(path, reentrant=True) as hold:
        other = zk.mutex(path)
        for acquire in (other.acquire, lambda: other.acquire(timeout=SOON), other.hold, other.__enter__):
            raises(zklock.Deadlock, acquire).says(path, "by a reentrant lock", "release that first")
        assert other.acquire(blocking=False) is False
        assert hold.state is zklock.HoldState.HELD and len(ground.children(path)) == 1


def test_a_lock_that_is_not_reentrant_is_released_from_anywhere_but_once(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    lock = zk.mutex(path)
    hold = lock.hold(timeout=SOON)
    elsewhere(hold.release)
    assert ground.children(path) == []
    following = lock.hold(timeout=SOON)
    raises(zklock.NotHeld, hold.release).says("released before")
    raises(zklock.NotHeld, lambda: elsewhere(hold.release))
    raises(zklock.NotHeld, hold.confirm)
    # The next hold is not affected.
    assert following.state is zklock.HoldState.HELD
    assert len(ground.children(path)) == 1
    following.release()

    assert lock.acquire()
    elsewhere(zk.mutex(path).release)
    assert not lock.locked()
    raises(zklock.NotHeld, lock.release)


def test_a_block_of_a_lock_that_is_not_reentrant_may_end_in_another_thread(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    """As with ``threading.Lock``. Any thread may end a generator that contains a block."""
    lock = zk.mutex(path)
    hold = lock.__enter__()
    elsewhere(lambda: lock.__exit__(None, None, None))
    assert hold.state is zklock.HoldState.RELEASED
    assert ground.children(path) == []


def test_an_inner_section_is_not_entered_when_the_outer_hold_is_lost(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    lock = zk.mutex(path, reentrant=True)
    outer, inner = lock.hold(timeout=SOON), lock.hold(timeout=SOON)
    lose(ground, outer)
    # The same when the nodes have been cleaned up, and only the thread's holds are left.
    eventually(lambda: zk.stats().losses == 1)
    settled(zk)
    for enter in (
        lock.acquire,
        lambda: lock.acquire(blocking=False),
        lambda: lock.acquire(timeout=SOON),
        lock.hold,
        lock.__enter__,
    ):
        raises(zklock.LockLost, enter).says(path)
    assert inner.state is zklock.HoldState.LOST
    raises(zklock.LockLost, inner.release)
    raises(zklock.LockLost, outer.release)
    ground.expect_children(path, 0)

    def is_free_again() -> bool:
        try:
            with lock as hold:
                return hold.token > outer.token
        except zklock.LockLost:
            # The lost hold is still being cleaned up.
            return False

    eventually(is_free_again)


def test_forgetting_the_last_hold_releases(zk: zklock.Client, ground: Ground, path: str) -> None:
    lock = zk.mutex(path, reentrant=True)
    outer, inner = lock.hold(timeout=SOON), [lock.hold(timeout=SOON)]
    with pytest.warns(ResourceWarning, match=path):
        del outer
    assert inner[0].state is zklock.HoldState.HELD and inner[0].valid_for() > 0
    assert len(ground.children(path)) == 1
    # Even if another thread drops it, which could not release it.
    with pytest.warns(ResourceWarning, match=path):
        elsewhere(inner.clear)
        gc.collect()
    ground.expect_children(path, 0)
    with lock:
        pass


def test_the_current_hold_is_that_of_this_thread(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path, reentrant=True)
    assert lock.current is None and not lock.locked()
    with lock as hold:
        current = lock.current
        assert current is not None and current.token == hold.token
        # Another thread sees that the lock is held, but has no hold itself.
        assert elsewhere(lambda: (lock.locked(), lock.current)) == (True, None)
        value = lock.hold()
        hold.release()
        # A hold that is kept as a value belongs to whichever thread has it.
        assert lock.current is None and lock.locked()
        value.release()
    assert lock.current is None and not lock.locked()


def test_a_release_of_the_lock_leaves_values_alone(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path)
    with lock.hold() as hold:
        raises(zklock.NotHeld, lock.release).says(path)
        assert hold.state is zklock.HoldState.HELD
