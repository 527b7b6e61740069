"""A peer with zklock's Python face."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import time
import typing

from line import Line, take_rest, words

import zklock


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--naming")
    parser.add_argument("--foreign")
    parser.add_argument("--linger", type=float)


def main() -> None:
    given = words(options)
    line = Line(given.register, given.name)
    extra = {name: value for name in ("naming", "foreign", "linger") if (value := getattr(given, name))}
    with zklock.Client(given.connect, session_timeout=given.session_ms / 1000, identity=given.name) as client:
        client.connect()
        goes_on = line.hello()
        choose = chooser(client, given.kind, given.path, extra)
        while goes_on:
            mode, turn = choose()
            try:
                goes_on = turn(line, mode)
                take_rest(given)
            except zklock.ForeignContender:
                raise
            except zklock.Error as error:
                line.note(f"{type(error).__name__}: {error}")
                time.sleep(0.05)


Turn = typing.Callable[[Line, str], bool]
Choose = typing.Callable[[], "tuple[str, Turn]"]


def chooser(client: zklock.Client, kind: str, path: str, extra: dict[str, typing.Any]) -> Choose:
    """Returns the mode and the lock of the next turn."""
    name, *numbers = kind.split(":")
    if name == "mutex":
        return always("x", client.mutex(path, **extra))
    if name == "election":
        return always("x", client.election(path, **extra))
    if name == "semaphore-mutex":
        return always("x", client.semaphore(path, 1, **extra))
    if name == "semaphore":
        limit, permits = int(numbers[0]), int(numbers[1]) if numbers[1:] else 1
        return always(f"s:{permits}", client.semaphore(path, limit, permits=permits, **extra))
    read, write = client.read_lock(path, **extra), client.write_lock(path, **extra)
    if name == "rw":
        return lambda: ("x", simply(write)) if random.randrange(4) == 0 else ("r", simply(read))
    if name == "downgrade":
        writes = client.write_lock(path, reentrant=True, **extra)
        turns = itertools.cycle([("x", downgraded(writes, read)), ("r", simply(read))])
        return lambda: next(turns)
    raise SystemExit(f"no kind: {kind}")


def always(mode: str, lock: zklock.Lock) -> Choose:
    return lambda: (mode, simply(lock))


def simply(lock: zklock.Lock) -> Turn:
    def turn(line: Line, mode: str) -> bool:
        hold = lock.hold()
        line.enter(mode, hold.node, hold.token)
        return leave(line, hold)

    return turn


def downgraded(write: zklock.Lock, read: zklock.Lock) -> Turn:
    def turn(line: Line, mode: str) -> bool:
        writing = write.hold()
        line.enter(mode, writing.node, writing.token)
        try:
            reading = read.hold()
        except (zklock.LockLost, zklock.Timeout, zklock.Unreachable):
            return leave(line, writing)
        now = time.monotonic()
        if writing.valid_for() > 0:
            line.down(reading.node, now)
            first, last = writing, reading
        else:
            # The readers' side was free again, and is another hold.
            first, last = reading, writing
        with contextlib.suppress(zklock.LockLost, zklock.Timeout):
            first.release()
        return leave(line, last)

    return turn


def leave(line: Line, hold: zklock.Hold) -> bool:
    """Reports that it was inside all the time, if that is certain, and releases."""
    # The machine may stand still before the register hears of it.
    now = time.monotonic()
    goes_on = line.leave(now) if hold.valid_for() > 0 else line.lost(hold.state)
    with contextlib.suppress(zklock.LockLost):
        hold.release()
    return goes_on


if __name__ == "__main__":
    main()
