"""A peer with kazoo."""

from __future__ import annotations

import argparse
import logging
import random
import time
import typing

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from line import Line, take_rest, words

# kazoo has no types.
Lock = typing.Any


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--extra-lock-patterns", action="append", default=[])


def main() -> None:
    given = words(options)
    logging.basicConfig(level=logging.ERROR)
    line = Line(given.register, given.name)
    client = KazooClient(given.connect, timeout=given.session_ms / 1000)
    losses: list[str] = []
    client.add_listener(lambda state: losses.append(state) if state != KazooState.CONNECTED else None)
    client.start()
    goes_on = line.hello()
    while goes_on:
        mode, lock = choose(client, given)
        try:
            lock.acquire()
            before = len(losses)
            line.enter(mode, lock.node)
            goes_on = line.leave() if len(losses) == before else line.lost(losses[-1])
            lock.release()
            take_rest(given)
        except (KazooException, KazooTimeoutError) as error:
            line.note(f"{type(error).__name__}: {error}")
            time.sleep(0.05)
    client.stop()
    client.close()


def choose(client: KazooClient, given: argparse.Namespace) -> tuple[str, Lock]:
    kind = given.kind
    if kind == "mutex":
        return "x", client.Lock(given.path, given.name, extra_lock_patterns=given.extra_lock_patterns)
    if kind == "rw" and random.randrange(4) == 0:
        return "x", client.WriteLock(given.path, given.name)
    if kind == "rw":
        return "r", client.ReadLock(given.path, given.name)
    raise SystemExit(f"no kind: {kind}")


if __name__ == "__main__":
    main()
