"""kazoo's contenders that cannot see ours: zklock does not hold the lock beside them, and tells a holder when one comes."""

from __future__ import annotations

import contextlib
import typing

import pytest
from ground import Ground

import zklock

Ours = typing.Callable[..., zklock.Lock]
KINDS: dict[str, Ours] = {
    "mutex": lambda client, path, **options: client.mutex(path, **options),
    "semaphore": lambda client, path, **options: client.semaphore(path, 2, **options),
}
kinds = pytest.mark.parametrize("ours", KINDS.values(), ids=KINDS)


@pytest.fixture
def client(ground: Ground) -> typing.Iterator[zklock.Client]:
    with zklock.Client(ground("servers"), session_timeout=4) as client:
        yield client


@contextlib.contextmanager
def held(ground: Ground, path: str, semaphore: typing.Any) -> typing.Iterator[str]:
    """Holds kazoo's semaphore. Yields the name of its node, and checks that it was not disturbed."""
    assert semaphore.acquire(timeout=10)
    (node,) = (child for child in ground.children(path) if child not in ("leases", "locks"))
    yield node
    assert ground(f"exists {path}/{node}") == "true"
    semaphore.release()


def empty_queues(ground: Ground, path: str) -> None:
    """Checks that none of our contenders is left, neither of a mutex nor of a semaphore."""
    for queue in (f"{path}/{child}" for child in ground.children(path) if child in ("leases", "locks")):
        ground.expect_children(queue, 0)


@kinds
def test_who_comes_after_kazoos_semaphore_is_refused(
    ground: Ground, path: str, client: zklock.Client, kazoo: typing.Any, ours: Ours
) -> None:
    # With so many leases kazoo would also let others in.
    with held(ground, path, kazoo.Semaphore(path, max_leases=9)) as node:
        for timeout in (0, 10, None):
            with pytest.raises(zklock.ForeignContender, match=node):
                ours(client, path).hold(timeout=timeout)
        assert client.stats().grants == 0
        empty_queues(ground, path)
    # It is gone, so there is no reason to refuse any more.
    ours(client, path).hold(timeout=10).release()


@kinds
def test_who_ignores_the_unknown_has_it_beside_kazoos_semaphore(
    ground: Ground, path: str, client: zklock.Client, kazoo: typing.Any, ours: Ours
) -> None:
    with held(ground, path, kazoo.Semaphore(path, max_leases=9)):
        with ours(client, path, foreign="ignore-unknown").hold(timeout=10) as hold:
            assert hold.confirm() > 0
        empty_queues(ground, path)


def test_a_holder_is_told_when_a_plain_kazoo_lock_comes(
    ground: Ground, path: str, client: zklock.Client, kazoo: typing.Any
) -> None:
    hold = client.mutex(path).hold(timeout=10)
    lock = kazoo.Lock(path)
    # It does not see our node, so it has the lock at once.
    assert lock.acquire(timeout=10)
    # There are several heartbeats in a session timeout.
    assert hold.lost.wait(timeout=client.session_timeout), "the holder has not been told"
    assert hold.lost.reason is zklock.LossReason.FOREIGN_CONTENDER
    assert hold.valid_for() == 0
    with pytest.raises(zklock.LockLost, match="contender"):
        hold.release()
    assert ground.expect_children(path, 1) == [lock.node]
    assert lock.is_acquired
    lock.release()


def test_a_holder_that_ignores_the_unknown_keeps_it_when_a_plain_kazoo_lock_comes(
    ground: Ground, path: str, client: zklock.Client, kazoo: typing.Any
) -> None:
    hold = client.mutex(path, foreign="ignore-unknown").hold(timeout=10)
    lock = kazoo.Lock(path)
    assert lock.acquire(timeout=10)
    assert not hold.lost.wait(timeout=client.session_timeout)
    assert hold.confirm() > 0
    hold.release()
    lock.release()
