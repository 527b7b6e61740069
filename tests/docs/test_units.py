"""The systemd units in docs/recipes.md, with the command ``zklock`` itself."""

from __future__ import annotations

import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import typing

import pytest
from ground import Ground
from guests.programs import Program
from host import Hosts
from page import ADDRESS, ROOT, ZKLOCK, blocks, changed, unit

UNITS = blocks("docs/recipes.md", "ini")["Leader"]
PACKAGED = ROOT / "packaging/zklock@.service"
NOT_FOUND, WRONG_ARGUMENTS, NOT_EXECUTABLE = 127, 64, 126

# The program of a unit. It ends on an order, or with SIGTERM, and reports SIGHUP.
JOB = """#!/usr/bin/env python3
import signal, sys
import reports

signal.signal(signal.SIGHUP, lambda *_: print("reloaded", flush=True))
signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
reports.make_report()
"""


@pytest.fixture
def job(hosts: Hosts) -> str:
    path = hosts.write("job", JOB)
    path.chmod(0o755)
    return str(path)


Start = typing.Callable[..., Program]


@pytest.fixture
def start(hosts: Hosts, servers: str, job: str) -> Start:
    """Starts a service as systemd would, except for the paths of programs and some given changes."""

    def start(file: str, *changes: tuple[str, str]) -> Program:
        service = unit(UNITS[file])["Service"]
        variable, _, value = service["Environment"].partition("=")
        assert value == ADDRESS
        command = re.sub(r"(?<= -- )/usr/local/bin/\w+$", job, service["ExecStart"])
        for before, after in (("/usr/local/bin/zklock", ZKLOCK), *changes):
            command = changed(command, before, after)
        return hosts.start("env", f"{variable}={servers}", *shlex.split(command))

    return start


def test_systemd_takes_the_units(tmp_path: pathlib.Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd here")
    units = {**UNITS, "zklock@test.service": PACKAGED.read_text()}
    for file, text in units.items():
        # systemd-analyze checks that the programs exist.
        text = re.sub(r"/usr/(local/)?bin/zklock", ZKLOCK, text)
        (tmp_path / file).write_text(text)
    files = [str(tmp_path / file) for file in units]

    def told() -> list[str]:
        """Reports only problems in our units: those of the machine may have faults."""
        words = ["systemd-analyze", "verify", "--man=no", *files]
        done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
        return [line for line in done.stderr.splitlines() if any(file in line for file in units)]

    assert told() == []
    # A problem would be reported.
    with (tmp_path / "scheduler.service").open("a") as service:
        service.write("SuccessExitStatuses=120\n")
    assert any("SuccessExitStatuses" in line for line in told())


def test_service_runs_on_one_host(start: Start, hosts: Hosts, ground: Ground, chroot: str) -> None:
    first = start("scheduler.service")
    (leader,) = hosts.await_work(1)
    second = start("scheduler.service")
    ground.expect_children(f"{chroot}/locks/scheduler", 2)
    # ExecReload.
    assert unit(UNITS["scheduler.service"])["Service"]["ExecReload"] == "/bin/kill -HUP $MAINPID"
    first.process.send_signal(signal.SIGHUP)
    first.said("reloaded")
    assert hosts.begun() == [leader]
    # KillMode=mixed: at first only zklock gets the signal.
    assert first.finish(by=signal.SIGTERM).status == 1
    assert first.log().count("told to end") == 1
    assert len(hosts.await_work(2)) == 2
    hosts.let_go()
    assert second.finish().status == 0, second.log()


def test_service_is_not_restarted_where_that_does_not_help(start: Start, job: str) -> None:
    hopeless = unit(UNITS["scheduler.service"])["Service"]["RestartPreventExitStatus"]
    ends = {
        WRONG_ARGUMENTS: ("--election", "--elections"),
        NOT_FOUND: (job, f"{job}-that-is-not-there"),
        NOT_EXECUTABLE: (job, str(pathlib.Path(job).with_name("reports.py"))),
    }
    assert {int(code) for code in hopeless.split()} == set(ends)
    for status, change in ends.items():
        assert start("scheduler.service", change).finish().status == status
