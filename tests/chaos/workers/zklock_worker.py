"""zklock's Python face under chaos: see ../README.md for its arguments and its lines."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time

import zklock
from line import PATIENCE, Register, drawn

LINGER = 2.0


def lock_of(client: zklock.Client, word: str) -> zklock.Lock:
    """The lock of a word such as ``semaphore=2:/a``."""
    kind, path = word.split(":", 1)
    if kind == "mutex":
        return client.mutex(path)
    if kind == "lingering":
        return client.mutex(path, linger=LINGER)
    if kind == "read":
        return client.read_lock(path)
    if kind == "write":
        return client.write_lock(path)
    if kind == "exclusive":
        return client.single_node(path)
    name, _, limit = kind.partition("=")
    if name == "semaphore":
        return client.semaphore(path, int(limit))
    raise SystemExit(f"no kind: {kind}")


class Turn:
    """One turn: acquires a lock, claims it and releases it."""

    def __init__(self, register: Register, number: int, tries: bool, times: tuple[float, float]) -> None:
        self._register, self._number, self._tries, self._times = register, number, tries, times

    def take(self, word: str, lock: zklock.Lock) -> None:
        self._say("want", word, time.monotonic_ns())
        try:
            hold = lock.hold(timeout=0 if self._tries else PATIENCE)
        except zklock.Timeout:
            self._say("gave", time.monotonic_ns(), "busy" if self._tries else "timeout")
        except zklock.Error as error:
            self._say("gave", time.monotonic_ns(), type(error).__name__)
            self._register.over.wait(0.1)
        else:
            self._claim(hold, *self._times)
            # The answer does not matter here: the claim is over.
            with contextlib.suppress(zklock.Error):
                hold.release()
            self._say("free", time.monotonic_ns())

    def _claim(self, hold: zklock.Hold, time_to_hold: float, step: float) -> None:
        token, node = hold.token, hold.node
        # Here the clock is read after the check, so that the claim does not begin before the hold.
        if hold.valid_for() <= 0:
            return self._lose(hold)
        self._say("have", token, node, time.monotonic_ns())
        end = time.monotonic() + time_to_hold
        is_last = False
        named = 0
        while not is_last:
            is_last = time.monotonic() >= end or self._register.over.is_set()
            # From here on it is read before the check, so that the claim does not last longer than the hold.
            now = time.monotonic_ns()
            valid_for = hold.valid_for()
            if valid_for <= 0:
                self._rely(hold, named)
                return self._lose(hold)
            named = max(named, now + int(valid_for * 1e9))
            self._say("done" if is_last else "still", now)
            if not is_last:
                self._register.over.wait(step)

    def _rely(self, hold: zklock.Hold, named: int) -> None:
        """Relies on what was named to its end, as a program does that looks once and then works. Only an operator may end it sooner."""
        if hold.lost.reason in (zklock.LossReason.NODE_DELETED, zklock.LossReason.SESSION_EXPIRED):
            return
        self._register.over.wait(max(0.0, (named - time.monotonic_ns()) / 1e9))
        self._say("still", min(named, time.monotonic_ns()))

    def _lose(self, hold: zklock.Hold) -> None:
        # It may be at risk first: its lease is over, but the servers have not yet said what became of it.
        why = (hold.lost.reason or hold.state).name
        self._say("lost", time.monotonic_ns(), why.title().replace("_", ""))

    def _say(self, word: str, *rest: object) -> None:
        self._register.say(word, self._number, *rest)


def work(client: zklock.Client, register: Register, chance: random.Random, times: str, words: list[str]) -> None:
    locks = [(word, lock_of(client, word)) for word in words]
    number = 0
    while not register.over.is_set():
        number += 1
        word, lock = chance.choice(locks)
        turn = Turn(register, number, chance.randrange(5) == 0, drawn(chance, times))
        turn.take(word, lock)
        if chance.randrange(3) == 0:
            register.over.wait(chance.uniform(0, 0.02))


def main() -> None:
    hosts, session_ms, address, name, seed, times, *words = sys.argv[1:]
    # It connects on first use, and tries as often as that takes.
    client = zklock.Client(hosts, session_timeout=int(session_ms) / 1000, identity=name)
    register = Register(address)
    register.say("hello", name, os.getpid())
    try:
        work(client, register, random.Random(seed), times, words)
    finally:
        with contextlib.suppress(zklock.Error):
            client.close()


if __name__ == "__main__":
    main()
