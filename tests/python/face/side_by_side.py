"""Makes the same calls on a lock of ours and on one of the standard library, and compares the outcomes."""

from __future__ import annotations

import typing


class Outcome(typing.NamedTuple):
    """The outcome of a call."""

    value: object = None
    raised: type[BaseException] | None = None

    def __repr__(self) -> str:
        return repr(self.value) if self.raised is None else f"raised {self.raised.__name__}"

    def is_like(self, theirs: Outcome) -> bool:
        """An exception of ours may be of a more specific class than theirs."""
        if self.raised is None or theirs.raised is None:
            return self == theirs
        return issubclass(self.raised, theirs.raised)


def outcome(call: typing.Callable[..., object], *arguments: object, **named: object) -> Outcome:
    try:
        return Outcome(call(*arguments, **named))
    except Exception as exception:
        return Outcome(raised=type(exception))


async def outcome_of(awaitable: typing.Awaitable[object]) -> Outcome:
    try:
        return Outcome(await awaitable)
    except Exception as exception:
        return Outcome(raised=type(exception))


def expect_alike(ours: list[Outcome], theirs: list[Outcome]) -> None:
    differ = [(one, other) for one, other in zip(ours, theirs) if not one.is_like(other)]
    assert len(ours) == len(theirs) > 0 and not differ, f"ours {ours}, theirs {theirs}"
