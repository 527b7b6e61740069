"""Fixtures for most tests: a server, a path of their own, a client that leaves nothing behind."""

from __future__ import annotations

import inspect
import pathlib
import signal
import sys
import threading
import typing

import pytest
from aio.support import Loop, run_in
from ground import Ground, fresh_path, started
from guests.programs import OPTIONS, Program, Run, Start
from punctual import pytest_runtest_protocol as pytest_runtest_protocol
from scenes import Face

import zklock

# The lease is long enough for a busy machine, the heartbeat short enough to wait for.
SESSION = 4.0
# A try waits for the servers' answer, however busy the machine is. For its limit see test_bounded.py.
SOON = 30.0

# A program that a shell starts in the background ignores Ctrl-C, and so would every program that is started here.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine: in asyncio, or as the fixture ``face`` makes its calls."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    face = given.get("face")
    main = pyfuncitem.obj(**given)
    face.run(main) if isinstance(face, Face) else run_in(Loop(), main)
    return True


@pytest.fixture(scope="session")
def shared_ground() -> typing.Iterator[Ground]:
    """One standalone server, for all tests that do not change it."""
    yield from started("standalone tick=500")


@pytest.fixture
def ground(shared_ground: Ground) -> Ground:
    return shared_ground


@pytest.fixture
def hosts(ground: Ground) -> str:
    return ground("servers")


@pytest.fixture
def path(request: pytest.FixtureRequest, ground: Ground) -> typing.Iterator[str]:
    """The path of a lock that no other test uses. Checks that nobody is in its queue after the test."""
    path = fresh_path("/locks", request.node.name)
    yield path
    ground.expect_free(path)


def connected(path: str, hosts: str) -> typing.Iterator[zklock.Client]:
    """A client, whose nodes are gone before the path is checked."""
    with zklock.Client(hosts, session_timeout=SESSION, try_timeout=SOON) as client:
        yield client


# Two of them, with sessions of their own.
zk, other = pytest.fixture(name="zk")(connected), pytest.fixture(name="other")(connected)


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[list[typing.Any]]:
    """The reports of exceptions that were raised where nothing can catch them."""
    reports: list[typing.Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    yield reports
    # They keep objects alive.
    reports.clear()


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> typing.Iterator[Start]:
    """Starts programs, none of which outlives the test."""
    programs: list[Program] = []
    if "path" in request.fixturenames:
        # The programs must have ended before the queue of the path is checked.
        request.getfixturevalue("path")

    def start(text: str, *arguments: str, options: tuple[str, ...] = OPTIONS) -> Program:
        folder = tmp_path / str(len(programs))
        folder.mkdir()
        file = folder / "program.py"
        file.write_text(text)
        programs.append(Program([sys.executable, "-X", "faulthandler", *options, str(file), *arguments], folder))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()


@pytest.fixture
def run(start: Start, hosts: str, path: str) -> Run:
    """Runs a program to its end, which must be well. Returns how long that took."""

    def run(text: str, *more: str, options: tuple[str, ...] = OPTIONS) -> float:
        return start(text, hosts, path, *more, options=options).ends_well(within=55)

    return run
