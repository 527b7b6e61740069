"""``Client.guard``: a killed process frees its locks at once, and a living one never loses its session because of that."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import pathlib
import signal
import sysconfig
import typing

import pytest
from ground import Ground
from guests.programs import FORKS, Start
from scenes import awaited

import zklock

# The session timeout, longer than any test, because all waits have much lower limits.
LONG = 100.0
SOON = 30.0

HOLDER = """
import asyncio, os, signal, sys
import zklock

hosts, path, face = sys.argv[1:]
zk = zklock.Client(hosts, session_timeout=100)


def obey(hold):
    print("holds", flush=True)
    for order in sys.stdin:
        if order == "fork\\n":
            child = os.fork()
            if not child:
                # It has all that its parent has, and lives on.
                signal.pause()
            print(child, flush=True)


async def asynchronous():
    await zk.aio.guard()
    async with zk.aio.mutex(path) as hold:
        await asyncio.to_thread(obey, hold)


if face == "aio":
    asyncio.run(asynchronous())
else:
    zk.guard()
    with zk.mutex(path) as hold:
        obey(hold)
"""


@pytest.fixture(scope="module")
def patient_ground() -> typing.Iterator[Ground]:
    """A server that grants long sessions."""
    ground = Ground()
    ground("start standalone tick=500 max-session=100000")
    yield ground
    ground.close()


@pytest.fixture
def ground(patient_ground: Ground) -> Ground:
    return patient_ground


def children(process: int) -> list[int]:
    """The children of all threads of a process that nobody has waited for."""
    tasks = pathlib.Path(f"/proc/{process}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def is_free_at_once(hosts: str, path: str) -> None:
    """Checks that the next client has the lock long before the previous session could time out."""
    with zklock.Client(hosts, session_timeout=LONG) as zk, zk.mutex(path, timeout=SOON) as hold:
        assert len(zk.mutex(path).contenders()) == 1
        assert hold.state is zklock.HoldState.HELD


# A forked child does not hide the death of its parent.
@pytest.mark.parametrize(("face", "forks"), [("threads", False), ("threads", True), ("aio", False)])
def test_a_killed_process_frees_its_lock_at_once(start: Start, hosts: str, path: str, face: str, forks: bool) -> None:
    holder = start(HOLDER, hosts, path, face, options=FORKS)
    holder.expect("holds")
    if forks:
        holder.tell("fork")
    child = int(holder.line()) if forks else None
    holder.process.kill()
    is_free_at_once(hosts, path)
    if child:
        os.kill(child, signal.SIGKILL)


def guard(zk: zklock.Client, face: str, *command: str) -> None:
    asyncio.run(awaited(zk.aio.guard(*command))) if face == "aio" else zk.guard(*command)


@pytest.mark.parametrize("face", ["threads", "aio"])
def test_the_guardian_ends_with_its_client(hosts: str, face: str) -> None:
    before = len(children(os.getpid()))
    with zklock.Client(hosts, session_timeout=LONG) as zk:
        guard(zk, face)
        assert len(children(os.getpid())) == before + 1
    assert len(children(os.getpid())) == before


def test_a_client_has_one_guardian_and_a_closed_one_none(hosts: str) -> None:
    zk = zklock.Client(hosts, session_timeout=LONG)
    # The client has not connected before.
    zk.guard("zklock")
    assert zk.session_id is not None
    with pytest.raises(zklock.InvalidInput, match="has a guardian already"):
        zk.guard()
    zk.close()
    with pytest.raises(zklock.Closed):
        zk.guard()
    with pytest.raises(zklock.Closed):
        guard(zk, "aio")


def test_servers_that_cannot_be_reached_are_told() -> None:
    with pytest.raises(zklock.Unreachable):
        zklock.Client("127.0.0.1:1", connect_timeout=0.3).guard()


@pytest.mark.parametrize("face", ["threads", "aio"])
def test_the_command_of_the_package_is_found_without_the_path(
    hosts: str, monkeypatch: pytest.MonkeyPatch, face: str
) -> None:
    """The same in an environment that was not activated."""
    monkeypatch.setenv("PATH", "/nowhere")
    before = children(os.getpid())
    with zklock.Client(hosts, session_timeout=LONG) as zk:
        guard(zk, face)
        (guardian,) = set(children(os.getpid())) - set(before)
        program = pathlib.Path(f"/proc/{guardian}/exe").readlink()
        assert program.parent.samefile(sysconfig.get_path("scripts"))


def test_a_command_that_is_none_is_refused_with_what_to_do(
    hosts: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "zklock"
    plain.touch()
    with zklock.Client(hosts, session_timeout=LONG) as zk:
        with pytest.raises(zklock.InvalidInput, match='no program "/nowhere/zklock": install the command zklock'):
            zk.guard("/nowhere/zklock")
        with pytest.raises(zklock.InvalidInput, match="may not execute"):
            zk.guard(plain)
        with pytest.raises(zklock.InvalidInput, match="it ended at once"):
            guard(zk, "aio", "true")
        with pytest.raises(TypeError):
            zk.guard(7)  # type: ignore[arg-type]
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setattr(importlib.metadata, "files", lambda package: [])
        with pytest.raises(zklock.InvalidInput, match=r'no "zklock" in the directories of PATH \("/nowhere"\)'):
            zk.guard()
