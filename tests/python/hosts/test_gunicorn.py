"""gunicorn: an application that is loaded, and acquires a lock, before the workers are forked."""

from __future__ import annotations

import concurrent.futures
import pathlib
import re
import signal
import subprocess
import sys
import time
import typing
import urllib.request

import pytest

APPLICATION = """
import os
import zklock

hosts, path, file = (os.environ[name] for name in ("HOSTS", "LOCK", "NUMBER"))

# A check when it is loaded: in the master, with --preload.
with zklock.Client(hosts, session_timeout=4) as first, first.mutex(path + "-loaded") as hold:
    assert hold.confirm() > 0

# For the workers. It connects when it is first needed.
zk = zklock.Client(hosts, session_timeout=4)
lock = zk.mutex(path)


def application(environ, start_response):
    with lock as hold:
        with open(file) as now:
            number = int(now.read()) + 1
        with open(file, "w") as now:
            now.write(str(number))
    text = f"{number} {os.getpid()} {hold.token}"
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [text.encode()]
"""


class Answer(typing.NamedTuple):
    number: int
    worker: int
    token: int


class Gunicorn:
    """A running server, with three workers."""

    def __init__(self, folder: pathlib.Path, hosts: str, path: str, worker: str) -> None:
        (folder / "application.py").write_text(APPLICATION)
        (folder / "number").write_text("0")
        self._log = folder / "log"
        words = ["--preload", "--workers", "3", "--worker-class", worker, "--bind", "127.0.0.1:0", "--chdir", str(folder)]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", *words, "application"],
                env={"HOSTS": hosts, "LOCK": path, "NUMBER": str(folder / "number")},
                stdout=log,
                stderr=log,
            )
        listening = self.said(r"Listening at: http://127\.0\.0\.1:(\d+)")
        self.address = f"http://127.0.0.1:{listening[0]}/"

    def log(self) -> str:
        return self._log.read_text()

    def said(self, pattern: str, times: int = 1) -> list[str]:
        """Waits until it has printed something this number of times."""
        until = time.monotonic() + 50
        while len(found := re.findall(pattern, self.log())) < times:
            assert time.monotonic() < until and self.process.poll() is None, self.log()
            time.sleep(0.02)
        return found

    def ask(self, times: int) -> list[Answer]:
        """Makes this number of requests, many at a time."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda _: self._ask(), range(times)))

    def _ask(self) -> Answer:
        with urllib.request.urlopen(self.address, timeout=50) as response:
            return Answer(*(int(word) for word in response.read().split()))


@pytest.fixture(params=["sync", "gthread", "gevent"])
def gunicorn(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, hosts: str, path: str
) -> typing.Iterator[Gunicorn]:
    server = Gunicorn(tmp_path, hosts, path, request.param)
    yield server
    server.process.kill()
    server.process.wait(timeout=30)


def test_workers_of_a_preloaded_application_lock(gunicorn: Gunicorn) -> None:
    answers = gunicorn.ask(30)
    assert sorted(answer.number for answer in answers) == list(range(1, 31)), gunicorn.log()
    assert gunicorn.process.pid not in {answer.worker for answer in answers}
    tokens = [answer.token for answer in sorted(answers)]
    assert tokens == sorted(set(tokens))
    # New workers are forked from the same master, which has forked before.
    old = {answer.worker for answer in answers}
    gunicorn.process.send_signal(signal.SIGHUP)
    gunicorn.said(r"Booting worker with pid", times=6)
    gunicorn.said(r"Worker exiting", times=3)
    answers = gunicorn.ask(30)
    assert sorted(answer.number for answer in answers) == list(range(31, 61)), gunicorn.log()
    assert not old & {answer.worker for answer in answers}
    gunicorn.process.send_signal(signal.SIGTERM)
    assert gunicorn.process.wait(timeout=50) == 0, gunicorn.log()
    assert "Traceback" not in gunicorn.log()
