"""One queue with locks that programs have made for themselves: zklock's names follow a pattern there."""

from __future__ import annotations

import typing

import pytest
from contest import GRANTS, Side, contend
from ground import Ground

# The layouts of peers/kazoo_peer.py.
PATTERNS = {
    "named": "{name}_lock_{sequence}",
    "host": "{any}-{R|W}-{sequence}",
    "guid": "{any}-lock-{sequence}",
    "plain": "lock-{sequence}",
    "session": "lock-{any}{sequence}",
}


def contended(ground: Ground, path: str, layout: str, pattern: str, **more: typing.Any) -> None:
    kind = "rw" if layout == "host" else "mutex"
    sides = [Side("kazoo", kind, [f"--home-made={layout}"]), Side("zklock", kind, [f"--naming={pattern}"])]
    contend(ground, path, sides, **more)


@pytest.mark.parametrize("layout", PATTERNS)
def test_both_sides_have_their_turns_in_a_home_made_queue(ground: Ground, path: str, layout: str) -> None:
    def shows(peak: int, together: set[frozenset[str]]) -> bool:
        # Readers of both sides were inside at once.
        return layout != "host" or any("kazoo" in pair and len(pair) == 2 for pair in together)

    more: dict[str, typing.Any] = {"grants": max(GRANTS, 1000), "cuts": True, "shows": shows}
    if layout == "named":
        # All the time another lock under the same node has a holder.
        other = f"{path}/report2_lock_0000000000"
        ground(f"create {other}")
        try:
            contended(ground, f"{path}/report", layout, PATTERNS[layout], nodes=f"{path}/report_lock_", **more)
        finally:
            ground(f"delete {other}")
    else:
        contended(ground, path, layout, PATTERNS[layout], **more)


def test_a_pattern_of_another_layout_is_caught(ground: Ground, path: str) -> None:
    with pytest.raises(AssertionError, match="came in"):
        contended(ground, path, "guid", PATTERNS["plain"], kills=False)
