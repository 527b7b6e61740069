"""A process of stale.py, with several holders, each of which goes from lock to lock and writes as long as it believes to hold one.

It gets what to do in JSON, and writes a line of JSON at its end. In a file that the parent reads, each holder says what it is doing, and
in the second half whether a fence has refused it.
"""

from __future__ import annotations

import collections
import contextlib
import json
import mmap
import random
import sys
import threading
import time
import typing

import sinks

import zklock

ELSEWHERE, BETWEEN, WITHIN = range(3)
"""What a holder does: anything else, or between its look and its write, or within the write's transaction."""
CONDITIONS = ("fence", "gate", "neither")
# Fenced writes are what this is about; the others show that there was danger.
WEIGHTS = (2, 1, 1)
ROUND = 5.0
NEEDS = 0.05
PAUSES = (0.0, 0.001, 0.004)


class Holder(threading.Thread):
    def __init__(self, number: int, client: zklock.Client, where: dict[str, typing.Any], states: mmap.mmap) -> None:
        super().__init__(daemon=True)
        self._number, self._client, self._states = number, client, states
        self._dice = random.Random(where["seed"] + number)
        self._sinks = sinks.connected(where)
        self.ended: collections.Counter[str] = collections.Counter()

    def run(self) -> None:
        while not is_over.is_set():
            # All holders of all processes are at one sink at a time, so that somebody waits for each lock.
            kind = sinks.KINDS[int(time.monotonic() / ROUND) % len(sinks.KINDS)]
            (condition,) = self._dice.choices(CONDITIONS, WEIGHTS)
            try:
                with self._client.mutex(f"/stale/{kind}-{condition}", timeout=2) as hold:
                    self._work(f"{kind}-{condition}", hold, kind, condition)
            except zklock.Error as error:
                if isinstance(error, zklock.StaleToken):
                    self._states[len(self._states) // 2 + self._number] = 1
                self.ended[f"{condition}: {type(error).__name__}"] += 1
            self._says(ELSEWHERE)

    def _work(self, name: str, hold: zklock.Hold, kind: str, condition: str) -> None:
        for _ in range(self._dice.randrange(1, 40)):
            if condition == "gate":
                hold.ensure(NEEDS)
            self._says(BETWEEN)
            time.sleep(self._dice.choice(PAUSES))
            self._sinks[kind].write(name, hold, condition == "fence", self._within)

    def _within(self) -> None:
        self._says(WITHIN)
        time.sleep(self._dice.choice(PAUSES))

    def _says(self, state: int) -> None:
        self._states[self._number] = state


def main() -> None:
    where = json.loads(sys.argv[1])
    sinks.keep_journal()
    ended: collections.Counter[str] = collections.Counter()
    with open(where["states"], "r+b") as file, mmap.mmap(file.fileno(), 0) as states, contextlib.ExitStack() as clients:
        client = clients.enter_context(zklock.Client(where["zookeeper"], session_timeout=where["session"], try_timeout=1))
        holders = [Holder(number, client, where, states) for number in where["holders"]]
        for holder in holders:
            holder.start()
        sys.stdin.read()
        is_over.set()
        for holder in holders:
            holder.join(60)
            assert not holder.is_alive(), "a holder does not end"
            ended.update(holder.ended)
    print(json.dumps(ended))


is_over = threading.Event()
if __name__ == "__main__":
    main()
