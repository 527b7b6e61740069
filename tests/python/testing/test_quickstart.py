"""``python -m zklock.quickstart`` is the quickstart of the command that comes with the package."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from zklock.testing import Server

PYTHON = (sys.executable, "-W", "error")


def run(*words: str, path: str = "/nowhere") -> subprocess.CompletedProcess[str]:
    # The environment need not be activated.
    return subprocess.run([*PYTHON, *words], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=50, check=False)


def test_on_a_server_of_its_own() -> None:
    done = run("-m", "zklock.quickstart")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("A ZooKeeper server in memory, for this run alone: 127.0.0.1:")
    assert done.stdout.endswith("and the late write did no harm\n")


def test_passes_its_arguments_on() -> None:
    with Server() as server:
        hosts = server.hosts
    done = run("-m", "zklock.quickstart", "--connect", hosts)
    assert (done.returncode, done.stdout) == (123, "")
    assert hosts in done.stderr and "Traceback" not in done.stderr


def test_looks_in_the_path_and_says_what_to_do_if_there_is_no_command(tmp_path: pathlib.Path) -> None:
    program = "import importlib.metadata, sys; importlib.metadata.files = lambda package: None; import zklock.quickstart; "
    program += "sys.exit(zklock.quickstart.main())"
    done = run("-c", program, path=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("zklock: No such file or directory.") and "install the package again" in done.stderr
    command = tmp_path / "zklock"
    command.write_text("#!/bin/sh\necho $*\n")
    command.chmod(0o755)
    done = run("-c", program, path=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "quickstart\n")
