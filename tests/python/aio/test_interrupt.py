"""Ctrl-C and other signals while ``asyncio.run`` waits: they end it at once, and leave no node."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys
import time
import typing

import pytest
from ground import Ground
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

WAITS_WITHOUT_CLOSING = """
import asyncio, sys, zklock

zk = zklock.Client(sys.argv[1], session_timeout=20).aio

async def main():
    try:
        await asyncio.gather(*(zk.mutex(sys.argv[2] + part).acquire() for part in ("", "/a", "/b")))
        print("holds", flush=True)
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("cancelled", zk.mutex(sys.argv[2]).locked(), flush=True)
        raise

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


@pytest.fixture
def start(
    tmp_path: pathlib.Path, hosts: str, path: str
) -> typing.Iterator[typing.Callable[[str], subprocess.Popen[str]]]:
    started = []

    def start(text: str) -> subprocess.Popen[str]:
        program = tmp_path / "program.py"
        program.write_text(text)
        command = [sys.executable, "-X", "faulthandler", "-W", "error", str(program), hosts, path]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def interrupted(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
    process.send_signal(number)
    begun = time.monotonic()
    out, err = process.communicate(timeout=30)
    # The wait ends in milliseconds, but the interpreter takes longer.
    not_later(time.monotonic() - begun, 5)
    return process.returncode, out, err


def test_an_interrupted_wait_leaves_no_node(
    start: typing.Callable[[str], subprocess.Popen[str]], other: zklock.Client, path: str, ground: Ground
) -> None:
    with other.mutex(path):
        process = start(WAITS)
        ground.expect_children(path, 2)
        status, out, err = interrupted(process)
        assert status == -signal.SIGINT and out == "" and err.rstrip().endswith("KeyboardInterrupt"), err
        # There was no other exception, and no warning.
        assert "Warning" not in err and "zklock." not in err, err
        ground.expect_children(path, 1, within=2)


def test_an_interrupted_holder_leaves_no_node(
    start: typing.Callable[[str], subprocess.Popen[str]], path: str, ground: Ground
) -> None:
    process = start(WAITS)
    assert process.stdout is not None and process.stdout.readline() == "holds\n"
    assert len(ground.children(path)) == 1
    status, _, err = interrupted(process)
    assert status == -signal.SIGINT and err.rstrip().endswith("KeyboardInterrupt"), err
    ground.expect_children(path, 0, within=2)


def test_an_interrupted_gathering_leaves_no_node_though_nobody_closes(
    start: typing.Callable[[str], subprocess.Popen[str]], other: zklock.Client, path: str, ground: Ground
) -> None:
    with other.mutex(f"{path}/b"):
        process = start(WAITS_WITHOUT_CLOSING)
        ground.expect_children(f"{path}/a", 1)
        ground.expect_children(f"{path}/b", 2)
        status, out, err = interrupted(process)
        assert status == -signal.SIGINT and out.startswith("cancelled"), (out, err)
        ground.expect_children(f"{path}/a", 0, within=2)
        ground.expect_children(f"{path}/b", 1, within=2)
    ground("delete-tree " + path)


@pytest.mark.parametrize("holds", [False, True])
def test_a_signal_that_the_loop_handles_ends_the_wait(
    start: typing.Callable[[str], subprocess.Popen[str]], other: zklock.Client, path: str, ground: Ground, holds: bool
) -> None:
    lock = other.mutex(path)
    if not holds:
        lock.acquire()
    process = start(HANDLES)
    if holds:
        assert process.stdout is not None and process.stdout.readline() == "holds\n"
    else:
        ground.expect_children(path, 2)
    assert interrupted(process, signal.SIGTERM) == (0, "cancelled False\n", "")
    ground.expect_children(path, 0 if holds else 1, within=2)
    if not holds:
        lock.release()
