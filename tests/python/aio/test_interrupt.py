"""Ctrl-C and other signals while ``asyncio.run`` waits: they end it at once, and leave no node."""

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

HANDLES = """
import asyncio, signal, sys, zklock

async def main():
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    async with zklock.Client(sys.argv[1], session_timeout=20) as zk:
        try:
            async with zk.mutex(sys.argv[2]):
                print("holds", flush=True)
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("cancelled", zk.mutex(sys.argv[2]).locked(), flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("text", [WAITS, HANDLES], ids=["by Ctrl-C", "by a signal that the loop handles"])
def test_an_interrupted_program_ends_its_wait_and_leaves_no_node(
    start: Start, hosts: str, other: zklock.Client, path: str, ground: Ground, text: str, holds: bool
) -> None:
    lock = other.mutex(path)
    if not holds:
        lock.acquire()
    program = start(text, hosts, path)
    program.expect("holds") if holds else ground.expect_children(path, 2)
    program.signal(signal.SIGINT if text == WAITS else signal.SIGTERM)
    status, out, err, seconds = program.finish()
    # The wait ends in milliseconds, but the interpreter takes longer.
    not_later(seconds, 5)
    if text == WAITS:
        assert status == -signal.SIGINT and out == "" and err.rstrip().endswith("KeyboardInterrupt"), err
        # There was no other exception, and no warning.
        assert "Warning" not in err and "zklock." not in err, err
    else:
        assert (status, out, err) == (0, "cancelled False", "")
    # Long before its session could time out.
    ground.expect_children(path, 0 if holds else 1, within=5)
    if not holds:
        lock.release()
