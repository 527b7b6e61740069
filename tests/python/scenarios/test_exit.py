"""The end of a ``with`` block: it releases, reports a loss, and never hides an exception of the block."""

from __future__ import annotations

import logging
import typing

import pytest
from ground import Ground
from scenes import SOON, Connect, ConnectFar, elsewhere, eventually, lose, raises

import zklock


class Failure(Exception):
    """The exception of a block."""


def test_the_end_of_a_block_releases_and_has_waited_for_it(zk: zklock.Client, ground: Ground, path: str) -> None:
    makes: list[typing.Callable[[], zklock.Lock | zklock.Hold]] = [
        lambda: zk.mutex(path),
        lambda: zk.mutex(path, reentrant=True),
        lambda: zk.mutex(path).hold(),
    ]
    for make in makes:
        with make() as hold:
            assert len(ground.children(path)) == 1
        # The node is already gone, not only soon.
        assert ground.children(path) == []
        assert hold.state is zklock.HoldState.RELEASED


@pytest.mark.parametrize("failure", [Failure, KeyboardInterrupt, SystemExit, GeneratorExit, zklock.Timeout])
def test_what_a_block_raises_comes_out_as_it_is(
    zk: zklock.Client, ground: Ground, path: str, failure: type[BaseException]
) -> None:
    for make in (lambda: zk.mutex(path), lambda: zk.mutex(path).hold()):
        raised = failure("in the block")
        with pytest.raises(failure) as caught:
            with make():
                raise raised
        assert caught.value is raised
        assert raised.__context__ is None and raised.__cause__ is None
        assert ground.children(path) == []


def test_a_loss_is_raised_at_the_end_of_a_block(zk: zklock.Client, ground: Ground, path: str) -> None:
    for make in (lambda: zk.mutex(path), lambda: zk.mutex(path, reentrant=True), lambda: zk.mutex(path).hold()):
        has_ended = False
        with pytest.raises(zklock.LockLost, match="stop what it guarded") as caught:
            with make() as hold:
                lose(ground, hold)
                has_ended = True
        assert has_ended
        assert caught.value.reason is zklock.LossReason.NODE_DELETED
        assert path in str(caught.value)


