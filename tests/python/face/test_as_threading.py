"""Where the names are those of ``threading``, so is what they do: the same calls, side by side.

The end names and tests the differences. For owners see ../scenarios/test_owners.py, for blocks ../scenarios/test_exit.py.
"""

from __future__ import annotations

import concurrent.futures
import decimal
import fractions
import math
import sys
import threading
import typing

import pytest
from face.side_by_side import Outcome, expect_alike, outcome

import zklock

# The lock is theirs or ours, and a type checker could not tell which.
AnyLock = typing.Any
Script = typing.Callable[[AnyLock, "Elsewhere"], typing.List[Outcome]]

KINDS = ("Lock", "RLock")
MAX = threading.TIMEOUT_MAX


class Elsewhere:
    """Another thread, always the same."""

    def __init__(self) -> None:
        self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1)

    def start(
        self, call: typing.Callable[..., object], *arguments: object, **named: object
    ) -> concurrent.futures.Future[Outcome]:
        return self._thread.submit(outcome, call, *arguments, **named)

    def __call__(self, call: typing.Callable[..., object], *arguments: object, **named: object) -> Outcome:
        try:
            return self.start(call, *arguments, **named).result(timeout=30)
        except concurrent.futures.TimeoutError:
            return Outcome("waits for ever")

    def end(self) -> None:
        self._thread.shutdown()


@pytest.fixture
def elsewhere() -> typing.Iterator[Elsewhere]:
    elsewhere = Elsewhere()
    yield elsewhere
    elsewhere.end()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def theirs(kind: str) -> AnyLock:
    return threading.Lock() if kind == "Lock" else threading.RLock()


@pytest.fixture
def ours(kind: str, zk: zklock.Client, path: str) -> zklock.Lock:
    return zk.mutex(path, reentrant=kind == "RLock")


class Call(typing.NamedTuple):
    """The arguments of an ``acquire``."""

    arguments: tuple[object, ...] = ()
    named: dict[str, object] = {}
    # Whether it would wait for ever, or nearly for ever, for a lock that is held.
    waits: bool = False
    since: tuple[int, int] = (3, 9)

    def __call__(self, lock: AnyLock) -> Outcome:
        return outcome(lock.acquire, *self.arguments, **self.named)

    def __str__(self) -> str:
        words = [repr(value)[:20] for value in self.arguments]
        return f"acquire({', '.join([*words, *(f'{name}={value!r:.20}' for name, value in self.named.items())])})"


NO_TIMEOUTS: list[object] = [MAX + 1, 1e100, 10**400, -(10**400), math.inf, -math.inf, math.nan, -100, -2, -0.5, -1e-12]
NO_TIMEOUTS += ["1", 1j, [1], fractions.Fraction(1)]
CALLS = [
    *(Call(given, waits=True) for given in ((), (True,), (1,))),
    Call((), {"blocking": True}, waits=True),
    *(Call(given) for given in ((False,), (0,))),
    Call((), {"blocking": False}),
    # Since 3.13, values that are true or false without being numbers are accepted.
    *(Call(given, since=(3, 13)) for given in (("",), (None,))),
    Call(("yes",), waits=True, since=(3, 13)),
    # Timeouts.
    *(Call((True, timeout), waits=True) for timeout in (-1, -1.0, True)),
    *(Call((True, timeout)) for timeout in (0, -0.0, 1.0, 1e-300)),
    *(Call((), {"timeout": timeout}, waits=True) for timeout in (-1, MAX, MAX + 0.5)),
    Call((), {"timeout": 1.0}),
    Call((), {"timeout": 0, "blocking": True}),
    *(Call((), {"timeout": wrong}) for wrong in NO_TIMEOUTS),
    Call((), {"timeout": decimal.Decimal(1)}, since=(3, 10)),
    # Timeouts of calls that must not wait.
    *(Call((False, timeout)) for timeout in (-1, -1.0, 0, 1, -2, math.nan, math.inf)),
    Call((), {"timeout": -1, "blocking": False}),
    # Arguments that this function does not have.
    Call((True, 1, 1)),
    Call((), {"block": True}),
    Call((True,), {"blocking": True}),
    Call((True, 1), {"timeout": 1}),
]
CALLS = [call for call in CALLS if sys.version_info >= call.since]


