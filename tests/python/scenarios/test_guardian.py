"""``Client.guard``: a killed process frees its locks at once, and a living one never loses its session because of that."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import sysconfig
import typing

import pytest
from ground import Ground, started
from guests.programs import BEGIN, Start
from scenes import SOON, Face, raises

import zklock

# The session timeout, longer than any test, because all waits have much lower limits.
LONG = 100.0

HOLDER = BEGIN + """
zk = zklock.Client(hosts, session_timeout=100)
zk.guard()
with zk.mutex(path):
    say("holds")
    sys.stdin.readline()
    if os.fork():
        say("forked")
    # A child has all that its parent has, and lives on.
    signal.pause()
"""


@pytest.fixture(scope="module")
def ground() -> typing.Iterator[Ground]:
    """A server that grants long sessions."""
    yield from started("standalone tick=500 max-session=100000")


def children(process: int) -> list[int]:
    """The children of all threads of a process that nobody has waited for."""
    tasks = pathlib.Path(f"/proc/{process}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


# A forked child does not hide the death of its parent.
@pytest.mark.parametrize("forks", [False, True])
def test_a_killed_process_frees_its_lock_at_once(start: Start, hosts: str, path: str, forks: bool) -> None:
    holder = start(HOLDER, hosts, path)
    holder.expect("holds")
    if forks:
        holder.tell("fork")
        holder.expect("forked")
    holder.process.kill()
    # The next client has the lock long before the session could time out.
    with zklock.Client(hosts, session_timeout=LONG) as zk, zk.mutex(path, timeout=SOON) as hold:
        assert len(zk.mutex(path).contenders()) == 1
        assert hold.state is zklock.HoldState.HELD


def test_a_client_has_one_guardian_and_a_closed_one_none(hosts: str, face: Face) -> None:
    zk = zklock.Client(hosts, session_timeout=LONG)
    # The client has not connected before.
    face(face.of(zk).guard, "zklock")
    assert zk.session_id is not None
    raises(zklock.InvalidInput, lambda: face(face.of(zk).guard)).says("has a guardian already")
    zk.close()
    raises(zklock.Closed, lambda: face(face.of(zk).guard))


def test_the_command_of_the_package_is_found_without_the_path_and_ends_with_its_client(
    hosts: str, monkeypatch: pytest.MonkeyPatch, face: Face
) -> None:
    """The same in an environment that was not activated."""
    monkeypatch.setenv("PATH", "/nowhere")
    before = set(children(os.getpid()))
    with zklock.Client(hosts, session_timeout=LONG) as zk:
        face(face.of(zk).guard)
        (guardian,) = set(children(os.getpid())) - before
        program = pathlib.Path(f"/proc/{guardian}/exe").readlink()
        assert program.parent.samefile(sysconfig.get_path("scripts"))
    assert set(children(os.getpid())) == before


def test_a_command_that_is_none_is_refused_with_what_to_do(
    hosts: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, face: Face
) -> None:
    plain = tmp_path / "zklock"
    plain.touch()
    with zklock.Client(hosts, session_timeout=LONG) as zk:
        for command, says in (
            ("/nowhere/zklock", 'no program "/nowhere/zklock": install the command zklock'),
            (plain, "may not execute"),
            ("true", "it ended at once"),
        ):
            raises(zklock.InvalidInput, lambda: face(face.of(zk).guard, command)).says(says)
        with pytest.raises(TypeError):
            face(face.of(zk).guard, 7)
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setattr(importlib.metadata, "files", lambda package: [])
        missing = raises(zklock.InvalidInput, lambda: face(face.of(zk).guard))
        missing.says('no "zklock" in the directories of PATH ("/nowhere")')
