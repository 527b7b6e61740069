"""gevent and eventlet: each greenlet is an owner, a wait lets the others run, and callbacks run in greenlets."""

from __future__ import annotations

import typing

import pytest
from ground import Ground
from guests.programs import Run, Start
from hosts import greenlets
from hosts.greenlets import CLIENTS, EVENTLET, GEVENT, IMPORTS, LINES


class Host(typing.NamedTuple):
    """A library of greenlets."""

    patch: str
    run_in_a_thread: str
    options: tuple[str, ...]

    @property
    def begin(self) -> str:
        return self.patch + IMPORTS + CLIENTS


HOSTS = {
    # gevent's own warnings do not matter, and eventlet warns that it is deprecated.
    "gevent": Host(GEVENT, "gevent.get_hub().threadpool.apply", ()),
    "eventlet": Host(EVENTLET + "import eventlet.tpool\n", "eventlet.tpool.execute", ("-W", "ignore")),
}


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Host:
    pytest.importorskip(request.param, reason="it is not there for this interpreter", exc_type=ImportError)
    return HOSTS[request.param]


@pytest.mark.parametrize("text", greenlets.AMONG)
def test_among_greenlets(run: Run, host: Host, text: str) -> None:
    run(host.begin + getattr(greenlets, text), options=host.options)


def test_who_sleeps_until_a_loss_is_woken(host: Host, start: Start, ground: Ground, hosts: str, path: str) -> None:
    # gevent ends a sleep with an error if nothing could ever end it.
    program = start(host.begin + greenlets.ON_LOST_ALONE, hosts, path, options=host.options)
    ground("delete " + program.line())
    program.ends_well()


@pytest.mark.parametrize(
    "begin", ["{patch}" + IMPORTS + LINES, IMPORTS + LINES + "{patch}"], ids=["patched before", "patched after logging was set up"]
)
def test_log_lines_arrive(run: Run, host: Host, begin: str) -> None:
    run(begin.replace("{patch}", host.patch) + CLIENTS + greenlets.LOG, options=host.options)


def test_threads_of_the_system(run: Run, host: Host) -> None:
    text = greenlets.REAL_THREADS.format(run_in_a_thread=host.run_in_a_thread)
    run(host.begin + text + greenlets.RELEASED_BY_ANOTHER, options=host.options)


@pytest.mark.parametrize("end", ["", "other.close()\nzk.close()\n"], ids=["left", "closed"])
def test_the_end_of_the_interpreter(host: Host, start: Start, ground: Ground, hosts: str, path: str, end: str) -> None:
    ended = start(host.begin + greenlets.LEFT_AT_THE_END + end, hosts, path, options=host.options).finish(within=55)
    # A closed client loses its holds, and waiters are told, in greenlets which the end of the program may interrupt.
    assert ended[:3] == (0, "", "") or (end and ended.status == 0)
    assert ground.children(path) == []
