"""eventlet: each greenlet is an owner, a wait lets the others run, and callbacks run in greenlets."""

from __future__ import annotations

import pytest
from ground import Ground
from guests.programs import Start
from hosts import greenlets
from hosts.greenlets import CLIENTS, EVENTLET, IMPORTS, WELL, Run, runner

pytest.importorskip("eventlet", reason="there is no eventlet for this interpreter", exc_type=ImportError)

BEGIN = EVENTLET + IMPORTS + CLIENTS
# eventlet warns that it is deprecated.
OPTIONS = ("-W", "ignore")


@pytest.fixture
def run(start: Start, hosts: str, path: str) -> Run:
    """Runs a program to its end."""
    return runner(start, hosts, path, options=OPTIONS)


@pytest.mark.parametrize("reentrant", [False, True])
def test_greenlets_take_turns(run: Run, reentrant: bool) -> None:
    run(BEGIN + greenlets.TAKE_TURNS.format(reentrant=reentrant))


@pytest.mark.parametrize("text", greenlets.AMONG)
def test_among_greenlets(run: Run, text: str) -> None:
    run(BEGIN + getattr(greenlets, text))


def test_who_sleeps_until_a_loss_is_woken(start: Start, ground: Ground, hosts: str, path: str) -> None:
    program = start(BEGIN + greenlets.ON_LOST_ALONE, hosts, path, options=OPTIONS)
    ground("delete " + program.line())
    assert program.finish()[:3] == WELL


@pytest.mark.parametrize(
    "begin",
    [EVENTLET + IMPORTS + greenlets.LINES, IMPORTS + greenlets.LINES + EVENTLET],
    ids=["patched before", "patched after logging was set up"],
)
def test_log_lines_arrive(run: Run, begin: str) -> None:
    run(begin + CLIENTS + greenlets.LOG)


def test_threads_of_the_system(run: Run) -> None:
    text = greenlets.REAL_THREADS.format(run_in_a_thread="eventlet.tpool.execute")
    run(BEGIN + "import eventlet.tpool\n" + text + greenlets.RELEASED_BY_ANOTHER)


@pytest.mark.parametrize("end", ["", "sys.exit(0)\n"], ids=["", "exit"])
def test_the_end_of_the_interpreter(start: Start, ground: Ground, hosts: str, path: str, end: str) -> None:
    program = start(BEGIN + greenlets.LEFT_AT_THE_END + end, hosts, path, options=OPTIONS)
    assert program.finish(within=55)[:3] == WELL
    assert ground.children(path) == []
