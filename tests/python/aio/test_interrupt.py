"""Ctrl-C while ``asyncio.run`` waits: it ends that at once, and leaves no node. Other signals cancel a task: see test_cancel.py."""

from __future__ import annotations

import signal

import pytest
from ground import Ground
from guests.programs import Start
from punctual import not_later

import zklock

WAITS = """
import asyncio, sys, zklock

async def main():
    # A session that outlives the test: what is gone was deleted.
    async with zklock.Client(sys.argv[1], session_timeout=20) as zk:
        async with zk.mutex(sys.argv[2]):
            print("holds", flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""

@pytest.mark.parametrize("holds", [False, True])
def test_an_interrupted_program_ends_its_wait_and_leaves_no_node(
    start: Start, hosts: str, other: zklock.Client, path: str, ground: Ground, holds: bool
) -> None:
    lock = other.mutex(path)
    if not holds:
        lock.acquire()
    program = start(WAITS, hosts, path)
    program.expect("holds") if holds else ground.expect_children(path, 2)
    program.signal(signal.SIGINT)
    status, out, err, seconds = program.finish()
    # The wait ends in milliseconds, but the interpreter takes longer.
    not_later(seconds, 5)
    assert status == -signal.SIGINT and out == "" and err.rstrip().endswith("KeyboardInterrupt"), err
    # There was no other exception, and no warning.
    assert "Warning" not in err and "zklock." not in err, err
    # Long before its session could time out.
    ground.expect_children(path, 0 if holds else 1, within=5)
    if not holds:
        lock.release()
