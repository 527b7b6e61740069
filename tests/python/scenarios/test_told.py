"""Promise 6: a holder learns of a lost hold within one heartbeat, whatever the cause, and however it listens."""

from __future__ import annotations

import functools
import gc
import time
import typing

import pytest
from conftest import SESSION
from ground import Ground
from punctual import not_later
from scenes import SOON, Attempt, Face, Far, Lateness, eventually, expire, in_asyncio, just_after_a_heartbeat, lose, raises

import zklock

HEARTBEAT = SESSION / 10


class News:
    """The outcome of listening in one way."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.reasons: list[zklock.LossReason | None] = []
        self.at = 0.0

    def come(self, reason: zklock.LossReason | None) -> None:
        self.at = time.monotonic()
        self.reasons.append(reason)


class Ears:
    """All ways to learn of a loss."""

    def __init__(self, hold: zklock.BaseHold) -> None:
        ways = ("callback", "second callback", "wait", "await", "is_set", "state", "valid_for")
        self.news = [News(way) for way in ways]
        callback, second, wait, awaits, is_set, state, valid_for = self.news
        hold.on_lost(callback.come)
        hold.on_lost(second.come)

        def waits() -> None:
            assert hold.lost.wait()
            wait.come(hold.lost.reason)

        def polls(news: News, is_lost: typing.Callable[[], bool]) -> None:
            while not is_lost():
                time.sleep(0.001)
            at = time.monotonic()
            # The lease may lapse a moment before that counts as a loss.
            assert hold.lost.wait()
            news.come(hold.lost.reason)
            news.at = at

        self.attempts = [
            Attempt(waits),
            Attempt(lambda: awaits.come(in_asyncio(lambda: hold.lost))),
            Attempt(functools.partial(polls, is_set, hold.lost.is_set)),
            Attempt(functools.partial(polls, state, lambda: hold.state is zklock.HoldState.LOST)),
            Attempt(functools.partial(polls, valid_for, lambda: hold.valid_for() == 0)),
        ]

    def have_heard_nothing(self) -> bool:
        return not any(news.reasons for news in self.news)

    def all_are_told(self, since: float, reason: zklock.LossReason, late: Lateness) -> None:
        """Checks that each way has reported this reason once, within a heartbeat of the given time."""
        for attempt in self.attempts:
            attempt.result()
        eventually(lambda: all(news.reasons for news in self.news))
        for news in self.news:
            assert news.reasons == [reason], news.way
            not_later(news.at - since, HEARTBEAT + late.allowance)


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


@pytest.mark.parametrize("blow", ["session expired", "node deleted"])
def test_a_holder_is_told_within_a_heartbeat_that(far: Far, ground: Ground, path: str, face: Face, blow: str) -> None:
    zk, proxy = far
    has_expired = blow == "session expired"
    reason = zklock.LossReason.SESSION_EXPIRED if has_expired else zklock.LossReason.NODE_DELETED
    hold = face(face.of(zk).mutex(path).hold, timeout=SOON)
    assert not hold.lost
    with Lateness() as late:
        ears = Ears(hold)
        # This is the worst moment for a loss.
        just_after_a_heartbeat(proxy)
        assert ears.have_heard_nothing()
        struck = time.monotonic()
        if has_expired:
            struck = expire(proxy)
        else:
            ground(f"delete {hold.node}")
        ears.all_are_told(struck, reason, late)
    stays_lost(face, hold, reason)
    eventually(lambda: zk.stats().losses == 1)
    # The next hold is not lost.
    following = face(face.of(zk).mutex(path).hold, timeout=SOON)
    assert following.token > hold.token and not following.lost.is_set() and following.lost.reason is None
    assert zk.stats().sessions == (2 if has_expired else 1)
    face(following.release)


def test_who_asks_after_the_loss_is_told_at_once_also_when_the_hold_is_gone(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    hold, news = zk.mutex(path).hold(timeout=SOON), News("callback")
    lost = hold.lost
    lose(ground, hold)
    hold.on_lost(news.come)
    eventually(lambda: news.reasons == [zklock.LossReason.NODE_DELETED])
    raises(zklock.LockLost, hold.release)
    del hold
    gc.collect()
    begun = time.monotonic()
    assert lost.wait() and lost.wait(SOON) and in_asyncio(lambda: lost) is lost.reason
    not_later(time.monotonic() - begun, SOON / 2)
    assert lost.is_set() and lost.reason is zklock.LossReason.NODE_DELETED


def test_inner_holds_are_told_with_the_outer_one(zk: zklock.Client, ground: Ground, path: str) -> None:
    lock = zk.mutex(path, reentrant=True)
    outer, inner, ended = (lock.hold(timeout=SOON) for _ in range(3))
    outside, inside, over = (News(way) for way in ("outer", "inner", "ended"))
    outer.on_lost(outside.come)
    inner.on_lost(inside.come)
    ended.on_lost(over.come)
    ended.release()
    lose(ground, outer)
    eventually(lambda: outside.reasons and inside.reasons)
    assert inside.reasons == outside.reasons == [zklock.LossReason.NODE_DELETED] and over.reasons == []
    assert inner.lost.is_set() and not ended.lost.is_set()
    raises(zklock.LockLost, inner.release)
    raises(zklock.LockLost, outer.release)


def test_without_a_heartbeat_a_hold_is_held_though_nothing_proves_it(hosts: str, ground: Ground, path: str) -> None:
    with zklock.Client(hosts, session_timeout=SESSION, heartbeat=False) as zk:
        hold = zk.mutex(path).hold(timeout=SOON)
        eventually(lambda: hold.valid_for() == 0)
        assert hold.state is zklock.HoldState.HELD
        lose(ground, hold)
