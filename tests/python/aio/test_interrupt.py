"""Ctrl-C ends a program that waits in ``asyncio.run`` or in a blocking call at once, and leaves no node.

Other signals cancel a task: see test_cancel.py. For what else an interrupted call leaves see guests/test_signals.py.
"""

from __future__ import annotations

import signal

import pytest
from ground import Ground
from guests.programs import BEGIN, Start
from punctual import not_later

import zklock

# A session that outlives the test: what is gone was deleted.
PROGRAMS = {
    "asyncio": """
async def main():
    async with zklock.Client(hosts, session_timeout=20) as zk:
        async with zk.mutex(path):
            say("holds")
            await asyncio.Event().wait()

asyncio.run(main())
""",
    "threads": """
with zklock.Client(hosts, session_timeout=20) as zk:
    with zk.mutex(path) as hold:
        say("holds")
        hold.lost.wait()
""",
}


@pytest.mark.parametrize("face", PROGRAMS)
@pytest.mark.parametrize("holds", [False, True])
def test_an_interrupted_program_ends_its_wait_and_leaves_no_node(
    start: Start, hosts: str, other: zklock.Client, path: str, ground: Ground, face: str, holds: bool
) -> None:
    lock = other.mutex(path)
    if not holds:
        lock.acquire()
    program = start(BEGIN + PROGRAMS[face], hosts, path)
    program.expect("holds") if holds else ground.expect_children(path, 2)
    status, out, err, seconds = program.finish(by=signal.SIGINT)
    # The wait ends in milliseconds, but the interpreter takes longer.
    not_later(seconds, 5)
    assert status == -signal.SIGINT and out == "" and err.rstrip().endswith("KeyboardInterrupt"), err
    # There was no other exception, and no warning.
    assert "Warning" not in err and "zklock." not in err, err
    # Long before its session could time out.
    ground.expect_children(path, 0 if holds else 1, within=5)
    if not holds:
        lock.release()
