"""Several locks at once: all of them, or any one. For what they do see test_kinds.py."""

from __future__ import annotations

import typing

import pytest
from scenes import raises

import zklock


def test_the_order_of_naming_makes_no_difference(zk: zklock.Client, path: str) -> None:
    one, two = zk.mutex(path), zk.mutex(f"{path}-2")
    zk.all([one, two]).acquire()
    assert zk.all([two, one]).locked()
    # Whoever holds the set holds its members.
    assert not one.acquire(timeout=0.1)
    zk.all(iter([two, one, zk.mutex(path)])).release()
    raises(zklock.NotHeld, zk.all([one, two]).release)


def test_a_set_may_be_of_sets_and_of_locks_of_both_faces(zk: zklock.Client, path: str) -> None:
    pair = zk.all([zk.mutex(path), zk.read_lock(f"{path}-2")])
    for client in (zk, zk.aio):
        assert client.all([pair, zk.semaphore(f"{path}-3", 2).aio], timeout=5).path == f"{path}, {path}-2, {path}-3"
    with pair as hold:
        assert hold.path == f"{path}, {path}-2"
    with zk.any([zk.mutex(path), zk.aio.read_lock(f"{path}-2")]) as hold:
        assert hold.path == path


def test_what_cannot_be_a_set_or_a_choice(zk: zklock.Client, path: str) -> None:
    for client in (zk, zk.aio):
        calls: list[typing.Any] = [client.all, client.any]
        for call in calls:
            raises(zklock.InvalidInput, lambda: call([])).says("one lock at least")
            for wrong in (client.mutex(path), [path], None, path):
                with pytest.raises(TypeError):
                    call(wrong)
