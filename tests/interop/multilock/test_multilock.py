"""Sets of locks, with the same plan: zklock's never deadlock, and the deadlocks of Curator's InterProcessMultiLock are
counted. Only with ZKLOCK_LONG, because it takes two minutes."""

from __future__ import annotations

import concurrent.futures
import os
import random
import subprocess
import time
import typing

import pytest
import zklock
from curators import command
from ground import Ground

pytestmark = [
    pytest.mark.skipif(not os.environ.get("ZKLOCK_LONG"), reason="takes longer than CI has time for"),
    pytest.mark.timeout(300),
]

CLIENTS, PATHS, SETS = 50, 10, 300
SECONDS = 60

Plan = typing.List[typing.List[typing.List[int]]]


def _plan() -> Plan:
    """For each client, sets of one to four paths, in any order."""
    chance = random.Random(5)
    return [[chance.sample(range(PATHS), chance.randint(1, 4)) for _ in range(SETS)] for _ in range(CLIENTS)]


class _Paths:
    """The holder of each path."""

    def __init__(self) -> None:
        self._inside: dict[int, int] = {}
        self.sets = 0

    def enter(self, client: int, paths: list[int]) -> None:
        for path in paths:
            other = self._inside.setdefault(path, client)
            assert other == client, f"{client} and {other} both hold {path}"

    def leave(self, paths: list[int]) -> None:
        for path in paths:
            del self._inside[path]
        self.sets += 1


def _contend(hosts: str, client: int, sets: list[list[int]], inside: _Paths, until: float) -> None:
    with zklock.Client(hosts) as zk:
        at = 0
        while time.monotonic() < until:
            paths = sets[at % SETS]
            # Longer than all the others take together.
            with zk.all([zk.mutex(f"/sets/zklock/{path}") for path in paths], timeout=30):
                inside.enter(client, paths)
                inside.leave(paths)
            at += 1


def _zklock(hosts: str, plan: Plan) -> int:
    inside, until = _Paths(), time.monotonic() + SECONDS
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(_contend, hosts, *it, inside, until) for it in enumerate(plan)]:
            done.result()
    return inside.sets


def _curator(hosts: str, plan: Plan) -> dict[str, int]:
    lines = "\n".join(" ".join(",".join(map(str, paths)) for paths in sets) for sets in plan)
    words = [*command("MultiLockPlan"), hosts, "/sets/curator", str(SECONDS)]
    done = subprocess.run(words, input=lines, capture_output=True, text=True, timeout=SECONDS + 60, check=True)
    return {name: int(value) for name, _, value in (word.partition("=") for word in done.stdout.split())}


def test_sets_of_zklock_do_not_deadlock_where_those_of_curator_do(
    ground: Ground, figures: typing.Callable[[str], None]
) -> None:
    hosts, plan = ground("servers"), _plan()
    theirs = _curator(hosts, plan)
    ours = _zklock(hosts, plan)
    figures(
        f"in {SECONDS} s zklock {ours} sets and no deadlock; Curator {theirs['sets']} sets and {theirs['deadlocks']} deadlocks, "
        f"the first after {theirs['first_ms']} ms, each ended from outside, of up to {theirs['largest']} clients"
    )
    assert ours > SECONDS
    # Otherwise the plan would show nothing.
    assert theirs["deadlocks"] > 0, theirs
