"""Mutexes beside libraries that do not see the nodes of all other libraries."""

from __future__ import annotations

import typing

from contest import contend, foreign_side, zklock_side
from ground import Ground

Figures = typing.Callable[[str], None]


def test_kazoos_dialect_with_kazoo(ground: Ground, path: str, figures: Figures) -> None:
    ours = zklock_side("mutex", "--dialect=kazoo")
    figures(contend(ground, path, [foreign_side("kazoo", "mutex"), ours]).figures)


def test_kazoo_that_was_told_of_our_nodes(ground: Ground, path: str, figures: Figures) -> None:
    kazoo = foreign_side("kazoo", "mutex", "--extra-lock-patterns=-lock-")
    ours = zklock_side("mutex", "--foreign=go-ahead")
    figures(contend(ground, path, [kazoo, ours]).figures)


def test_write_locks_dialect_with_zookeepers_write_lock(ground: Ground, path: str, figures: Figures) -> None:
    ours = zklock_side("mutex", "--dialect=writelock")
    figures(contend(ground, path, [foreign_side("writelock", "mutex"), ours]).figures)
