"""A stamp on its way over HTTP, and the refusal on its way back."""

from __future__ import annotations

import json
import re
import typing
import urllib.parse

from .._errors import InvalidInput, OtherEnsemble, StaleToken
from ._stamp import AsyncHeld, Stamp, Stamped, stamp

TOKEN, NAME, ENSEMBLE = "Fencing-Token", "Fencing-Name", "Fencing-Ensemble"
_SAFE = ("GET", "HEAD", "OPTIONS")


@typing.overload
def headers(hold: Stamped, name: str | None = None) -> dict[str, str]: ...
@typing.overload
def headers(hold: AsyncHeld, name: str | None = None) -> typing.Awaitable[dict[str, str]]: ...
def headers(hold: typing.Any, name: str | None = None) -> typing.Any:
    """The headers that carry a stamp, for any HTTP client. For an ``AsyncHold``, await the result.

    >>> zklock.fence.headers(zklock.fence.Stamp("/locks/doc", 5, "one"))
    {'Fencing-Token': '5', 'Fencing-Name': '/locks/doc', 'Fencing-Ensemble': 'one'}

    The name is percent-encoded.
    """
    made = stamp(hold, name)
    return _fields(made) if isinstance(made, Stamp) else _fields_later(made)


async def _fields_later(made: typing.Awaitable[Stamp]) -> dict[str, str]:
    return _fields(await made)


def _fields(stamp: Stamp) -> dict[str, str]:
    return {TOKEN: str(stamp.token), NAME: urllib.parse.quote(stamp.name), ENSEMBLE: stamp.ensemble}


class Answer(typing.NamedTuple):
    """What goes back in place of the answer of the application."""

    status: int
    reason: str
    body: bytes

    @classmethod
    def of(cls, status: int, reason: str, detail: object, **fields: object) -> Answer:
        return cls(status, reason, json.dumps({"error": reason, "detail": str(detail), **fields}).encode())

    @property
    def fields(self) -> list[tuple[str, str]]:
        return [("Content-Type", "application/json"), ("Content-Length", str(len(self.body)))]


def refused(error: StaleToken | OtherEnsemble) -> Answer:
    """Tokens are texts, because numbers of JSON end at 2**53."""
    if isinstance(error, StaleToken):
        return Answer.of(412, "stale token", error, name=error.name, token=str(error.token), written=str(error.written))
    return Answer.of(412, "other ensemble", error, name=error.name, ensemble=error.ensemble, kept=error.kept)


def arrived(method: str, field: typing.Callable[[str], str | None]) -> Stamp | Answer | None:
    """The stamp of a request; the answer if it has none or a wrong one; nothing if it needs none."""
    token, name, ensemble = (field(header) for header in (TOKEN, NAME, ENSEMBLE))
    if token is None and name is None and ensemble is None:
        return None if method in _SAFE else Answer.of(428, "no token", f"the request must have the headers {TOKEN}, {NAME} and {ENSEMBLE}")
    try:
        if token is None or name is None or ensemble is None or not re.fullmatch("[0-9]{1,19}", token):
            raise InvalidInput(f"the headers are not all there, or {TOKEN} is no number: {token}")
        return stamp(Stamp(urllib.parse.unquote(name, errors="strict"), int(token), ensemble))
    except ValueError as error:
        return Answer.of(400, "no stamp", error)
