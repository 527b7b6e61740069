"""Blocks of one lock in one thread that end in another order than they began: each ends its own hold."""

from __future__ import annotations

import contextlib
import random
import typing

import pytest
from ground import Ground
from scenes import SOON, elsewhere

import zklock


def stream(lock: zklock.Lock) -> typing.Generator[zklock.Hold]:
    """A block that is open as long as the generator is."""
    with lock as hold:
        yield hold


def is_held(hold: zklock.Hold) -> bool:
    return hold.state in (zklock.HoldState.HELD, zklock.HoldState.AT_RISK)


class Between:
    """A context manager that wraps the lock."""

    def __init__(self, lock: zklock.Lock) -> None:
        self._lock = lock

    def __enter__(self) -> zklock.Hold:
        return self._lock.__enter__()

    def __exit__(self, *raised: typing.Any) -> None:
        self._lock.__exit__(*raised)


class Open(typing.NamedTuple):
    """An open block."""

    hold: zklock.Hold
    end: typing.Callable[[], object]


def by_generator(lock: zklock.Lock) -> Open:
    generator = stream(lock)
    return Open(next(generator), generator.close)


def by_stack(lock: zklock.Lock) -> Open:
    stack = contextlib.ExitStack()
    return Open(stack.enter_context(lock), stack.close)


def by_another_manager(lock: zklock.Lock) -> Open:
    between = Between(lock)
    return Open(between.__enter__(), lambda: between.__exit__(None, None, None))


WAYS = [by_generator, by_stack, by_another_manager]


@pytest.mark.parametrize("kind", ["semaphore", "reentrant mutex"])
def test_they_end_in_any_order(zk: zklock.Client, ground: Ground, path: str, kind: str) -> None:
    chance = random.Random(7)
    is_semaphore = kind == "semaphore"
    lock = zk.semaphore(path, 20) if is_semaphore else zk.mutex(path, reentrant=True)
    queue = f"{path}/leases" if is_semaphore else path
    for _ in range(5):
        blocks = [chance.choice(WAYS)(lock) for _ in range(10)]
        chance.shuffle(blocks)
        while blocks:
            ended = blocks.pop()
            ended.end()
            assert ended.hold.state is zklock.HoldState.RELEASED
            assert all(is_held(block.hold) and block.hold.confirm() > 0 for block in blocks)
            assert {block.hold.node for block in blocks} == {f"{queue}/{node}" for node in ground.children(queue)}
    assert not lock.locked()


def test_a_block_that_another_thread_ends_is_the_one_that_ends(zk: zklock.Client, path: str) -> None:
    lock = zk.semaphore(path, 3)
    first, second = by_generator(lock), by_generator(lock)
    third = elsewhere(lambda: by_generator(lock))
    elsewhere(first.end)
    assert [is_held(block.hold) for block in (first, second, third)] == [False, True, True]
    third.end()
    assert is_held(second.hold)
    second.end()


def test_a_release_within_a_block_costs_no_other_block_its_hold(zk: zklock.Client, path: str) -> None:
    lock = zk.semaphore(path, 3)
    first, second = by_generator(lock), by_generator(lock)
    # This releases the hold that this thread acquired last.
    lock.release()
    assert is_held(first.hold) and not is_held(second.hold)
    second.end()
    assert is_held(first.hold)
    # The hold that was acquired in its place is released.
    third = by_generator(lock)
    lock.release()
    assert lock.acquire(timeout=SOON)
    third.end()
    assert is_held(first.hold) and lock.current is not None and lock.current.token == first.hold.token
    first.end()
    assert not lock.locked()
