"""What a write carries, and the errors of a fence that refuses it."""

from __future__ import annotations

import re
import typing

from .._errors import Error, InvalidInput, OtherEnsemble, StaleToken
from .._zklock import AsyncHold

# A name is a text of one line, which no database cuts or pads. Databases keep a token in 64 bits with a sign.
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{0,254}[^\x00-\x20\x7f-\x9f\ud800-\udfff]")
_ENSEMBLE = re.compile(r"[!-~]{1,64}")
_GREATEST = 2**63 - 1


class Stamp(typing.NamedTuple):
    """What a write carries, so that a fence can refuse it. ``fence.stamp`` makes one from a hold.

    >>> with zk.mutex("/locks/doc") as hold:
    ...     zklock.fence.stamp(hold).name
    '/locks/doc'

    It consists of texts and a number, so you can send it to the process that does the write, as ``fence.headers`` does.
    """

    name: str
    """The name of the fence: by default the path of the lock."""
    token: int
    """The token of the hold."""
    ensemble: str
    """The identity of the ensemble that gave the token."""


class Held(typing.Protocol):
    """What a fence uses of a ``Hold``."""

    @property
    def path(self) -> str: ...
    @property
    def token(self) -> int: ...
    def ensemble_id(self) -> str: ...


class AsyncHeld(typing.Protocol):
    """What a fence uses of an ``AsyncHold``."""

    @property
    def path(self) -> str: ...
    @property
    def token(self) -> int: ...
    def ensemble_id(self) -> typing.Awaitable[str]: ...


Stamped = typing.Union[Stamp, Held]
AnyStamped = typing.Union[Stamp, Held, AsyncHeld]


@typing.overload
def stamp(hold: Stamped, name: str | None = None) -> Stamp: ...
@typing.overload
def stamp(hold: AsyncHeld, name: str | None = None) -> typing.Awaitable[Stamp]: ...
def stamp(hold: AnyStamped, name: str | None = None) -> Stamp | typing.Awaitable[Stamp]:
    """Makes the ``Stamp`` of a hold. ``name`` is by default the path of the lock. For an ``AsyncHold``, await the result.

    Everything that one lock guards may have the same name. Give names of your own to keep a separate fence for each part.

    Raises ``InvalidInput`` if the name has more than 255 characters, ends with a space, or has more than one line. The first use
    of a client asks its servers for their identity: see ``Client.ensemble_id`` for what that raises.
    """
    if isinstance(hold, Stamp):
        return _checked(hold if name is None else hold._replace(name=name))
    ensemble = hold.ensemble_id()
    name = hold.path if name is None else name
    return _checked(Stamp(name, hold.token, ensemble)) if isinstance(ensemble, str) else _later(name, hold.token, ensemble)


async def _later(name: str, token: int, ensemble: typing.Awaitable[str]) -> Stamp:
    return _checked(Stamp(name, token, await ensemble))


def stamp_now(hold: Stamped, name: str | None) -> Stamp:
    """The stamp of a hold, for what cannot await."""
    if isinstance(hold, AsyncHold):
        raise InvalidInput("a blocking fence cannot ask an AsyncHold: give it `await fence.stamp(hold)`")
    return stamp(hold, name)


async def stamp_later(hold: AnyStamped, name: str | None) -> Stamp:
    made = stamp(hold, name)
    return made if isinstance(made, Stamp) else await made


def _checked(stamp: Stamp) -> Stamp:
    if not isinstance(stamp.name, str) or not _NAME.fullmatch(stamp.name):
        raise InvalidInput(f"a name has 1 to 255 characters in one line, and no space at its end, not {stamp.name!r}")
    if not isinstance(stamp.token, int) or not 0 <= stamp.token <= _GREATEST:
        raise InvalidInput(f"a token is a number from 0 to 2**63 - 1, not {stamp.token!r}")
    if not isinstance(stamp.ensemble, str) or not _ENSEMBLE.fullmatch(stamp.ensemble):
        raise InvalidInput(f"an identity of an ensemble has 1 to 64 letters, digits and signs, not {stamp.ensemble!r}")
    return stamp


def is_refused(stamp: Stamp, ensemble: str, written: int) -> bool:
    """Whether a fence that keeps this token of this ensemble refuses a write."""
    return ensemble != stamp.ensemble or written > stamp.token


def refusal(stamp: Stamp, ensemble: str, written: int, reset: str) -> Error:
    """The error with which it refuses. ``reset`` says how to reset the fence."""
    if ensemble != stamp.ensemble:
        return OtherEnsemble(
            f"the fence of {stamp.name} keeps a token of the ensemble {ensemble}, and this one is of {stamp.ensemble}: they "
            f"cannot be compared; if no holder of the other ensemble can still write, {reset}",
            stamp.name,
            stamp.ensemble,
            ensemble,
        )
    return StaleToken(
        f"a later holder of {stamp.name} has written, with the token {written}, and this one is {stamp.token}: stop, and acquire "
        "the lock again if you still want it",
        stamp.name,
        stamp.token,
        written,
    )
