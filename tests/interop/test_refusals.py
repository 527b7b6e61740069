"""If another library cannot see our node, zklock does not hold the lock beside it, but refuses, and names the node."""

from __future__ import annotations

import contextlib
import typing

import pytest
from contest import Contest, Side
from ground import Ground
from register import Register, Rules

import zklock


@contextlib.contextmanager
def held_by(ground: Ground, path: str, library: str) -> typing.Iterator[str]:
    """Lets a library hold the lock of a path. Yields the name of its node."""
    with Register(Rules(), grants=2, first=1, patience=60, stay=None) as register:
        contest = Contest(ground, path, register)
        try:
            contest.start(Side(library, "mutex"))
            assert register.entered.wait(30), contest.said()
            (node,) = ground.children(path)
            yield node
            # The holder was not disturbed, and the refused contender is gone.
            assert ground.expect_children(path, 1) == [node]
            register.over.set()
            contest.finish(10)
            assert not register.violations
        finally:
            contest.close()


@pytest.mark.parametrize(
    ("naming", "library"),
    [("curator", "kazoo"), ("kazoo", "curator"), ("kazoo", "writelock"), ("writelock", "curator"), ("writelock", "kazoo")],
)
def test_naming_is_refused_beside_who_cannot_read_it(ground: Ground, path: str, naming: str, library: str) -> None:
    with held_by(ground, path, library) as node, zklock.Client(ground("servers")) as client:
        for timeout in (0, 10, None):
            with pytest.raises(zklock.ForeignContender, match=node):
                client.mutex(path, naming=naming).hold(timeout=timeout)
