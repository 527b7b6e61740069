"""Promise 6: a holder learns of a lost hold, whatever the cause, and however it listens. How soon, the scenarios in Rust prove."""

from __future__ import annotations

import gc
import typing

import pytest
from ground import Ground
from scenes import SOON, Attempt, Face, Far, eventually, expire, in_asyncio, lose, raises

import zklock


def heard(hold: zklock.BaseHold) -> list[Attempt[zklock.LossReason | None]]:
    """All ways to learn of a loss, of which each gets the reason."""
    told: list[list[zklock.LossReason]] = [[], []]
    for one in told:
        hold.on_lost(one.append)

    def waits() -> zklock.LossReason | None:
        assert hold.lost.wait()
        return hold.lost.reason

    def polls(is_lost: typing.Callable[[], bool]) -> zklock.LossReason | None:
        eventually(is_lost)
        # The lease may lapse a moment before that counts as a loss.
        return waits()

    def is_called(one: list[zklock.LossReason]) -> zklock.LossReason | None:
        eventually(lambda: one)
        return one[0] if len(one) == 1 else None

    return [
        *(Attempt(lambda one=one: is_called(one)) for one in told),  # type: ignore[misc]
        Attempt(waits),
        Attempt(lambda: in_asyncio(lambda: hold.lost)),
        Attempt(lambda: polls(hold.lost.is_set)),
        Attempt(lambda: polls(lambda: hold.state is zklock.HoldState.LOST)),
        Attempt(lambda: polls(lambda: hold.valid_for() == 0)),
    ]


def stays_lost(face: Face, hold: typing.Any, reason: zklock.LossReason) -> None:
    """Checks that every further call reports the loss at once, and so does the release."""

    def says_why(error: zklock.Error) -> None:
        assert isinstance(error, zklock.LockLost) and error.reason is reason

    assert hold.lost and hold.lost.is_set() and hold.lost.wait(0) and hold.lost.wait() and hold.lost.reason is reason
    says_why(raises(zklock.LockLost, lambda: face(hold.confirm)).error)
    says_why(raises(zklock.LockLost, lambda: face(hold.guarded().commit)).error)
    assert hold.state is zklock.HoldState.LOST and hold.valid_for() == 0
    says_why(raises(zklock.LockLost, lambda: face(hold.release)).says(hold.path, "stop the work that it guarded").error)
    assert hold.valid_for() == 0 and hold.lost.is_set()
    raises(zklock.NotHeld, lambda: face(hold.release))


@pytest.mark.parametrize("reason", [zklock.LossReason.SESSION_EXPIRED, zklock.LossReason.NODE_DELETED])
def test_a_holder_is_told(far: Far, ground: Ground, path: str, face: Face, reason: zklock.LossReason) -> None:
    zk, proxy = far
    hold = face(face.of(zk).mutex(path).hold, timeout=SOON)
    assert not hold.lost
    ways = heard(hold)
    assert not any(way.done() for way in ways[:4])
    if reason is zklock.LossReason.SESSION_EXPIRED:
        expire(proxy)
    else:
        ground(f"delete {hold.node}")
    assert [way.result() for way in ways] == [reason] * len(ways)
    stays_lost(face, hold, reason)
    eventually(lambda: zk.stats().losses == 1)
    # The next hold is not lost.
    following = face(face.of(zk).mutex(path).hold, timeout=SOON)
    assert following.token > hold.token and not following.lost.is_set() and following.lost.reason is None
    face(following.release)


def test_who_asks_after_the_loss_is_told_at_once_also_when_the_hold_is_gone(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    hold, told = zk.mutex(path).hold(timeout=SOON), list[zklock.LossReason]()
    lost = hold.lost
    lose(ground, hold)
    hold.on_lost(told.append)
    eventually(lambda: told == [zklock.LossReason.NODE_DELETED])
    raises(zklock.LockLost, hold.release)
    del hold
    gc.collect()
    assert lost.wait() and lost.wait(SOON) and in_asyncio(lambda: lost) is lost.reason
    assert lost.is_set() and lost.reason is zklock.LossReason.NODE_DELETED