def test_a_loss_that_nobody_has_noticed_yet_is_raised_at_the_end_of_a_block(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    with pytest.raises(zklock.LockLost):
        with zk.mutex(path) as hold:
            # The release finds no node.
            ground(f"delete {hold.node}")


def notes(exception: BaseException) -> list[str]:
    """The notes that were added to an exception."""
    return getattr(exception, "__notes__", [])


def levels(caplog: pytest.LogCaptureFixture, *parts: str) -> list[int]:
    """The log records that have all these parts."""
    said = [record for record in caplog.records if record.name == "zklock"]
    return [record.levelno for record in said if all(part in record.getMessage() for part in parts)]


def test_a_loss_does_not_hide_what_the_block_raises(
    zk: zklock.Client, ground: Ground, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    for make in (lambda: zk.mutex(path), lambda: zk.mutex(path).hold()):
        caplog.clear()
        raised = Failure()
        with pytest.raises(Failure) as caught:
            with make() as hold:
                lose(ground, hold)
                raise raised
        assert caught.value is raised and raised.__context__ is None
        eventually(lambda: logging.WARNING in levels(caplog, path))
        # The note warns that the work of the block may have been unprotected.
        (note,) = notes(raised)
        assert path in note and "lost: its node was deleted" in note
    # The next block adds its own note. A block that has not lost its hold adds none.
    with pytest.raises(Failure), zk.mutex(path), zk.mutex(f"{path}/inner") as inner:
        lose(ground, inner)
        raise raised
    assert len(notes(raised)) == 2 and f"{path}/inner" in notes(raised)[1]
    ground(f"delete-tree {path}/inner")


def test_a_loss_that_only_the_release_finds_is_noted(zk: zklock.Client, ground: Ground, path: str) -> None:
    raised = Failure()
    with pytest.raises(Failure), zk.mutex(path) as hold:
        ground(f"delete {hold.node}")
        raise raised
    assert len(notes(raised)) == 1


def test_an_exception_that_takes_no_note_is_raised_all_the_same(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    class Stubborn(Exception):
        def add_note(self, note: str) -> None:
            raise ValueError(note)

        def __setattr__(self, name: str, value: object) -> None:
            raise ValueError(name)

    with pytest.raises(Stubborn) as caught, zk.mutex(path) as hold:
        lose(ground, hold)
        raise Stubborn
    assert notes(caught.value) == []


def test_an_error_of_the_inner_block_goes_through_the_outer_ones(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    lock, raised = zk.mutex(path, reentrant=True), Failure()
    with pytest.raises(Failure) as caught:
        with lock as outer, lock, lock:
            lose(ground, outer)
            raise raised
    assert caught.value is raised


def test_every_block_of_a_lost_reentrant_lock_raises(zk: zklock.Client, ground: Ground, path: str) -> None:
    lock, ended = zk.mutex(path, reentrant=True), []
    with pytest.raises(zklock.LockLost) as outermost:
        with lock as outer:
            with pytest.raises(zklock.LockLost):
                with lock:
                    lose(ground, outer)
            ended.append("inner")
    assert ended == ["inner"] and outermost.value.reason is zklock.LossReason.NODE_DELETED
    assert lock.current is None and not lock.locked()


def test_a_hold_that_is_released_in_its_block_is_not_released_again(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    lock = zk.mutex(path)
    with lock as hold:
        hold.release()
        assert ground.children(path) == []
    with lock.hold() as hold:
        hold.release()
    with lock as hold:
        # Released by another thread, which is allowed.
        elsewhere(hold.release)
    with lock as hold:
        hold.release()
        # The lock is free, even for another block, which the end of this one does not affect.
        following = lock.hold(timeout=0)
    assert following.state is zklock.HoldState.HELD
    following.release()


def test_a_lost_hold_that_is_released_in_its_block_has_told_of_it(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    with zk.mutex(path) as hold:
        lose(ground, hold)
        raises(zklock.LockLost, hold.release)
        raises(zklock.NotHeld, hold.release)


def test_a_lock_that_is_released_in_its_block_has_no_end_to_release(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    """As with ``threading``: the end of the block is a release, and there is nothing to release."""
    for lock in (zk.mutex(path), zk.mutex(path, reentrant=True)):
        with pytest.raises(RuntimeError) as caught:
            with lock:
                lock.release()
                assert ground.children(path) == []
        assert type(caught.value) is zklock.NotHeld and "nothing to release" in str(caught.value)
        # Even then the block's own exception is not hidden.
        with pytest.raises(Failure):
            with lock:
                lock.release()
                raise Failure


def test_a_lock_may_be_released_and_acquired_in_its_block(zk: zklock.Client, ground: Ground, path: str) -> None:
    """As with ``threading``: the end of the block releases what was acquired last."""
    for lock in (zk.mutex(path), zk.mutex(path, reentrant=True)):
        with lock as hold:
            lock.release()
            assert lock.acquire(timeout=SOON)
            current = lock.current
            assert current is not None and current.token > hold.token
        assert not lock.locked() and ground.children(path) == []


def test_a_block_ends_its_own_hold_and_tells_of_its_loss(zk: zklock.Client, ground: Ground, path: str) -> None:
    """A hold that was acquired in the block after the loss stays acquired."""
    lock = zk.mutex(path)
    with pytest.raises(zklock.LockLost):
        with lock as hold:
            lose(ground, hold)
            eventually(lambda: lock.acquire(timeout=SOON))
    assert lock.locked()
    lock.release()
    assert ground.children(path) == []


def test_a_release_that_is_not_confirmed_in_time_is_no_error_but_logged(
    connect_far: ConnectFar, ground: Ground, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    zk, proxy = connect_far(session_timeout=1)
    for make in (lambda: zk.mutex(path), lambda: zk.mutex(path).hold()):
        caplog.clear()
        with make():
            proxy("freeze", "to-server")
        eventually(lambda: logging.WARNING in levels(caplog, path, "in the background"))
        assert zk.stats().owed == 1
        proxy("thaw")
        eventually(lambda: zk.stats().owed == 0)
        ground.expect_children(path, 0)


def test_a_block_that_was_not_entered_has_no_end(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    with other.mutex(path) as hold:
        lock = zk.mutex(path, timeout=0.05)
        with pytest.raises(zklock.Timeout):
            with lock:
                raise AssertionError("entered")
        assert hold.state is zklock.HoldState.HELD
        raises(zklock.NotHeld, lambda: lock.__exit__(None, None, None)).says(path)
    with lock:
        pass


def test_the_end_of_a_block_swallows_nothing(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path)
    lock.__enter__()
    assert lock.__exit__(Failure, Failure(), None) is False
    lock.__enter__()
    assert lock.__exit__(None, None, None) is False
    hold = lock.hold()
    assert hold.__exit__(Failure, Failure(), None) is False


def test_a_block_may_last_longer_than_its_session(connect: Connect, path: str) -> None:
    zk = connect(session_timeout=2)
    with zk.mutex(path) as hold:
        assert not hold.lost.wait(3)
        assert hold.valid_for() > 0
