"""One queue for the read/write locks of all libraries."""

from __future__ import annotations

import typing

from contest import Side, contend, foreign_side, zklock_side
from ground import Ground
from kinds import needs_curator_that_downgrades
from register import REST, Rules

Figures = typing.Callable[[str], None]

DOWNGRADING = ("python", "python", "rust", "rust")


def shared(library: str) -> typing.Callable[[int, set[frozenset[str]]], bool]:
    """Whether readers of both sides were inside at once, so that the read side is not just a mutex."""
    return lambda peak, together: peak > 1 and any(library in pair and len(pair) == 2 for pair in together)


def contest(
    ground: Ground, path: str, foreign: Side, ours: Side, figures: Figures, rules: Rules = Rules()
) -> None:
    (library,) = set(foreign.programs)
    outcome = contend(ground, path, [foreign, ours], rules, shows=shared(library))
    figures(outcome.figures)
    assert shared(library)(outcome.peak, outcome.together), outcome


def test_read_write_lock_with_curator(ground: Ground, path: str, figures: Figures) -> None:
    contest(ground, path, foreign_side("curator", "rw"), zklock_side("rw"), figures)


def test_read_write_lock_that_lingers_with_curator(ground: Ground, path: str, figures: Figures) -> None:
    curator, ours = foreign_side("curator", "rw", REST), zklock_side("rw", "--linger=3600", REST)
    contest(ground, path, curator, ours, figures, Rules(lingers=True))


def test_downgrade_beside_curator(ground: Ground, path: str, figures: Figures) -> None:
    """Curator recognises our readers that were writers. (Debian's own Curator does it wrong itself: see CURATOR-621.)"""
    contest(ground, path, foreign_side("curator", "rw"), zklock_side("downgrade", faces=DOWNGRADING), figures)


@needs_curator_that_downgrades()
def test_downgrade_of_curator_as_well(ground: Ground, path: str, figures: Figures) -> None:
    """We recognise Curator's, whose nodes do not have their own number."""
    curator = foreign_side("curator-that-downgrades", "downgrade")
    contest(ground, path, curator, zklock_side("downgrade", faces=DOWNGRADING), figures)


def test_read_write_lock_with_kazoo(ground: Ground, path: str, figures: Figures) -> None:
    contest(ground, path, foreign_side("kazoo", "rw"), zklock_side("rw", "--dialect=kazoo"), figures)
