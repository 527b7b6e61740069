"""The promises of every fence, as cases that you can run against your own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import typing
import uuid

from .._errors import Error, OtherEnsemble, StaleToken
from ._settle import entered, settled
from ._stamp import Stamp

# How long a case lets the second of two holders go on while the first one sleeps. If the second needs longer, it is taken for one
# that waits for the first, which no fence forbids.
_NAP = 0.3
_ROUNDS = 10
_TRIES = 20


class Guarded(typing.Protocol):
    """What a fence protects, within a transaction. In asyncio its methods may be coroutines."""

    def read(self) -> typing.Any:
        """The text that was written last under this name, or ``None``."""

    def write(self, value: str) -> typing.Any:
        """Writes a text."""


class Fence(typing.Protocol):
    """A fence, for ``check``."""

    def transaction(self, stamp: Stamp) -> typing.Any:
        """Begins a fenced transaction: a context manager, of asyncio or not, which gives something that is ``Guarded``. It is
        called in several threads.
        """


class Broken(AssertionError):
    """A fence does not keep a promise. The message has the case, what was promised and what was seen."""

    __module__ = "zklock.fence"


class Report(typing.NamedTuple):
    """The names of cases. See ``check``."""

    passed: tuple[str, ...]
    """What the fence has passed."""
    skipped: tuple[str, ...]
    """What was not tried, because the fence cannot roll back."""


class _Failure(Exception):
    """Ends a transaction that is to be rolled back."""


Action = typing.Callable[[Guarded], typing.Any]


def _write(value: str) -> Action:
    return lambda guarded: guarded.write(value)


def _read(guarded: Guarded) -> typing.Any:
    return guarded.read()


def _fail(guarded: Guarded) -> typing.Any:
    raise _Failure


class _Trial:
    """One run of a case, with a name that nothing else uses."""

    def __init__(self, fence: Fence, case: str, promise: str, timeout: float) -> None:
        self._fence = fence
        self._case = case
        self._promise = promise
        self.timeout = timeout
        self.name = f"/zklock-check/{uuid.uuid4().hex}"

    def broken(self, seen: str) -> Broken:
        return Broken(f"{self._case}: promised: {self._promise}; seen: {seen}")

    def stamp(self, token: int, ensemble: str = "one") -> Stamp:
        return Stamp(self.name, token, ensemble)

    def begin(self, stamp: Stamp, *actions: Action, tries: int = 1) -> concurrent.futures.Future[typing.Any]:
        """The transaction of a holder, in a thread. It gives what the last action does. If it fails for another reason,
        such as a deadlock, it is tried again."""
        outcome: concurrent.futures.Future[typing.Any] = concurrent.futures.Future()

        def run() -> None:
            for left in reversed(range(tries)):
                try:
                    return outcome.set_result(self._run(stamp, actions))
                except BaseException as error:
                    if isinstance(error, Error) or not left:
                        return outcome.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return outcome

    def _run(self, stamp: Stamp, actions: tuple[Action, ...]) -> typing.Any:
        async def main() -> typing.Any:
            manager, done = self._fence.transaction(stamp), None
            async with entered(manager) as guarded:
                for action in actions:
                    done = await settled(action(guarded))
            return done

        # In a loop, because an asynchronous library may want one before it shows itself.
        return asyncio.run(main())

    def end(self, outcome: concurrent.futures.Future[typing.Any]) -> BaseException | None:
        """Waits for the end of a transaction, and returns its error."""
        try:
            return outcome.exception(self.timeout)
        except concurrent.futures.TimeoutError:
            raise self.broken(f"a transaction that has not ended after {self.timeout} s") from None

    def done(self, stamp: Stamp, *actions: Action) -> typing.Any:
        """A transaction that must be done."""
        outcome = self.begin(stamp, *actions)
        if error := self.end(outcome):
            raise self.broken(f"the token {stamp.token} failed with {error!r}") from error
        return outcome.result()

    def refused(self, stamp: Stamp, *actions: Action, written: int | None = None) -> None:
        """A transaction that must be refused."""
        error = self.end(self.begin(stamp, *actions))
        if error is None:
            raise self.broken(f"the token {stamp.token} of the ensemble {stamp.ensemble} was accepted")
        wanted = OtherEnsemble if written is None else StaleToken
        if not isinstance(error, wanted):
            raise self.broken(f"{error!r}, and not {wanted.__name__}") from error
        if isinstance(error, StaleToken) and (error.token, error.written) != (stamp.token, written):
            raise self.broken(f"an error that says {error.token} is refused and {error.written} has written") from error

    def expect(self, stamp: Stamp, value: str | None) -> None:
        """This is there, as a holder reads it."""
        if (seen := self.done(stamp, _read)) != value:
            raise self.broken(f"{seen!r}, and not {value!r}")


Step = typing.Callable[[_Trial], object]


def _done(token: int, *actions: Action) -> Step:
    """A write, or these actions, that must be done."""
    return lambda trial: trial.done(trial.stamp(token), *(actions or [_write(f"of {token}")]))


def _late(token: int, written: int, action: Action = _write("late")) -> Step:
    """What must be refused, because the token ``written`` has written."""
    return lambda trial: trial.refused(trial.stamp(token), action, written=written)


def _foreign(token: int) -> Step:
    return lambda trial: trial.refused(trial.stamp(token, "other"), _write("of another"))


def _kept(token: int, value: str) -> Step:
    return lambda trial: trial.expect(trial.stamp(token), value)


def _other_name(trial: _Trial) -> None:
    other = Stamp(f"{trial.name}/other", 5, "one")
    trial.done(other, _write("of the other"))
    trial.expect(other, "of the other")


def _roll_back(trial: _Trial) -> None:
    def rolled_back(stamp: Stamp) -> None:
        if not isinstance(error := trial.end(trial.begin(stamp, _write("rolled back"), _fail)), _Failure):
            raise trial.broken(f"{error!r}, and not the exception that was raised in the block")

    rolled_back(trial.stamp(9))
    trial.expect(trial.stamp(4), None)
    trial.done(trial.stamp(5), _write("of 5"))
    rolled_back(trial.stamp(9))
    trial.expect(trial.stamp(5), "of 5")


def _sleeps_before_its_write(trial: _Trial) -> None:
    before = _two_holders(trial, lambda asleep: [asleep, _write("of 5")])
    if before.was_done and not before.error:
        raise trial.broken("a write after that of the later holder that was silently dropped")


def _sleeps_before_its_end(trial: _Trial) -> None:
    _two_holders(trial, lambda asleep: [_write("of 5"), asleep])


class _Sleeper(typing.NamedTuple):
    error: BaseException | None
    was_done: bool
    """Whether the later holder was done before it woke."""


def _two_holders(trial: _Trial, actions: typing.Callable[[Action], list[Action]]) -> _Sleeper:
    """The first holder sleeps within its transaction while the second one wants to write."""
    sleeps, wakes = threading.Event(), threading.Event()

    def asleep(guarded: Guarded) -> None:
        sleeps.set()
        wakes.wait()

    first = trial.begin(trial.stamp(5), *actions(asleep))
    first.add_done_callback(lambda _: sleeps.set())
    try:
        if not sleeps.wait(trial.timeout) or first.done():
            raise trial.broken(f"the first holder failed with {trial.end(first)!r}")
        second = trial.begin(trial.stamp(9), _write("of 9"), tries=_TRIES)
        was_done = bool(concurrent.futures.wait([second], _NAP).done)
    finally:
        wakes.set()
    sleeper = _Sleeper(trial.end(first), was_done)
    if error := trial.end(second):
        raise trial.broken(f"the later holder failed with {error!r}") from error
    trial.expect(trial.stamp(9), "of 9")
    return sleeper


def _race(trial: _Trial) -> None:
    for number in range(_ROUNDS):
        stamps = [Stamp(f"{trial.name}/{number}", token, "one") for token in (5, 9)]
        writes = [trial.begin(stamp, _write(f"of {stamp.token}"), tries=_TRIES) for stamp in stamps]
        earlier, later = map(trial.end, writes)
        if later or earlier and not isinstance(earlier, StaleToken):
            raise trial.broken(f"{later or earlier!r}")
        trial.expect(stamps[1], "of 9")


# Each with what is promised, and the steps that show it.
_CASES: dict[str, tuple[str, list[Step]]] = {
    "first_write": ("a first write is done, and can be read", [_done(5), _kept(6, "of 5")]),
    "retry_after_a_lost_commit": (
        "an equal token is accepted, as when a holder does not know whether its commit was done",
        [_done(5), _done(5, _write("again")), _kept(5, "again")],
    ),
    "greater_token": ("a greater token is accepted, also one that is greater only as a number", [_done(9), _done(10), _kept(10, "of 10")]),
    "smaller_token": ("a smaller token is refused with a StaleToken that names both", [_done(10), _late(9, 10)]),
    "refused_write": (
        "a write that is refused changes neither what is protected nor the token",
        [_done(9), _late(5, 9), _late(7, 9), _kept(9, "of 9")],
    ),
    "other_ensemble": (
        "a token of another ensemble is refused with OtherEnsemble, be it smaller, equal or greater",
        [_done(5), _foreign(4), _foreign(5), _foreign(6), _kept(5, "of 5")],
    ),
    "other_name": ("another name has a token of its own", [_done(9), _other_name, _kept(9, "of 9")]),
    "raised_before_the_first_write": (
        "an empty transaction raises the token, so that writes of earlier holders are refused afterwards",
        [_done(5), lambda trial: trial.done(trial.stamp(9)), _late(5, 9), _kept(9, "of 5")],
    ),
    "fenced_read": ("a read with a smaller token is refused", [_done(9), _late(5, 9, _read)]),
    "above_2_to_53": ("tokens above 2**53 are compared exactly", [_done(2**53 + 1), _late(2**53, 2**53 + 1)]),
    "near_2_to_63": (
        "tokens up to 2**63 - 1 are accepted, and compared exactly",
        [_done(2**63 - 2), _done(2**63 - 1), _late(2**63 - 2, 2**63 - 1)],
    ),
    "roll_back": ("a transaction that is rolled back leaves what is protected and the token as they were", [_roll_back]),
    "sleeps_before_its_write": (
        "a holder that sleeps between the begin of its transaction and its write does not write over a later holder",
        [_sleeps_before_its_write],
    ),
    "sleeps_before_its_end": (
        "what a later holder has written is not lost if an earlier one sleeps between its write and the end of its transaction",
        [_sleeps_before_its_end],
    ),
    "race": ("of two holders that write at the same time, the later one has the last word", [_race]),
}


def check(fence: Fence, *, rolls_back: bool = True, timeout: float = 60.0) -> Report:
    """Checks that a fence keeps the promises of a fence.

    >>> import contextlib, threading
    >>> class Memory:
    ...     def __init__(self):
    ...         self.lock, self.kept = threading.Lock(), {}
    ...     @contextlib.contextmanager
    ...     def transaction(self, stamp):
    ...         with self.lock:
    ...             ensemble, token, value = self.kept.get(stamp.name, (stamp.ensemble, stamp.token, None))
    ...             if ensemble != stamp.ensemble:
    ...                 raise zklock.OtherEnsemble("not of this ensemble", stamp.name, stamp.ensemble, ensemble)
    ...             if token > stamp.token:
    ...                 raise zklock.StaleToken("too late", stamp.name, stamp.token, token)
    ...             self.value = value
    ...             yield self
    ...             self.kept[stamp.name] = stamp.ensemble, stamp.token, self.value
    ...     def read(self):
    ...         return self.value
    ...     def write(self, value):
    ...         self.value = value
    >>> len(zklock.fence.check(Memory()).passed)
    15

    ``fence`` has a method ``transaction``, whose block gives an object with ``read`` and ``write``: see ``Fence`` and
    ``Guarded``. Each name protects a text of its own: keep it in a row or under a key of that name. The cases use new names that
    begin with ``/zklock-check/``, and do not delete what they write.

    If your fence guards each write by itself and cannot roll back, give ``rolls_back=False``, and raise the token when the
    transaction begins. The cases that need a roll-back are then reported as skipped.

    A transaction that has not ended after ``timeout`` seconds counts as hanging. Raises ``Broken`` with the first case that the
    fence does not pass.
    """
    passed, skipped = [], []
    for name, (promise, steps) in _CASES.items():
        if name == "roll_back" and not rolls_back:
            skipped.append(name)
            continue
        trial = _Trial(fence, name, promise, timeout)
        for step in steps:
            step(trial)
        passed.append(name)
    return Report(tuple(passed), tuple(skipped))
