"""ZooKeeper's lock recipe in C, which takes everything after the last `-` of a name for its number."""

from __future__ import annotations

import typing

import pytest
from contest import contend, foreign_side, zklock_side
from ground import Ground
from kinds import only_with_long
from test_refusals import held_by

import zklock

Figures = typing.Callable[[str], None]
Ours = typing.Callable[[zklock.Client, str], zklock.Lock]

# The recipe would not find the number in these names, so it would not see these contenders ahead.
UNSEEN: dict[str, Ours] = {
    "read": lambda client, path: client.read(path),
    "write": lambda client, path: client.write(path),
    "kazoo": lambda client, path: client.mutex(path, dialect="kazoo"),
}


@only_with_long()
@pytest.mark.parametrize("options", [[], ["--dialect=writelock"]], ids=["curator", "writelock"])
def test_mutex_stands_in_one_queue_with_it(ground: Ground, path: str, figures: Figures, options: list[str]) -> None:
    ours = zklock_side("mutex", *options)
    figures(contend(ground, path, [foreign_side("c-recipe", "mutex"), ours]).figures)


@pytest.mark.parametrize("ours", UNSEEN.values(), ids=UNSEEN)
def test_what_it_cannot_see_is_refused_beside_it(ground: Ground, path: str, ours: Ours) -> None:
    with held_by(ground, path, "c-recipe") as (_, node), zklock.Client(ground("servers")) as client:
        with pytest.raises(zklock.ForeignContender, match=node):
            ours(client, path).hold(timeout=10)
