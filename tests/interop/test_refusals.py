"""If another library cannot see our node, zklock does not hold the lock beside it, but refuses, and names the node."""

from __future__ import annotations

import contextlib
import typing

import pytest
from contest import FACES, Contest, foreign_side, zklock_side
from ground import Ground
from register import Register, Rules

import zklock


@contextlib.contextmanager
def held_by(ground: Ground, path: str, library: str) -> typing.Iterator[tuple[Contest, str]]:
    """Lets a library hold the lock of a path. Yields the name of its node."""
    with Register(Rules(), grants=2, first=1, patience=60, stay=None) as register:
        # The longest that the server grants: none is to end.
        contest = Contest(ground, path, register, session_ms=5000)
        try:
            contest.start(library, foreign_side(library, "mutex"))
            assert register.entered.wait(30), contest.said()
            (node,) = ground.children(path)
            yield contest, node
            # The holder was not disturbed, and the refused contender is gone.
            assert ground.expect_children(path, 1) == [node]
            register.let_go()
            contest.finish(10)
            assert not register.violations
        finally:
            contest.close()


def refuses(contest: Contest, node: str, face: str, *options: str) -> None:
    """Checks that this face ends at once, and names the node of the contender that would not see it."""
    contestant = contest.start(face, zklock_side("mutex", *options))
    contest.running.remove(contestant)
    contest.register.doom(contestant.name)
    status = contestant.process.wait(30)
    assert status != 0 and node in contestant.said(), (face, status, contestant.said())


@pytest.mark.parametrize(
    ("naming", "library"), [(None, "kazoo"), ("kazoo", "curator"), ("kazoo", "writelock"), ("writelock", "curator"), ("writelock", "kazoo")]
)
def test_who_could_not_be_seen_is_refused(ground: Ground, path: str, naming: str | None, library: str) -> None:
    options: dict[str, typing.Any] = {"naming": naming} if naming else {}
    with held_by(ground, path, library) as (contest, node), zklock.Client(ground("servers")) as client:
        for timeout in (0, 10, None):
            with pytest.raises(zklock.ForeignContender, match=node):
                client.mutex(path, **options).hold(timeout=timeout)
        for face in FACES:
            refuses(contest, node, face, *([f"--naming={naming}"] if naming else []))
