"""Holds for tests whose subject is not the lock."""

from __future__ import annotations

import typing


class Held(typing.NamedTuple):
    """What a fence uses of a ``Hold``."""

    path: str
    token: int
    ensemble: str = "one"

    def ensemble_id(self) -> str:
        return self.ensemble


class AsyncHeld(typing.NamedTuple):
    """What a fence uses of an ``AsyncHold``."""

    path: str
    token: int
    ensemble: str = "one"

    async def ensemble_id(self) -> str:
        return self.ensemble