# Attempts that give up in time, or at once.
BOUNDED = [call for call in CALLS if not call.waits]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_acquire_of_a_free_lock(call: Call, theirs: AnyLock, ours: zklock.Lock, elsewhere: Elsewhere) -> None:
    def script(lock: AnyLock) -> list[Outcome]:
        acquired = call(lock)
        seen = [acquired, elsewhere(lock.acquire, False)]
        # It is free again after this, whichever thread had it.
        (elsewhere if seen[1].value else outcome)(lock.release)
        return [*seen, outcome(lock.release)]

    compare(script, theirs, ours)


@pytest.mark.parametrize("call", BOUNDED, ids=str)
def test_acquire_of_a_lock_held_elsewhere(call: Call, theirs: AnyLock, ours: zklock.Lock, elsewhere: Elsewhere) -> None:
    def script(lock: AnyLock) -> list[Outcome]:
        seen = [outcome(lock.acquire), elsewhere(lock.acquire, *call.arguments, **call.named), outcome(lock.release)]
        return [*seen, *(elsewhere(step) for step in (lock.acquire, lock.release, lock.release))]

    compare(script, theirs, ours)


def compare(script: typing.Callable[[AnyLock], list[Outcome]], theirs: AnyLock, ours: zklock.Lock) -> None:
    expected = script(theirs)
    expect_alike(script(ours), expected)


# Sequences of calls. Each function returns the outcomes.


def releases_what_is_not_held(lock: AnyLock, elsewhere: Elsewhere) -> list[Outcome]:
    steps = [lock.release, lock.acquire, lock.release, lock.release, lock.acquire, lock.release]
    return [outcome(step) for step in steps]


def is_released_by_another_thread(lock: AnyLock, elsewhere: Elsewhere) -> list[Outcome]:
    seen = [outcome(lock.acquire), elsewhere(lock.release), elsewhere(lock.acquire, False)]
    return [*seen, outcome(lock.release), elsewhere(lock.release), outcome(lock.release)]


def leave(lock: AnyLock) -> bool:
    """Whether the end of a block suppresses an exception. None and False mean that it does not."""
    return bool(lock.__exit__(None, None, None))


def leaves_what_was_not_entered(lock: AnyLock, elsewhere: Elsewhere) -> list[Outcome]:
    seen = [outcome(leave, lock), outcome(lock.acquire)]
    return [*seen, outcome(leave, lock), outcome(lock.release)]


def takes_no_arguments(lock: AnyLock, elsewhere: Elsewhere) -> list[Outcome]:
    seen = [outcome(lock.release, 1), outcome(lock.acquire), outcome(lock.release, True)]
    return [*seen, outcome(lock.release)]


SCRIPTS: list[Script] = [
    releases_what_is_not_held,
    is_released_by_another_thread,
    leaves_what_was_not_entered,
    takes_no_arguments,
]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_conversation(script: Script, theirs: AnyLock, ours: zklock.Lock, elsewhere: Elsewhere) -> None:
    compare(lambda lock: script(lock, elsewhere), theirs, ours)


def test_condition_of_a_lock(zk: zklock.Client, path: str, elsewhere: Elsewhere) -> None:
    condition = threading.Condition(typing.cast(threading.Lock, zk.mutex(path)))
    assert outcome(condition.notify).raised is RuntimeError
    items: list[int] = []

    def consume() -> int:
        with condition:
            assert condition.wait_for(lambda: items, timeout=30)
            return items.pop()

    consumed = elsewhere.start(consume)
    with condition:
        items.append(5)
        condition.notify()
    assert consumed.result(timeout=30) == Outcome(5)


# Differences.


def test_a_timeout_of_none_is_one_of_minus_one(zk: zklock.Client, path: str) -> None:
    """In ``threading`` None is an error, but everywhere else it means for ever, and in kazoo as well."""
    for lock in (zk.mutex(path, timeout=0), zk.mutex(path, timeout=0, reentrant=True)):
        assert lock.acquire(timeout=None) is True
        lock.release()
        assert lock.acquire(True, None) is True
        lock.release()
        assert lock.acquire(False, None) is True
        lock.release()
