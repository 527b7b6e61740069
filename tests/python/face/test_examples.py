"""The examples do what they promise."""

from __future__ import annotations

import os
import pathlib
import queue
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import typing

import pytest
from ground import Ground
from scenes import expire

import zklock

EXAMPLES = pathlib.Path(__file__).parents[3] / "zklock-py/examples"


class Running:
    """A running example, and its output, line by line."""

    def __init__(self, name: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))

    def line(self, within: float = 20) -> str:
        """The next line."""
        return self._lines.get(timeout=within)

    def said(self) -> list[str]:
        """The lines that nobody has read."""
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        return lines

    def end(self, by: signal.Signals | None = None) -> tuple[int, str]:
        """Waits for the end, after this signal. Returns the status and the text on stderr."""
        if by is not None:
            self._process.send_signal(by)
        assert self._process.stderr is not None
        err = self._process.stderr.read()
        status = self._process.wait(timeout=20)
        self._reader.join()
        self._process.stderr.close()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status, err


@pytest.fixture
def start() -> typing.Iterator[typing.Callable[..., Running]]:
    """Starts examples, which end with the test."""
    started: list[Running] = []

    def start(name: str, *arguments: str) -> Running:
        started.append(Running(name, *arguments))
        return started[-1]

    yield start
    for example in started:
        if example._process.returncode is None:
            example.end(by=signal.SIGKILL)


Start = typing.Callable[..., Running]


def test_every_example_is_tested_and_short() -> None:
    own = pathlib.Path(__file__).read_text()
    for example in EXAMPLES.glob("*.py"):
        assert f'"{example.name}"' in own
        assert len(example.read_text().splitlines()) < 80


def test_script_runs_where_the_lock_is_free(start: Start, hosts: str) -> None:
    script = start("script.py", hosts)
    assert re.match(r"writing the report, with token \d+$", script.line())
    assert re.match(r"written, and the lock was ours for \d\.\d s more$", script.line())
    assert script.end() == (0, "")


def test_script_says_who_else_writes(start: Start, hosts: str) -> None:
    with zklock.Client(hosts, identity="the night shift") as zk, zk.mutex("/locks/report"):
        script = start("script.py", hosts)
        assert script.end() == (1, "somebody else is writing it: the night shift\n")
    assert script.said() == []


@pytest.mark.parametrize(("by", "status"), [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_one_worker_runs_and_the_other_skips_and_takes_over(
    start: Start, hosts: str, ground: Ground, by: signal.Signals, status: int
) -> None:
    first = start("only_one_worker.py", hosts)
    assert first.line() == f"{first.pid} runs clean_up"
    second = start("only_one_worker.py", hosts)
    for _ in range(3):
        assert second.line() == f"{second.pid} skips clean_up"
        assert first.line() == f"{first.pid} runs clean_up"
    # Its end frees the lock, or that of its session if it is killed.
    assert first.end(by=by) == (status, "")
    while (line := second.line()) == f"{second.pid} skips clean_up":
        pass
    assert line == f"{second.pid} runs clean_up"
    assert second.end(by=signal.SIGINT) == (0, "")
    ground.expect_children("/locks/clean-up", 0)


def test_service_stops_its_work_when_its_session_expires(start: Start, ground: Ground) -> None:
    proxy = ground.proxy("1")
    service = start("asyncio_service.py", proxy.hosts)
    working = service.line()
    old = re.match(r"working with token (\d+)$", working)
    assert old
    expire(proxy)
    while (line := service.line()) == working:
        pass
    assert line == f"work with token {old[1]} has stopped"
    assert service.line().endswith("; back to the queue")
    # It gets the lock again, in the next session.
    new = re.match(r"working with token (\d+)$", service.line())
    assert new and int(new[1]) > int(old[1])
    status, err = service.end(by=signal.SIGINT)
    assert status == 0 and "Traceback" not in err
    # The old work has not gone on.
    assert working not in service.said()
    ground.expect_children("/locks/service", 0)


def test_service_hands_over_when_it_is_stopped(start: Start, hosts: str, ground: Ground) -> None:
    first = start("asyncio_service.py", hosts)
    assert first.line().startswith("working")
    second = start("asyncio_service.py", hosts)
    ground.expect_children("/locks/service", 2)
    assert second.said() == []
    assert first.end(by=signal.SIGINT) == (0, "")
    assert first.said()[-1].endswith("has stopped")
    assert second.line().startswith("working")
    assert second.end(by=signal.SIGINT) == (0, "")
    ground.expect_children("/locks/service", 0)


def test_stale_token_is_refused(start: Start, hosts: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "accounts"
    example = start("fenced_sqlite.py", hosts, os.fspath(file))
    refusal = re.match(r"refused: a holder of /locks/account with a greater token than (\d+) has written$", example.line())
    assert refusal
    assert example.line() == "130"
    assert example.end() == (0, "")
    database = sqlite3.connect(file)
    assert database.execute("SELECT amount FROM account").fetchall() == [(130,)]
    (fence,) = database.execute("SELECT token FROM fence").fetchone()
    assert fence > int(refusal[1])
    # Once more: the existing fence lets greater tokens pass.
    again = start("fenced_sqlite.py", hosts, os.fspath(file))
    assert again.end() == (0, "")
    assert database.execute("SELECT amount FROM account").fetchall() == [(160,)]
    database.close()
