"""Where the names are those of ``threading`` and ``asyncio``, so is what they do: the same calls, side by side.

The end names and tests the differences. For owners see ../scenarios/test_owners.py, for blocks ../scenarios/test_exit.py, for
cancelled tasks ../aio/test_cancel.py.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import decimal
import fractions
import math
import sys
import threading
import typing

import pytest
from scenes import Attempt

import zklock


class Outcome(typing.NamedTuple):
    """The outcome of a call."""

    value: object = None
    raised: type[BaseException] | None = None

    def is_like(self, theirs: Outcome) -> bool:
        """An exception of ours may be of a more specific class than theirs."""
        if self.raised is None or theirs.raised is None:
            return self == theirs
        return issubclass(self.raised, theirs.raised)


def outcome(call: typing.Callable[..., object], *arguments: object) -> Outcome:
    try:
        return Outcome(call(*arguments))
    except Exception as exception:
        return Outcome(raised=type(exception))


def expect_alike(ours: list[Outcome], theirs: list[Outcome]) -> None:
    differ = [(one, other) for one, other in zip(ours, theirs) if not one.is_like(other)]
    assert len(ours) == len(theirs) > 0 and not differ, f"ours {ours}, theirs {theirs}"


# The lock is theirs or ours, and a type checker could not tell which.
AnyLock = typing.Any
Elsewhere = typing.Callable[[typing.Callable[[], object]], Outcome]
SideBySide = typing.Callable[[typing.Callable[[AnyLock], typing.List[Outcome]]], None]


@pytest.fixture
def elsewhere() -> typing.Iterator[Elsewhere]:
    """Makes a call on another thread, which is always the same."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        yield lambda call: thread.submit(outcome, call).result(timeout=30)


@pytest.fixture(params=["Lock", "RLock"])
def side_by_side(request: pytest.FixtureRequest, zk: zklock.Client, path: str) -> SideBySide:
    """Makes the same calls on a lock of theirs and on one of ours, and compares the outcomes."""
    theirs = getattr(threading, request.param)()
    ours = zk.mutex(path, reentrant=request.param == "RLock")

    def side_by_side(script: typing.Callable[[AnyLock], list[Outcome]]) -> None:
        expected = script(theirs)
        expect_alike(script(ours), expected)

    return side_by_side


MAX = threading.TIMEOUT_MAX
# Arguments with which an acquire waits for ever, or nearly for ever, for a lock that is held.
FOR_EVER = ["", "True", "1", "blocking=True", "timeout=-1", "timeout=MAX", "timeout=MAX + 0.5"]
FOR_EVER += ["True, -1", "True, -1.0", "True, True"]
# Those with which it gives up in time or at once, and those that are wrong.
BOUNDED = ["False", "0", "blocking=False", "timeout=1.0", "timeout=0, blocking=True"]
BOUNDED += ["True, 0", "True, -0.0", "True, 1.0", "True, 1e-300"]
NO_TIMEOUTS = ["MAX + 1", "1e100", "10**400", "-(10**400)", "math.inf", "-math.inf", "math.nan", "-100", "-2", "-0.5", "-1e-12"]
NO_TIMEOUTS += ["'1'", "1j", "[1]", "fractions.Fraction(1)"]
BOUNDED += [f"timeout={wrong}" for wrong in NO_TIMEOUTS]
# Timeouts of calls that must not wait.
BOUNDED += [f"False, {timeout}" for timeout in ("-1", "-1.0", "0", "1", "-2", "math.nan", "math.inf")]
BOUNDED += ["timeout=-1, blocking=False"]
# Arguments that this function does not have.
BOUNDED += ["True, 1, 1", "block=True", "True, blocking=True", "True, 1, timeout=1"]
if sys.version_info >= (3, 10):
    BOUNDED += ["timeout=decimal.Decimal(1)"]
if sys.version_info >= (3, 13):
    # Values that are true or false without being numbers are accepted.
    FOR_EVER += ["'yes'"]
    BOUNDED += ["''", "None"]
NAMES = {"MAX": MAX, "decimal": decimal, "fractions": fractions, "math": math}


def acquire(lock: AnyLock, arguments: str) -> object:
    return eval(f"lock.acquire({arguments})", {"lock": lock, **NAMES})


@pytest.mark.parametrize("arguments", [*FOR_EVER, *BOUNDED])
def test_acquire_of_a_free_lock(arguments: str, side_by_side: SideBySide, elsewhere: Elsewhere) -> None:
    def script(lock: AnyLock) -> list[Outcome]:
        seen = [outcome(acquire, lock, arguments), elsewhere(lambda: lock.acquire(False))]
        # It is free again after this, whichever thread had it.
        (elsewhere if seen[1].value else outcome)(lock.release)
        return [*seen, outcome(lock.release)]

    side_by_side(script)


