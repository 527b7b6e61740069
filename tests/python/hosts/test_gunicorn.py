"""gunicorn: an application that is loaded, and acquires a lock, before the workers are forked."""

from __future__ import annotations

import concurrent.futures
import pathlib
import signal
import urllib.request

import pytest
from guests.programs import Program, Start

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


@pytest.fixture(params=["sync", "gthread", "gevent"])
def gunicorn(request: pytest.FixtureRequest, start: Start, tmp_path: pathlib.Path, hosts: str, path: str) -> Program:
    """A server, with three workers."""
    number = tmp_path / "number"
    number.write_text("0")
    words = ["--preload", "--workers", "3", "--worker-class", request.param, "--bind", "127.0.0.1:0"]
    for name, value in (("HOSTS", hosts), ("LOCK", path), ("NUMBER", number)):
        words += ["--env", f"{name}={value}"]
    return start(APPLICATION, *words, "program", options=())


def ask(port: str) -> list[list[int]]:
    """Makes 30 requests, many at a time. Gives the numbers, in their order, the workers and the tokens of the answers."""

    def one(_: int) -> list[int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=50) as response:
            return [int(word) for word in response.read().split()]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return [list(column) for column in zip(*sorted(pool.map(one, range(30))))]


def test_workers_of_a_preloaded_application_lock(gunicorn: Program) -> None:
    (port,) = gunicorn.said(r"Listening at: http://127\.0\.0\.1:(\d+)", within=50)
    numbers, old, tokens = ask(port)
    assert numbers == list(range(1, 31)), gunicorn.errors()
    assert gunicorn.process.pid not in old
    assert tokens == sorted(set(tokens))
    # New workers are forked from the same master, which has forked before.
    gunicorn.process.send_signal(signal.SIGHUP)
    gunicorn.said(r"Booting worker with pid", times=6, within=50)
    gunicorn.said(r"Worker exiting", times=3, within=50)
    numbers, new, _ = ask(port)
    assert numbers == list(range(31, 61)), gunicorn.errors()
    assert not set(old) & set(new)
    assert gunicorn.finish(within=50, by=signal.SIGTERM).status == 0, gunicorn.errors()
    assert "Traceback" not in gunicorn.errors()
