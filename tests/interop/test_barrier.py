"""Barriers with members of both libraries."""

from __future__ import annotations

import collections
import threading
import time
import typing

import zklock
from contest import Steps
from ground import Ground

Figures = typing.Callable[[str], None]
# The steps of each member in a round, with their times.
Said = dict[str, list[int]]

ROUNDS = 20
OURS, CURATORS = 3, 2
SOON = 60.0


def go_round(hosts: str, path: str, said: Said) -> None:
    with zklock.Client(hosts) as client:
        client.connect()
        for number in range(ROUNDS):
            said["comes"].append(time.monotonic_ns())
            with client.double_barrier(f"{path}/{number}", OURS + CURATORS, timeout=SOON):
                said["enters"].append(time.monotonic_ns())
                said["goes"].append(time.monotonic_ns())
            said["leaves"].append(time.monotonic_ns())


def test_double_barrier_with_curator(ground: Ground, path: str, figures: Figures) -> None:
    """Nobody enters before all have come, and none of ours leaves before all go. (One of Curator's may, because it does not
    wait for the last.)

    Each round has its own path: a leaving member of Curator's would wait for members of the next round, which wait for it.
    """
    hosts, begun = ground("servers"), time.monotonic()
    ours: list[Said] = [collections.defaultdict(list) for _ in range(OURS)]
    threads = [threading.Thread(target=go_round, args=(hosts, path, said), daemon=True) for said in ours]
    others = [Steps(hosts, "double", path, str(OURS + CURATORS), str(ROUNDS)) for _ in range(CURATORS)]
    for thread in threads:
        thread.start()
    members = [process.rest() for process in others] + ours
    for thread in threads:
        thread.join(SOON)
        assert not thread.is_alive()
    for number in range(ROUNDS):
        whats = ("comes", "enters", "goes", "leaves")
        came, entered, went, left = ([said[what][number] for said in members] for what in whats)
        assert max(came) < min(entered), f"round {number}: somebody entered before all had come"
        assert max(went) < min(left[CURATORS:]), f"round {number}: one of ours had left before all went"
    for number in range(ROUNDS):
        ground(f"delete-tree {path}/{number}")
    figures(f"{ROUNDS} rounds of {OURS} of ours and {CURATORS} of Curator's in {time.monotonic() - begun:.0f} s")


def test_barrier_with_curator(ground: Ground, path: str) -> None:
    """Each waits at the barrier that the other has set, and passes when the other removes it."""
    hosts, place = ground("servers"), f"{path}/barrier"
    with zklock.Client(hosts) as client:
        barrier = client.barrier(place)
        assert barrier.set()
        waiter = Steps(hosts, "wait", place)
        assert waiter.next() == "waits"
        removed = time.monotonic_ns()
        assert barrier.remove()
        assert waiter.rest()["passes"][0] > removed
        Steps(hosts, "set", place).rest()
        assert barrier.is_set() and not barrier.set()
        passes = threading.Thread(target=barrier.wait, daemon=True)
        passes.start()
        Steps(hosts, "remove", place).rest()
        passes.join(SOON)
        assert not passes.is_alive() and not barrier.is_set()
