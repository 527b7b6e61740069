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


def test_two_inside_at_once_are_noticed(opened: Opened, come: Come) -> None:
    for modes in ("xx", "rx", "xr"):
        register = opened()
        one, other = come(register, "one", "other")
        one.enter(modes[0], node(1))
        other.enter(modes[1], node(2))
        expect(register, "other (" + modes[1])


def test_readers_may_be_inside_together_also_one_that_was_a_writer(opened: Opened, come: Come) -> None:
    register = opened()
    one, other, late = come(register, "one", "other", "late")
    one.enter("x", node(1))
    one.down(node(1))
    other.enter("r", node(2))
    assert register.peak == 2 and not register.violations
    late.enter("x", node(3))
    expect(register, "late (x")


def test_one_may_come_in_again_with_its_node_until_another_was_in(opened: Opened, come: Come) -> None:
    for rules, other_comes, text in ((Rules(), False, "came in after"), (Rules(lingers=True), True, "came in after")):
        register = opened(rules)
        one, other = come(register, "one", "other")
        for _ in range(1 + rules.lingers):
            assert one.enter("x", node(1), 5) and one.leave()
        if other_comes:
            assert register.again == 1 and not register.violations
            assert other.enter("x", node(2), 6) and other.leave()
        one.enter("x", node(1), 5)
        expect(register, text)
    # A node of another peer and a smaller token are violations.
    for name, token, text in (("other", 5, "came in after"), ("one", 4, "has token 4, after 5")):
        register = opened(Rules(lingers=True))
        lines = come(register, "one", "other")
        assert lines[0].enter("x", node(1), 5) and lines[0].leave()
        next(line for line in lines if line.name == name).enter("x", node(1), token)
        expect(register, text)


def test_a_semaphore_has_its_limit(opened: Opened, come: Come) -> None:
    register = opened(Rules(limit=3, ordered=False))
    one, other, late = come(register, "one", "other", "late")
    one.enter("s:2", node(2))
    other.enter("s:1", node(1))
    assert register.peak == 3 and not register.violations
    late.enter("s:1", node(3))
    expect(register, "late (s")


def test_who_overtakes_is_noticed(opened: Opened, come: Come) -> None:
    for modes in ("xx", "rx", "xr"):
        register = opened()
        one, other = come(register, "one", "other")
        one.enter(modes[0], node(5))
        one.leave()
        other.enter(modes[1], node(4))
        expect(register, "after number 5")


def test_a_token_that_does_not_grow_is_noticed(opened: Opened, come: Come) -> None:
    register = opened()
    lines = come(register, "one")
    lines[0].enter("x", node(1), 7)
    lines[0].leave()
    lines[0].enter("x", node(2), 7)
    expect(register, "has token 7, after 7")


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
