"""The register itself: it accepts valid claims, and notices violations."""

from __future__ import annotations

import contextlib
import sys
import typing

import pytest
from contest import HERE, Side, contend
from ground import Ground
from register import Register, Rules

sys.path.append(str(HERE / "peers"))
from line import Line  # noqa: E402  It is a peer's.

LINGERS = Rules(lingers=True)


@contextlib.contextmanager
def opened(
    *names: str, rules: Rules = Rules(), grants: int = 100, patience: float = 60, **more: typing.Any
) -> typing.Iterator[tuple[Register, dict[str, Line]]]:
    """A register in which nobody stays for longer than needed, and peers of these names."""
    with Register(rules, grants, 1, patience=patience, stay=0.0, **more) as register, contextlib.ExitStack() as lines:
        peers = {name: lines.enter_context(contextlib.closing(Line(register.address, name))) for name in names}
        assert all(peer.hello() for peer in peers.values())
        yield register, peers


def node(number: object) -> str:
    return f"_c_0-lock-{number:0>10}"


def expect(register: Register, text: str) -> None:
    assert register.over.wait(10)
    assert any(text in violation for violation in register.violations), register.violations


def test_turns_are_counted_until_it_is_over() -> None:
    with opened("one", "other", rules=LINGERS, grants=3) as (register, peers):
        one, other = peers.values()
        assert one.enter("x", node(1), 5) and one.leave()
        assert one.enter("x", node(1), 5) and one.leave()
        other.enter("x", node(3), 6)
        assert not other.leave()
        assert register.over.is_set() and not register.violations
        assert register.grants == {"one": 2, "other": 1} and register.again == 1


# What peers say, of which the last is a violation; how much was inside before it, and what the register says of it.
VIOLATIONS = [
    # Two are inside at once. Only readers may be, also one that was a writer.
    (Rules(), "one enter x 1; other enter x 2", 1, "other (x"),
    (Rules(), "one enter r 1; other enter x 2", 1, "other (x"),
    (Rules(), "one enter x 1; other enter r 2", 1, "other (r"),
    (Rules(), "one enter x 1; one down 1; other enter r 2; late enter x 3", 2, "late (x"),
    # A semaphore has its limit.
    (Rules(limit=3, ordered=False), "one enter s:2 2; other enter s:1 1; late enter s:1 3", 3, "late (s"),
    # One may come in again with its node, its own and no smaller token, until another was in.
    (Rules(), "one enter x 1 5; one leave; one enter x 1 5", 1, "came in after"),
    (LINGERS, "one enter x 1 5; one leave; other enter x 2 6; other leave; one enter x 1 5", 1, "came in after"),
    (LINGERS, "one enter x 1 5; one leave; other enter x 1 5", 1, "came in after"),
    (LINGERS, "one enter x 1 5; one leave; one enter x 1 4", 1, "has token 4, after 5"),
    # One overtakes.
    (Rules(), "one enter x 5; one leave; other enter x 4", 1, "after number 5"),
    (Rules(), "one enter r 5; one leave; other enter x 4", 1, "after number 5"),
    (Rules(), "one enter x 5; one leave; other enter r 4", 1, "after number 5"),
    (Rules(), "one enter x 1 7; one leave; one enter x 2 7", 1, "has token 7, after 7"),
    (Rules(), "one enter x 1; one close", 1, "one has ended by itself"),
]


@pytest.mark.parametrize(("rules", "said", "peak", "violation"), VIOLATIONS)
def test_a_violation_is_noticed_and_nothing_before_it(rules: Rules, said: str, peak: int, violation: str) -> None:
    with opened("one", "other", "late", rules=rules) as (register, peers):
        for step in said.split("; "):
            assert not register.violations
            before = register.peak
            name, word, *rest = step.split()
            if word == "enter":
                peers[name].enter(rest[0], node(rest[1]), *map(int, rest[2:]))
            else:
                getattr(peers[name], word)(*map(node, rest))
        expect(register, violation)
        assert before == peak


def test_who_waits_too_long_is_noticed() -> None:
    with opened("one", patience=0.1) as (register, _):
        expect(register, "one waits for more than")


def test_a_lost_session_is_excused_where_nobody_could_know_better() -> None:
    with opened("foreign", "other", "zklock", exists=lambda node: not node.endswith("1")) as (register, peers):
        foreign, other, zklock = peers.values()
        foreign.enter("x", node(1))
        other.enter("x", node(2))
        assert foreign.leave() and other.leave()
        zklock.enter("x", node(11), 3)
        other.enter("x", node(12))
        assert zklock.lost("lease") and other.leave()
        assert len(register.excused) == 2 and not register.violations
        # But a library with a lease must not report success.
        zklock.enter("x", node(21), 4)
        other.enter("x", node(22))
        zklock.leave()
        expect(register, "held on to the end")


def test_libraries_that_do_not_see_each_other_are_caught(ground: Ground, path: str) -> None:
    with pytest.raises(AssertionError, match="came in"):
        contend(ground, path, [Side("curator", "mutex", count=1), Side("kazoo", "mutex")], kills=False)
