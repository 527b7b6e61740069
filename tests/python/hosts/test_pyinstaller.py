"""PyInstaller: a frozen program has only the modules whose imports can be seen without running it."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import typing

# It makes the native module use all that it imports: the log, a callback, an event loop, exceptions and values.
PROGRAM = """
import asyncio, logging, sys, threading
import zklock, zklock.testing

logging.basicConfig(level=logging.DEBUG, filename="log")


async def acquire(zk):
    async with zk.mutex("/a") as hold:
        return await hold.run(asyncio.sleep(0, hold.gate(abs)(hold.token)))


with zklock.testing.Server() as server, zklock.Client(server.hosts) as zk:
    token = asyncio.run(acquire(zk))
    reasons, lost = [], threading.Event()
    hold = zk.mutex("/a").hold()
    hold.on_lost(lambda reason: (reasons.append(reason), lost.set()))
    zk.mutex("/a").break_lock()
    assert lost.wait(30) and reasons == [zklock.LossReason.NODE_DELETED] and hold.token > token
    try:
        hold.release()
    except zklock.LockLost:
        print("frozen", sys.frozen)
"""


def run(folder: pathlib.Path, *words: typing.Union[str, pathlib.Path]) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_frozen_program_has_all_that_it_needs(tmp_path: pathlib.Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    run(tmp_path, sys.executable, "-m", "PyInstaller", "--log-level", "ERROR", "program.py")
    assert run(tmp_path, tmp_path / "dist/program/program") == "frozen True\n"
    assert "acquire begins" in (tmp_path / "log").read_text()
