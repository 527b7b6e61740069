"""gunicorn: an application that is loaded, and acquires a lock, before the workers are forked."""

from __future__ import annotations

import concurrent.futures
import pathlib
import re
import signal
import typing
import urllib.request

import pytest
from guests.programs import Program, Start
from scenes import eventually

# The program is the application as well: gunicorn imports it once more, as a module.
APPLICATION = """
import os, sys

if __name__ == "__main__":
    from gunicorn.app.wsgiapp import run
    sys.exit(run())

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

    def __init__(self, program: Program) -> None:
        self.program = program
        self._port = self.said(r"Listening at: http://127\.0\.0\.1:(\d+)")[0]

    def said(self, pattern: str, times: int = 1) -> list[str]:
        """Waits until it has printed something this number of times."""
        eventually(lambda: len(re.findall(pattern, self.program.errors())) >= times, within=50)
        return re.findall(pattern, self.program.errors())

    def ask(self, times: int) -> list[Answer]:
        """Makes this number of requests, many at a time."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda _: self._ask(), range(times)))

    def _ask(self) -> Answer:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/", timeout=50) as response:
            return Answer(*(int(word) for word in response.read().split()))


@pytest.fixture(params=["sync", "gthread", "gevent"])
def gunicorn(request: pytest.FixtureRequest, start: Start, tmp_path: pathlib.Path, hosts: str, path: str) -> Gunicorn:
    number = tmp_path / "number"
    number.write_text("0")
    words = ["--preload", "--workers", "3", "--worker-class", request.param, "--bind", "127.0.0.1:0"]
    for name, value in (("HOSTS", hosts), ("LOCK", path), ("NUMBER", number)):
        words += ["--env", f"{name}={value}"]
    return Gunicorn(start(APPLICATION, *words, "program", options=()))


def test_workers_of_a_preloaded_application_lock(gunicorn: Gunicorn) -> None:
    answers = gunicorn.ask(30)
    assert sorted(answer.number for answer in answers) == list(range(1, 31)), gunicorn.program.errors()
    assert gunicorn.program.process.pid not in {answer.worker for answer in answers}
    tokens = [answer.token for answer in sorted(answers)]
    assert tokens == sorted(set(tokens))
    # New workers are forked from the same master, which has forked before.
    old = {answer.worker for answer in answers}
    gunicorn.program.signal(signal.SIGHUP)
    gunicorn.said(r"Booting worker with pid", times=6)
    gunicorn.said(r"Worker exiting", times=3)
    answers = gunicorn.ask(30)
    assert sorted(answer.number for answer in answers) == list(range(31, 61)), gunicorn.program.errors()
    assert not old & {answer.worker for answer in answers}
    gunicorn.program.signal(signal.SIGTERM)
    assert gunicorn.program.finish(within=50).status == 0, gunicorn.program.errors()
    assert "Traceback" not in gunicorn.program.errors()
