"""Elections in the layout of Curator's LeaderLatch. (Its LeaderSelector is a mutex: see test_mutex.)"""

from __future__ import annotations

import typing

from contest import contend, foreign_side, zklock_side
from ground import Ground

Figures = typing.Callable[[str], None]


def test_election_with_curators_leader_latch(ground: Ground, path: str, figures: Figures) -> None:
    figures(contend(ground, path, [foreign_side("curator", "election"), zklock_side("election")]).figures)
