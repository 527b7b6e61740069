"""One queue with locks that programs have made for themselves: zklock's names follow a pattern there."""

from __future__ import annotations

import typing

import pytest
from contest import GRANTS, Outcome, contend, foreign_side, zklock_side
from ground import Ground

# The layouts of peers/java/HomeMadePeer.java.
PATTERNS = {
    "named": "{name}_lock_{sequence}",
    "host": "{any}-{R|W}-{sequence}",
    "guid": "{any}-lock-{sequence}",
    "plain": "lock-{sequence}",
    "session": "lock-{any}{sequence}",
}


def contended(ground: Ground, path: str, layout: str, pattern: str, **more: typing.Any) -> Outcome:
    kind = "rw" if layout == "host" else "mutex"
    ours = zklock_side(kind, f"--naming={pattern}", faces=("python", "cpp"))
    return contend(ground, path, [foreign_side("home-made", kind, layout), ours], **more)


@pytest.mark.parametrize("layout", PATTERNS)
def test_both_sides_have_their_turns_in_a_home_made_queue(
    ground: Ground, path: str, figures: typing.Callable[[str], None], layout: str
) -> None:
    def shows(peak: int, together: set[frozenset[str]]) -> bool:
        # Readers of both sides were inside at once.
        return layout != "host" or any("home-made" in pair and len(pair) == 2 for pair in together)

    more: dict[str, typing.Any] = {"grants": max(GRANTS, 1000), "cuts": True, "shows": shows}
    if layout == "named":
        # All the time another lock under the same node has a holder.
        other = f"{path}/report2_lock_0000000000"
        ground(f"create {other}")
        try:
            outcome = contended(ground, f"{path}/report", layout, PATTERNS[layout], nodes=f"{path}/report_lock_", **more)
        finally:
            ground(f"delete {other}")
    else:
        outcome = contended(ground, path, layout, PATTERNS[layout], **more)
    figures(outcome.figures)
    assert shows(outcome.peak, outcome.together), outcome


def test_a_pattern_of_another_layout_is_caught(ground: Ground, path: str) -> None:
    with pytest.raises(AssertionError, match="came in"):
        contended(ground, path, "guid", PATTERNS["plain"], kills=False)
