"""One queue for the read/write locks of all libraries."""

from __future__ import annotations

import typing

from contest import Outcome, contend, foreign_side, zklock_side
from ground import Ground
from kinds import needs_curator_that_downgrades

Figures = typing.Callable[[str], None]

DOWNGRADING = ("python", "python", "rust", "rust")


def shared(outcome: Outcome, library: str) -> None:
    """Readers of both sides were inside at once, so the read side is no mutex in disguise."""
    others = {program for pair in outcome.together if library in pair for program in pair} - {library}
    assert outcome.peak > 1 and others, outcome


def test_read_write_lock_with_curator(ground: Ground, path: str, figures: Figures) -> None:
    outcome = contend(ground, path, [foreign_side("curator", "rw"), zklock_side("rw")])
    figures(outcome.figures)
    shared(outcome, "curator")


def test_downgrade_beside_curator(ground: Ground, path: str, figures: Figures) -> None:
    """Curator knows our readers that were writers. (Debian's own Curator is no example: see CURATOR-621.)"""
    outcome = contend(ground, path, [foreign_side("curator", "rw"), zklock_side("downgrade", faces=DOWNGRADING)])
    figures(outcome.figures)
    shared(outcome, "curator")


@needs_curator_that_downgrades()
def test_downgrade_of_curator_as_well(ground: Ground, path: str, figures: Figures) -> None:
    """And we know Curator's, whose nodes have no number of their own."""
    curator = foreign_side("curator-that-downgrades", "downgrade")
    outcome = contend(ground, path, [curator, zklock_side("downgrade", faces=DOWNGRADING)])
    figures(outcome.figures)
    shared(outcome, "curator-that-downgrades")


def test_read_write_lock_with_kazoo(ground: Ground, path: str, figures: Figures) -> None:
    ours = zklock_side("rw", "--dialect=kazoo")
    outcome = contend(ground, path, [foreign_side("kazoo", "rw"), ours])
    figures(outcome.figures)
    shared(outcome, "kazoo")
