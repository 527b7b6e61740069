"""Wrong arguments are reported at once, with an error that says what to do."""

from __future__ import annotations

import math
import re
import typing

import pytest

import zklock
from zklock.testing import Server

Call = typing.Callable[[typing.Any], object]


def at_no_path(method: str) -> tuple[Call, str]:
    return lambda server: getattr(server, method)("locks"), '"locks" is not a path of a node'


BAD_ARGUMENTS: dict[str, tuple[Call, str]] = {
    "tick of nothing": (lambda _: Server(tick=0), "tick of 0 s: it is a number of seconds from 0.001 to 86400"),
    "tick that is no number": (lambda _: Server(tick=math.nan), "tick of NaN s"),
    "shortest is longest": (lambda _: Server(session_timeouts=(2, 1)), "the shortest comes first"),
    "shortest of nothing": (lambda _: Server(session_timeouts=(0, 1)), "session_timeouts of 0 s"),
    "like what it cannot be": (lambda server: type(server)(like="2.0"), "2.0.*3.8, 3.4, keeper-25"),
    "listen nowhere": (lambda _: Server(listen="nowhere"), "cannot listen on nowhere: .*Port 0 takes any that is free"),
    "advance backwards": (lambda server: server.advance(-1), "seconds of -1 s"),
    "date before 1970": (lambda server: server.set_date(-1), "a date of -1 s: give the seconds since 1970"),
    "no delay": (lambda server: server.inject("delay-reply", "create"), "needs a delay, in seconds"),
    "delay backwards": (lambda server: server.inject("delay-reply", "create", delay=-1), "delay of -1 s"),
    "nth of nothing": (lambda server: server.inject("freeze", "create", nth=0), "nth=0: it is a number from 1 on"),
    "times of nothing": (lambda server: server.inject("freeze", "create", times=-1), "times=-1: it is a number from 1"),
    "below no path": (lambda server: server.inject("freeze", "create", below="locks"), '"locks" is not a path of a node'),
    "children of no path": (lambda server: server.children("locks"), '"locks" is not a path of a node: it begins with'),
    **{f"{method} of no path": at_no_path(method) for method in ("data", "owner", "bring_back", "delete", "dump")},
    "sequence of no path": (lambda server: server.set_sequence("locks", 1), '"locks" is not a path of a node'),
    "put no path": (lambda server: server.put("locks"), '"locks" is not a path'),
    "wait for less than nothing": (lambda server: server.wait_for_children("/a", -1), "count=-1: it is a number from 0"),
    "wait for no path": (lambda server: server.wait_for_children("a", 1), '"a" is not a path of a node'),
    "wait backwards": (lambda server: server.wait_for_children("/a", 1, -1), "a timeout of -1 s"),
    "wait for a strike backwards": (lambda server: server.inject("freeze", "multi").wait(-1), "a timeout of -1 s"),
}

# Every method, with arguments.
CALLS: list[tuple[typing.Any, ...]] = [("__enter__",), ("sessions",), ("expire", 1), ("advance", 1), ("clear_faults",)]
CALLS += [("set_date", 1), ("inject", "freeze", "create"), ("cut",), ("cut", 1), ("freeze",), ("freeze", 1), ("thaw",), ("refuse",)]
CALLS += [("children", "/"), ("data", "/"), ("owner", "/"), ("put", "/a"), ("delete", "/a"), ("bring_back", "/a")]
CALLS += [("set_sequence", "/", 1), ("wait_for_children", "/a", 1), ("dump",)]


def test_all_calls_are_known() -> None:
    names = {name for name in vars(Server) if not name.startswith("_")} - {"hosts", "close"}
    assert names <= {name for name, *_ in CALLS}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_argument(server: Server, name: str) -> None:
    call, says = BAD_ARGUMENTS[name]
    with pytest.raises(zklock.InvalidInput, match=says) as caught:
        call(server)
    assert isinstance(caught.value, ValueError)
    # None of these calls has had an effect.
    assert server.children("/") == ["zookeeper"]


@pytest.mark.parametrize("call", [("expire", "0x1"), ("expire", None), ("inject", "freeze", "create", 1)], ids=str)
def test_wrong_type(server: Server, call: tuple[typing.Any, ...]) -> None:
    with pytest.raises(TypeError):
        getattr(server, call[0])(*call[1:])


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_call_after_close(server: Server, call: tuple[typing.Any, ...]) -> None:
    server.close()
    with pytest.raises(zklock.Closed, match="the embedded server is closed: start another one"):
        getattr(server, call[0])(*call[1:])


def test_strikes_can_be_counted_after_close(server: Server, zk: zklock.Client) -> None:
    injected = server.inject("cut-after-reply", "create")
    with zk.mutex("/locks/counted"):
        pass
    server.close()
    assert injected.strikes == 1
    assert injected.wait() is True
    never = Server()
    injected = never.inject("freeze", "create")
    never.close()
    with pytest.raises(zklock.Closed):
        injected.wait()
    del never
    with pytest.raises(zklock.Closed):
        injected.wait()


def test_port_that_is_taken(server: Server) -> None:
    with pytest.raises(zklock.Refused, match=f"cannot listen on {server.hosts}: .*in use.*Port 0 takes any"):
        Server(listen=server.hosts)


def test_children_that_do_not_come(server: Server) -> None:
    server.put("/a/b")
    with pytest.raises(zklock.Timeout, match=re.escape('/a does not have 2 children after 0.05 s, but these: ["b"]')):
        server.wait_for_children("/a", 2, timeout=0.05)
    with pytest.raises(TimeoutError):
        server.wait_for_children("/a", 0, timeout=0)
