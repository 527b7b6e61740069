"""One queue for the mutexes of all libraries that see each other's nodes."""

from __future__ import annotations

import typing

from contest import contend, foreign_side, zklock_side
from ground import Ground
from kinds import needs_go
from register import REST, Rules

Figures = typing.Callable[[str], None]


def test_mutex_with_curator(ground: Ground, path: str, figures: Figures) -> None:
    figures(contend(ground, path, [foreign_side("curator", "mutex"), zklock_side("mutex")]).figures)


def test_mutex_with_curators_leader_selector(ground: Ground, path: str, figures: Figures) -> None:
    figures(contend(ground, path, [foreign_side("curator", "selector"), zklock_side("mutex")]).figures)


def test_mutex_with_zookeepers_write_lock(ground: Ground, path: str, figures: Figures) -> None:
    figures(contend(ground, path, [foreign_side("writelock", "mutex"), zklock_side("mutex")]).figures)


@needs_go()
def test_mutex_with_go_zookeeper(ground: Ground, path: str, figures: Figures) -> None:
    figures(contend(ground, path, [foreign_side("go", "mutex"), zklock_side("mutex")]).figures)


def test_mutex_that_lingers_with_curator(ground: Ground, path: str, figures: Figures) -> None:
    ours = zklock_side("mutex", "--linger=3600", REST)
    figures(contend(ground, path, [foreign_side("curator", "mutex", REST), ours], Rules(lingers=True)).figures)


def test_mutex_that_lingers_with_kazoo(ground: Ground, path: str, figures: Figures) -> None:
    ours = zklock_side("mutex", "--linger=3600", "--dialect=kazoo", REST)
    figures(contend(ground, path, [foreign_side("kazoo", "mutex", REST), ours], Rules(lingers=True)).figures)
