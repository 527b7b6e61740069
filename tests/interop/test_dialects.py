"""Mutexes beside libraries that do not see the nodes of all others."""

from __future__ import annotations

import typing

from contest import contend, foreign_side, zklock_side
from ground import Ground
from kinds import needs_option

Figures = typing.Callable[[str], None]

FACES = ("python", "python", "rust", "rust")


@needs_option("dialect")
def test_kazoos_dialect_with_kazoo(ground: Ground, path: str, figures: Figures) -> None:
    ours = zklock_side("mutex", "--dialect=kazoo", faces=FACES)
    figures(contend(ground, path, [foreign_side("kazoo", "mutex"), ours]).figures)


@needs_option("foreign")
def test_kazoo_that_was_told_of_our_nodes(ground: Ground, path: str, figures: Figures) -> None:
    kazoo = foreign_side("kazoo", "mutex", "--extra-lock-patterns=-lock-")
    ours = zklock_side("mutex", "--foreign=go-ahead", faces=FACES)
    figures(contend(ground, path, [kazoo, ours]).figures)


@needs_option("dialect")
def test_write_locks_dialect_with_zookeepers_write_lock(ground: Ground, path: str, figures: Figures) -> None:
    ours = zklock_side("mutex", "--dialect=writelock", faces=FACES)
    figures(contend(ground, path, [foreign_side("writelock", "mutex"), ours]).figures)