@pytest.mark.parametrize("arguments", BOUNDED)
def test_acquire_of_a_lock_held_elsewhere(arguments: str, side_by_side: SideBySide, elsewhere: Elsewhere) -> None:
    def script(lock: AnyLock) -> list[Outcome]:
        seen = [outcome(lock.acquire), elsewhere(lambda: acquire(lock, arguments)), outcome(lock.release)]
        return [*seen, *(elsewhere(step) for step in (lock.acquire, lock.release, lock.release))]

    side_by_side(script)


# Sequences of calls. Each function returns the outcomes.


def releases_what_is_not_held(lock: AnyLock, elsewhere: Elsewhere) -> list[Outcome]:
    steps = [lock.release, lock.acquire, lock.release, lock.release, lock.acquire, lock.release]
    return [outcome(step) for step in steps]


def is_released_by_another_thread(lock: AnyLock, elsewhere: Elsewhere) -> list[Outcome]:
    seen = [outcome(lock.acquire), elsewhere(lock.release), elsewhere(lambda: lock.acquire(False))]
    return [*seen, outcome(lock.release), elsewhere(lock.release), outcome(lock.release)]


def leaves_what_was_not_entered(lock: AnyLock, elsewhere: Elsewhere) -> list[Outcome]:
    def leave() -> bool:
        """Whether the end of a block suppresses an exception. None and False mean that it does not."""
        return bool(lock.__exit__(None, None, None))

    return [outcome(step) for step in (leave, lock.acquire, leave, lock.release)]


def takes_no_arguments(lock: AnyLock, elsewhere: Elsewhere) -> list[Outcome]:
    seen = [outcome(lock.release, 1), outcome(lock.acquire), outcome(lock.release, True)]
    return [*seen, outcome(lock.release)]


SCRIPTS = [releases_what_is_not_held, is_released_by_another_thread, leaves_what_was_not_entered, takes_no_arguments]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_conversation_as_in_threading(
    script: typing.Callable[[AnyLock, Elsewhere], list[Outcome]], side_by_side: SideBySide, elsewhere: Elsewhere
) -> None:
    side_by_side(lambda lock: script(lock, elsewhere))


def test_condition_of_a_lock(zk: zklock.Client, path: str) -> None:
    condition = threading.Condition(typing.cast(threading.Lock, zk.mutex(path)))
    assert outcome(condition.notify).raised is RuntimeError
    items: list[int] = []

    def consume() -> int:
        with condition:
            assert condition.wait_for(lambda: items, timeout=30)
            return items.pop()

    consumed = Attempt(consume)
    with condition:
        items.append(5)
        condition.notify()
    assert consumed.result() == 5


async def outcome_of(awaitable: typing.Awaitable[object]) -> Outcome:
    try:
        return Outcome(await awaitable)
    except Exception as exception:
        return Outcome(raised=type(exception))


async def release(lock: AnyLock) -> None:
    """Our release may be awaited, to wait for the ensemble's confirmation."""
    released = lock.release()
    if released is not None:
        await released


async def conversation(lock: AnyLock) -> list[Outcome]:
    """The calls, most of them without an await."""

    def enter() -> None:
        with lock:
            pass

    seen = [outcome(enter), outcome(lock.release), outcome(lock.locked, 1), outcome(lock.release, 1), await outcome_of(lock.acquire())]
    lock.release()
    return [*seen, outcome(lock.locked), await outcome_of(lock.acquire()), await outcome_of(release(lock))]


async def test_a_conversation_as_in_asyncio(zk: zklock.Client, path: str) -> None:
    expect_alike(await conversation(zk.aio.mutex(path)), await conversation(asyncio.Lock()))


# Differences.


def test_a_timeout_of_none_is_one_of_minus_one(zk: zklock.Client, path: str) -> None:
    """In ``threading`` None is an error, but everywhere else it means for ever, and in kazoo as well."""
    for lock in (zk.mutex(path, timeout=0), zk.mutex(path, timeout=0, reentrant=True)):
        for arguments in ("timeout=None", "True, None", "False, None"):
            assert acquire(lock, arguments) is True
            lock.release()


async def test_acquire_takes_the_arguments_of_threading(zk: zklock.Client, path: str) -> None:
    """``asyncio.Lock`` takes no arguments. Errors in them are raised before anything is awaited."""
    lock = zk.aio.mutex(path)
    async with lock:
        assert not await lock.acquire(blocking=False) and not await lock.acquire(timeout=0.02)
    assert outcome(lock.acquire, False, 1).raised is ValueError
    assert outcome(lock.acquire, True, -2).raised is ValueError
    assert outcome(lock.acquire, True, 1e100).raised is OverflowError
    assert outcome(lock.acquire, True, "1").raised is TypeError
