"""The election: one leads, the others are ready to take over, and anybody can observe."""

from __future__ import annotations

import typing

import pytest
from ground import Ground
from scenes import SOON, Attempt, Connect, Far, eventually, expire, lose, raises

import zklock


class Watching:
    """An observer that notes the leaders. Changes in quick succession may be reported as one."""

    def __init__(self, lock: zklock.Lock) -> None:
        self.observer = lock.observe()
        self.told: list[typing.Optional[int]] = []

    def next(self) -> typing.Optional[int]:
        leader = self.observer.next(timeout=SOON)
        self.told.append(leader.token if leader else None)
        return self.told[-1]

    def until(self, token: typing.Optional[int]) -> None:
        """Waits until this leader is reported."""
        while self.next() != token:
            assert len(self.told) < 10, self.told


def test_one_leads_and_the_next_one_follows(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str) -> None:
    with zk.election(path) as lead:
        assert "-latch-" in lead.node
        assert not other.election(path).acquire(blocking=False)
        campaign = Attempt(lambda: other.election(path).hold(timeout=SOON))
        ground.expect_children(path, 2)
        assert [contender.holds for contender in zk.election(path).contenders()] == [True, False]
    successor = campaign.result()
    assert successor.token > lead.token
    successor.release()


def test_an_observer_is_told_who_leads_and_of_every_change(
    zk: zklock.Client, other: zklock.Client, connect: Connect, path: str
) -> None:
    watching = Watching(connect().election(path))
    # The node of the election does not exist yet.
    assert watching.next() is None
    # None does not end the iteration.
    assert next(other.election(path).observe(), "the end") is None
    first = zk.election(path).hold()
    watching.until(first.token)
    campaign = Attempt(lambda: other.election(path).hold(timeout=SOON))
    raises(zklock.Timeout, lambda: watching.observer.next(timeout=0.2)).says("200ms")
    first.release()
    second = campaign.result()
    watching.until(second.token)
    second.release()
    watching.until(None)


def test_an_observer_takes_no_part(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str) -> None:
    observer = other.election(path).observe()
    with zk.election(path) as lead:
        leader = next(found for found in observer if found is not None)
        assert leader.token == lead.token
        assert leader.node == lead.node and leader.holds and leader.role == "exclusive"
        assert leader.session == zk.session_id
        ground.expect_children(path, 1)


@pytest.mark.parametrize("how", ["operator", "expiry", "close"])
def test_a_leader_that_is_gone(
    far: Far, other: zklock.Client, connect: Connect, ground: Ground, path: str, how: str
) -> None:
    watching = Watching(connect().election(path))
    lead = far.zk.election(path).hold()
    watching.until(lead.token)
    campaign = Attempt(lambda: other.election(path).hold(timeout=SOON))
    ground.expect_children(path, 2)
    if how == "operator":
        lose(ground, lead)
    elif how == "expiry":
        expire(far.proxy)
    else:
        far.zk.close()
    assert lead.lost.wait(SOON)
    successor = campaign.result()
    watching.until(successor.token)
    raises(zklock.LockLost, lead.release)
    successor.release()


def test_an_observer_outlives_its_session(far: Far, zk: zklock.Client, path: str) -> None:
    watching = Watching(far.zk.election(path))
    assert watching.next() is None
    expire(far.proxy)
    with zk.election(path) as lead:
        watching.until(lead.token)


def test_whoever_can_be_alone_can_be_observed(zk: zklock.Client, path: str) -> None:
    for lock in (zk.mutex(path), zk.exclusive(f"{path}-2"), zk.write(f"{path}-3")):
        observer = lock.observe()
        with lock as hold:
            while (holder := observer.next(timeout=SOON)) is None:
                pass
            assert holder.token == hold.token


@pytest.mark.parametrize("is_connected", [False, True])
def test_what_has_no_one_holder_cannot_be_observed(
    zk: zklock.Client, hosts: str, path: str, is_connected: bool
) -> None:
    client = zk if is_connected else zklock.Client(hosts)
    for lock in (client.semaphore(path, 2), client.all([client.mutex(path)])):
        raises(zklock.InvalidInput, lock.observe).says(path, "observe")
        raises(zklock.InvalidInput, lock.aio.observe)


def test_the_end_of_an_observer(zk: zklock.Client, connect: Connect, path: str) -> None:
    client = connect()
    observer = client.election(path).observe()
    assert observer.next() is None
    waiting = Attempt(observer.next)
    assert not waiting.wait(0.1)
    client.close()
    assert isinstance(waiting.error(), zklock.Closed)
    raises(zklock.Closed, lambda: next(observer))
    raises(zklock.InvalidInput, lambda: observer.next(timeout=-1))
    # An observer need not be read to its end.
    zk.election(path).observe().next()
    eventually(lambda: zk.stats().owed == 0)
