"""One queue with an old Curator of legacy services, and with the newest, each with its own ZooKeeper client."""

from __future__ import annotations

import typing

import pytest
from contest import CURATORS, contend, foreign_side, zklock_side
from ground import Ground
from kinds import only_with_long
from register import Rules

Figures = typing.Callable[[str], None]

pytestmark = only_with_long()


@pytest.mark.parametrize("version", CURATORS)
def test_mutex_with_curator_of(ground: Ground, path: str, figures: Figures, version: str) -> None:
    figures(contend(ground, path, [foreign_side(f"curator-{version}", "mutex"), zklock_side("mutex")]).figures)


@pytest.mark.parametrize("version", CURATORS)
def test_read_write_lock_with_curator_of(ground: Ground, path: str, figures: Figures, version: str) -> None:
    figures(contend(ground, path, [foreign_side(f"curator-{version}", "rw"), zklock_side("rw")]).figures)


@pytest.mark.parametrize("version", CURATORS)
def test_semaphore_with_curator_of(ground: Ground, path: str, figures: Figures, version: str) -> None:
    kind = "semaphore:3"
    sides = [foreign_side(f"curator-{version}", kind), zklock_side(kind)]
    # The first to get its lease need not be the first to report that.
    outcome = contend(ground, path, sides, Rules(limit=3, ordered=False), stay=0.004)
    figures(f"{outcome.figures}; {outcome.peak} leases of 3 at once")
