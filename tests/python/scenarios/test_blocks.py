"""Blocks of one lock in one thread that end in another order than they began: each ends its own hold."""

from __future__ import annotations

import contextlib
import random
import typing

import pytest
from ground import Ground
from scenes import SOON, Attempt, elsewhere, settled

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


def by_failing_generator(lock: zklock.Lock) -> Open:
    generator = stream(lock)

    def end() -> None:
        with pytest.raises(LookupError):
            generator.throw(LookupError())

    return Open(next(generator), end)


def by_decorated_generator(lock: zklock.Lock) -> Open:
    manager = contextlib.contextmanager(stream)(lock)
    return Open(manager.__enter__(), lambda: manager.__exit__(None, None, None))


def by_stack(lock: zklock.Lock) -> Open:
    stack = contextlib.ExitStack()
    return Open(stack.enter_context(lock), stack.close)


def by_another_manager(lock: zklock.Lock) -> Open:
    between = Between(lock)
    return Open(between.__enter__(), lambda: between.__exit__(None, None, None))


WAYS = [by_generator, by_failing_generator, by_decorated_generator, by_stack, by_another_manager]


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


def test_a_statement_around_a_generator_keeps_its_hold(zk: zklock.Client, path: str) -> None:
    lock = zk.semaphore(path, 3)
    inner = by_generator(lock)
    with lock as outer:
        inner.end()
        assert is_held(outer) and not is_held(inner.hold)
        with lock as innermost:
            pass
        assert is_held(outer) and not is_held(innermost)
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


def test_members_of_a_double_barrier_leave_by_their_own_blocks(zk: zklock.Client, ground: Ground, path: str) -> None:
    # The first to leave would wait for the other. On a slow machine other steps may time out as well.
    doors = zk.double_barrier(path, 1, timeout=0.3)

    def within() -> typing.Generator[str]:
        with doors as member:
            yield member.node.rpartition("/")[2]

    def entered() -> tuple[typing.Generator[str], str]:
        while True:
            block = within()
            with contextlib.suppress(zklock.Timeout):
                return block, next(block)

    (first, _), (second, node) = entered(), entered()
    with pytest.raises(zklock.Timeout):
        next(first)
    settled(zk)
    assert [child for child in ground.children(path) if child != "ready"] == [node]
    with contextlib.suppress(zklock.Timeout):
        assert next(second, None) is None
    settled(zk)
    assert set(ground.children(path)) <= {"ready"}


def test_a_stack_that_has_nothing_left_takes_no_block_of_another_thread(zk: zklock.Client, path: str) -> None:
    mutex = zk.mutex(path)
    with contextlib.ExitStack() as stack:
        stack.enter_context(mutex)
        rest = stack.pop_all()
    mutex.release()
    with mutex as hold:
        failed = Attempt(rest.close)
        with pytest.raises(zklock.NotHeld):
            failed.result()
        assert hold.state is zklock.HoldState.HELD
