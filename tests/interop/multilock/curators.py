"""Curator's side of a comparison: a program of its own, with the jars of the peer."""

from __future__ import annotations

from contest import PROGRAMS


def command(program: str) -> list[str]:
    """How it is started. However this process ends, it ends with it."""
    # It has all clients in one process, which the peer has not.
    return ["setpriv", "--pdeathsig", "KILL", *PROGRAMS["curator"][:-1], "-Xmx512m", program]
