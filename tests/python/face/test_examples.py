"""The examples do what they promise."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import sqlite3

import pytest
from ground import Ground
from guests.programs import Start
from scenes import expire

import zklock

EXAMPLES = pathlib.Path(__file__).parents[3] / "zklock-py/examples"


def text(name: str) -> str:
    return (EXAMPLES / name).read_text()


def test_every_example_is_tested_and_short() -> None:
    own = pathlib.Path(__file__).read_text()
    for example in EXAMPLES.glob("*.py"):
        assert f'"{example.name}"' in own
        assert len(text(example.name).splitlines()) < 80


def test_script_runs_where_the_lock_is_free(start: Start, hosts: str) -> None:
    script = start(text("script.py"), hosts)
    assert re.match(r"writing the report, with token \d+$", script.line())
    assert re.match(r"written, and the lock was ours for \d\.\d s more$", script.line())
    script.ends_well()


def test_script_says_who_else_writes(start: Start, hosts: str) -> None:
    with zklock.Client(hosts, identity="the night shift") as zk, zk.mutex("/locks/report"):
        script = start(text("script.py"), hosts)
        assert script.finish()[:3] == (1, "", "somebody else is writing it: the night shift\n")


@pytest.mark.parametrize(("by", "status"), [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_one_worker_runs_and_the_other_skips_and_takes_over(
    start: Start, hosts: str, ground: Ground, by: signal.Signals, status: int
) -> None:
    first = start(text("only_one_worker.py"), hosts)
    assert first.line() == f"{first.process.pid} runs clean_up"
    second = start(text("only_one_worker.py"), hosts)
    for _ in range(3):
        assert second.line() == f"{second.process.pid} skips clean_up"
        assert first.line() == f"{first.process.pid} runs clean_up"
    # Its end frees the lock, or that of its session if it is killed.
    gone = first.finish(by=by)
    assert (gone.status, gone.err) == (status, "")
    while (line := second.line()) == f"{second.process.pid} skips clean_up":
        pass
    assert line == f"{second.process.pid} runs clean_up"
    gone = second.finish(by=signal.SIGINT)
    assert (gone.status, gone.err) == (0, "")
    ground.expect_children("/locks/clean-up", 0)


def test_service_stops_its_work_when_its_session_expires(start: Start, ground: Ground) -> None:
    proxy = ground.proxy("1")
    service = start(text("asyncio_service.py"), proxy.hosts)
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
    gone = service.finish(by=signal.SIGINT)
    assert gone.status == 0 and "Traceback" not in gone.err
    # The old work has not gone on.
    assert working not in gone.out.splitlines()
    ground.expect_children("/locks/service", 0)


def test_service_hands_over_when_it_is_stopped(start: Start, hosts: str, ground: Ground) -> None:
    first = start(text("asyncio_service.py"), hosts)
    assert first.line().startswith("working")
    second = start(text("asyncio_service.py"), hosts)
    ground.expect_children("/locks/service", 2)
    assert second.unread() == []
    gone = first.finish(by=signal.SIGINT)
    assert (gone.status, gone.err) == (0, "") and gone.out.endswith("has stopped")
    assert second.line().startswith("working")
    gone = second.finish(by=signal.SIGINT)
    assert (gone.status, gone.err) == (0, "")
    ground.expect_children("/locks/service", 0)


def test_stale_token_is_refused(start: Start, hosts: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "accounts"
    first = start(text("fenced_sqlite.py"), hosts, os.fspath(file))
    refusal = re.match(r"refused: a later holder of /locks/account has written, with the token (\d+), and this one is (\d+)", first.line())
    assert refusal and int(refusal[1]) > int(refusal[2])
    assert first.line() == "130"
    first.ends_well()
    database = sqlite3.connect(file)
    assert database.execute("SELECT amount FROM account").fetchall() == [(130,)]
    assert database.execute("SELECT name, token FROM zklock_fences").fetchall() == [("/locks/account", int(refusal[1]))]
    # Once more: the existing fence lets greater tokens pass.
    again = start(text("fenced_sqlite.py"), hosts, os.fspath(file))
    assert again.finish().status == 0
    assert database.execute("SELECT amount FROM account").fetchall() == [(160,)]
    database.close()
