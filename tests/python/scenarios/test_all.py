"""The set of locks: all of them, or none."""

from __future__ import annotations

import functools
import random

from conftest import SESSION
from ground import Ground
from scenes import SOON, Attempt, Connect, elsewhere, lose, raises, settled

import zklock


def test_all_are_held_together(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str) -> None:
    one, two = f"{path}-1", f"{path}-2"
    both = zk.all([zk.mutex(path), zk.write(one), zk.election(two)])
    with both as hold:
        assert hold.path == both.path == f"{path}, {one}, {two}"
        assert both.locked() and both.current is not None
        # A member is not the same lock as the set.
        assert not zk.mutex(path).locked()
        for taken in (other.mutex(path), other.read(one), other.election(two)):
            assert not taken.acquire(blocking=False)
        assert [contender.holds for contender in both.contenders()] == [True, True, True]
    for node in (path, one, two):
        ground.expect_children(node, 0)


def test_none_is_held_while_one_is_missing(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    both = zk.all([zk.mutex(path), zk.mutex(f"{path}-2")])
    with other.mutex(path):
        assert not both.acquire(blocking=False)
        assert not both.acquire(timeout=0.1)
        raises(zklock.Timeout, lambda: both.hold(timeout=0.1))
        settled(zk)
        ground.expect_children(f"{path}-2", 0)
        waiting = Attempt(lambda: both.hold(timeout=SOON))
        ground.expect_children(f"{path}-2", 1)
        assert not waiting.is_over()
    waiting.result().release()
    ground.expect_children(f"{path}-2", 0)


def test_the_order_of_naming_makes_no_difference(zk: zklock.Client, path: str) -> None:
    one, two = zk.mutex(path), zk.mutex(f"{path}-2")
    zk.all([one, two]).acquire()
    assert zk.all([two, one]).locked()
    assert not zk.all([two, one]).acquire(timeout=0.1)
    # The holder of the set holds its members.
    assert not one.acquire(timeout=0.1)
    zk.all(iter([two, one])).release()
    raises(zklock.NotHeld, zk.all([one, two]).release)


def test_a_set_can_be_reentrant_and_of_sets(zk: zklock.Client, path: str) -> None:
    pair = zk.all([zk.mutex(path), zk.read(f"{path}-2")])
    whole = zk.all([pair, zk.semaphore(f"{path}-3", 2).aio], reentrant=True, timeout=5)
    with whole as outer, whole as inner:
        assert outer.token == inner.token
        raises(zklock.NotOwner, lambda: elsewhere(whole.release))
    with pair as hold:
        assert hold.path == f"{path}, {path}-2"


def test_a_set_is_lost_with_one_of_its_nodes(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    hold = zk.all([zk.mutex(path), zk.mutex(f"{path}-2")]).hold()
    (node,) = ground.children(f"{path}-2")
    ground(f"delete {path}-2/{node}")
    assert hold.lost.wait(SOON) and hold.lost.reason is zklock.LossReason.NODE_DELETED
    raises(zklock.LockLost, hold.release)
    with other.mutex(path, timeout=SOON) as next_one:
        lose(ground, next_one)
        raises(zklock.LockLost, next_one.release)


def test_what_cannot_be_a_set(zk: zklock.Client, other: zklock.Client, hosts: str, path: str) -> None:
    apart = zklock.Client(hosts)
    for client in (zk, apart):
        lock = client.mutex(path)
        raises(zklock.InvalidInput, lambda: client.all([])).says("one lock at least")
        raises(zklock.InvalidInput, lambda: client.all([lock, other.mutex(f"{path}-2")])).says("the client")
        raises(zklock.InvalidInput, lambda: client.all([lock, client.read(path)])).says("one path", "not the same lock")
        licence = client.semaphore(path, 2)
        raises(zklock.InvalidInput, lambda: client.all([licence, licence])).says("one path", "all the permits")
        raises(zklock.InvalidInput, lambda: client.all([lock, client.exclusive(f"{path}-2")])).says("no queue")
        for wrong in (lock, [path], None, path):
            try:
                client.all(wrong)  # type: ignore[arg-type]
            except TypeError:
                continue
            raise AssertionError(f"a set of {wrong!r}")
    # A set of one lock behaves like that lock.
    with zk.all([zk.exclusive(path)]) as hold:
        assert hold.node == f"{path}/lock"


def test_a_lock_that_is_named_twice_is_in_the_set_once(zk: zklock.Client, ground: Ground, path: str) -> None:
    lock, other = zk.mutex(path), zk.mutex(f"{path}-2")
    with zk.all([lock, other, lock, zk.mutex(path)], timeout=SOON) as hold:
        assert hold.path == f"{path}, {path}-2"
        ground.expect_children(path, 1)


def test_it_connects_when_it_is_needed(hosts: str, path: str) -> None:
    client = zklock.Client(hosts, session_timeout=SESSION)
    both = client.all([client.mutex(path), client.mutex(f"{path}-2")])
    with both:
        assert client.mutex(path).path == path
    client.close()


def test_no_order_of_arrival_can_deadlock(connect: Connect, path: str) -> None:
    clients = [connect() for _ in range(3)]
    inside: dict[int, int] = {}

    def work(number: int) -> None:
        chance = random.Random(number)
        zk = clients[number % 3]
        for _ in range(10):
            chosen = chance.sample(range(5), chance.randint(2, 4))
            with zk.all([zk.mutex(f"{path}-{which}") for which in chosen], timeout=30):
                for which in chosen:
                    assert inside.setdefault(which, number) == number
                for which in chosen:
                    del inside[which]

    for attempt in [Attempt(functools.partial(work, number)) for number in range(9)]:
        attempt.result(within=50)
    assert inside == {}
