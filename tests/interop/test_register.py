"""The register itself: it accepts valid claims, and notices violations."""

from __future__ import annotations

import contextlib
import sys
import time
import typing

import pytest
from contest import HERE, contend, foreign_side
from ground import Ground
from register import Register, Rules

sys.path.append(str(HERE / "peers"))
from line import Line  # noqa: E402  It is a peer's.

Opened = typing.Callable[..., Register]
Come = typing.Callable[..., typing.List[Line]]


@pytest.fixture
def opened() -> typing.Iterator[Opened]:
    """Opens registers, in which nobody stays for longer than needed."""
    registers = []

    def opened(rules: Rules = Rules(), *, grants: int = 100, patience: float = 60, **more: typing.Any) -> Register:
        registers.append(Register(rules, grants, 1, patience=patience, stay=0.0, **more))
        return registers[-1]

    yield opened
    for register in registers:
        register.close()


@pytest.fixture
def come() -> typing.Iterator[Come]:
    """Connects peers to a register."""
    with contextlib.ExitStack() as lines:

        def come(register: Register, *names: str) -> list[Line]:
            peers = [lines.enter_context(contextlib.closing(Line(register.address, name))) for name in names]
            assert all(peer.hello() for peer in peers)
            return peers

        yield come


def node(number: int) -> str:
    return f"_c_0-lock-{number:010}"


def expect(register: Register, text: str) -> None:
    assert register.over.wait(10)
    assert any(text in violation for violation in register.violations), register.violations


def test_turns_are_counted_until_it_is_over(opened: Opened, come: Come) -> None:
    register = opened(grants=3)
    one, other = come(register, "one", "other")
    assert one.enter("x", node(1)) and one.leave()
    assert other.enter("x", node(2), 5) and other.leave()
    assert one.enter("x", node(3)) and not one.leave()
    assert register.over.is_set() and not register.violations and register.grants == {"one": 2, "other": 1}


LINGERS, PERMITS = Rules(lingers=True), Rules(limit=3, ordered=False)
# What peers do, one after the other, with the numbers of their nodes and their tokens; what is wrong with the last step, and with no
# other; the most that was inside at once; and how often somebody came in again with its node.
SCRIPTS = [
    # Only readers are inside together, also one that was a writer.
    (Rules(), "one enters x 1, other enters x 2", "other (x", 2, 0),
    (Rules(), "one enters r 1, other enters x 2", "other (x", 2, 0),
    (Rules(), "one enters x 1, other enters r 2", "other (r", 2, 0),
    (Rules(), "one enters x 1, one downs 1, other enters r 2, late enters x 3", "late (x", 3, 0),
    # A semaphore has its limit.
    (PERMITS, "one enters s:2 2, other enters s:1 1, late enters s:1 3", "late (s", 4, 0),
    # Nobody overtakes.
    (Rules(), "one enters x 5, one leaves, other enters x 4", "after number 5", 1, 0),
    (Rules(), "one enters r 5, one leaves, other enters x 4", "after number 5", 1, 0),
    (Rules(), "one enters x 5, one leaves, other enters r 4", "after number 5", 1, 0),
    # Tokens grow.
    (Rules(), "one enters x 1 7, one leaves, one enters x 2 7", "has token 7, after 7", 1, 0),
    # If nodes may linger, one may come in again with its own, until another was in.
    (Rules(), "one enters x 1 5, one leaves, one enters x 1 5", "came in after", 1, 0),
    (LINGERS, "one enters x 1 5, one leaves, one enters x 1 5, one leaves, other enters x 2 6, other leaves, one enters x 1 5", "came in after", 1, 1),
    (LINGERS, "one enters x 1 5, one leaves, other enters x 1 5", "came in after", 1, 0),
    (LINGERS, "one enters x 1 5, one leaves, one enters x 1 4", "has token 4, after 5", 1, 1),
]


@pytest.mark.parametrize(("rules", "script", "wrong", "peak", "again"), SCRIPTS)
def test_what_breaks_a_rule_is_noticed(opened: Opened, come: Come, rules: Rules, script: str, wrong: str, peak: int, again: int) -> None:
    register, lines = opened(rules), dict[str, Line]()
    for step in script.split(", "):
        assert not register.violations and not register.over.is_set()
        name, does, *rest = step.split()
        if name not in lines:
            (lines[name],) = come(register, name)
        if does == "enters":
            mode, number, *token = rest
            lines[name].enter(mode, node(int(number)), *map(int, token))
        elif does == "downs":
            lines[name].down(node(int(rest[0])))
        else:
            lines[name].leave()
    expect(register, wrong)
    assert (register.peak, register.again) == (peak, again)


def test_who_waits_too_long_is_noticed(opened: Opened, come: Come) -> None:
    register = opened(patience=0.1)
    lines = come(register, "one")
    expect(register, "one waits for more than")


def test_who_ends_by_itself_is_noticed(opened: Opened, come: Come) -> None:
    register = opened()
    (line,) = come(register, "one")
    line.close()
    expect(register, "one has ended by itself")


def test_a_lost_session_is_excused_where_nobody_could_know_better(opened: Opened, come: Come) -> None:
    register = opened(exists=lambda node: not node.endswith("1"))
    foreign, other, zklock = come(register, "foreign", "other", "zklock")
    foreign.enter("x", node(1))
    other.enter("x", node(2))
    assert foreign.leave() and other.leave()
    zklock.enter("x", node(11), 3)
    other.enter("x", node(12))
    assert zklock.lost("lease") and other.leave()
    zklock.enter("x", node(21), 4)
    held = time.monotonic()
    other.enter("x", node(22))
    assert zklock.leave(held) and other.leave()
    assert len(register.excused) == 3 and not register.violations
    # But a library with a lease must not report success.
    zklock.enter("x", node(31), 5)
    other.enter("x", node(32))
    zklock.leave(time.monotonic())
    expect(register, "held on to the end")


def test_libraries_that_do_not_see_each_other_are_caught(ground: Ground, path: str) -> None:
    sides = [foreign_side("curator", "mutex", count=1), foreign_side("kazoo", "mutex", count=2)]
    with pytest.raises(AssertionError, match="came in"):
        contend(ground, path, sides, kills=False)
