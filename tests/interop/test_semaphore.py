"""Semaphores in the layout of Curator's InterProcessSemaphoreV2."""

from __future__ import annotations

import typing

from contest import contend, foreign_side, zklock_side
from ground import Ground
from register import Rules

Figures = typing.Callable[[str], None]

# Long enough that the permits run out.
STAY = 0.004
# The first to get its lease need not be the first to report that.
ORDERED = False


def test_semaphore_with_curator(ground: Ground, path: str, figures: Figures) -> None:
    kind = "semaphore:3"
    sides = [foreign_side("curator", kind), zklock_side(kind)]
    rules = Rules(limit=3, ordered=ORDERED)
    outcome = contend(ground, path, sides, rules, stay=STAY, shows=lambda peak, together: peak == 3)
    figures(f"{outcome.figures}; {outcome.peak} leases of 3 at once")
    assert outcome.peak == 3


def test_several_leases_with_curator(ground: Ground, path: str, figures: Figures) -> None:
    # Two of Curator's can have one lease each while they wait for another, and even then the head of the queue must get two.
    kind = "semaphore:4:2"
    sides = [foreign_side("curator", kind), zklock_side(kind)]
    rules = Rules(limit=4, ordered=ORDERED)
    outcome = contend(ground, path, sides, rules, stay=STAY, shows=lambda peak, together: peak == 4)
    figures(f"{outcome.figures}; {outcome.peak} leases of 4 at once")
    assert outcome.peak == 4


def test_mutex_that_is_not_reentrant_with_curator(ground: Ground, path: str, figures: Figures) -> None:
    """InterProcessSemaphoreMutex is a semaphore with one lease."""
    kind = "semaphore-mutex"
    figures(contend(ground, path, [foreign_side("curator", kind), zklock_side(kind)]).figures)
