"""Curator's side of a comparison: a separate program, with the jars of the peer."""

from __future__ import annotations

from contest import PROGRAMS


def command(program: str) -> list[str]:
    """The command that starts it. It ends with this process, in whatever way that ends."""
    # Unlike the peer, it has all clients in one process.
    return ["setpriv", "--pdeathsig", "KILL", *PROGRAMS["curator"][:-1], "-Xmx512m", program]
