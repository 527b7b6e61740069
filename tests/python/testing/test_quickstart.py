"""``python -m zklock.quickstart`` becomes the quickstart of the command that comes with the package."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import sysconfig

from zklock.testing import Server


def start(*words: str, path: str = "/nowhere") -> subprocess.Popen[str]:
    # As in an environment that is not activated.
    environment = {**os.environ, "PATH": path}
    return subprocess.Popen([sys.executable, "-W", "error", *words], env=environment, stdout=-1, stderr=-1, text=True)


def test_is_the_command_of_the_package() -> None:
    with start("-m", "zklock.quickstart") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("A ZooKeeper server in memory, for this run alone: 127.0.0.1:")
        program = pathlib.Path(f"/proc/{process.pid}/exe").readlink()
        assert program.parent.samefile(sysconfig.get_path("scripts"))
        process.kill()


def test_passes_its_arguments_on() -> None:
    with Server() as server:
        hosts = server.hosts
    process = start("-m", "zklock.quickstart", "--connect", hosts)
    out, err = process.communicate(timeout=50)
    assert (process.returncode, out) == (123, "")
    assert hosts in err and "Traceback" not in err


def test_looks_in_the_path_and_says_what_to_do_if_there_is_no_command(tmp_path: pathlib.Path) -> None:
    program = "import importlib.metadata, sys; importlib.metadata.files = lambda package: None; import zklock.quickstart; "
    program += "sys.exit(zklock.quickstart.main())"
    process = start("-c", program, path=str(tmp_path))
    out, err = process.communicate(timeout=50)
    assert (process.returncode, out) == (1, "")
    assert err.startswith("zklock: No such file or directory.") and "install the package again" in err
    command = tmp_path / "zklock"
    command.write_text("#!/bin/sh\necho $*\n")
    command.chmod(0o755)
    assert start("-c", program, path=str(tmp_path)).communicate(timeout=50)[0] == "quickstart\n"
