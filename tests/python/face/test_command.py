"""The wheel contains the command `zklock`, and ``python -m zklock.quickstart`` becomes its quickstart."""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import signal
import subprocess
import sys
import sysconfig

import zklock
import zklock.testing

SCRIPTS = pathlib.Path(sysconfig.get_path("scripts"))
COMMAND, PYTHON = str(SCRIPTS / "zklock"), (sys.executable, "-W", "error")
# None of the machine's own settings.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ZKLOCK_")}
ENVIRONMENT["ZKLOCK_CONFIG"] = os.devnull
SOON = 60


def start(*words: str, path: str = "/nowhere") -> subprocess.Popen[str]:
    """By default as in an environment that is not activated."""
    return subprocess.Popen(words, env={**ENVIRONMENT, "PATH": path}, stdin=-1, stdout=-1, stderr=-1, text=True)


def test_it_is_of_the_version_of_the_wheel() -> None:
    said, errors = start(COMMAND, "--version").communicate(timeout=SOON)
    assert (said, errors) == (f"zklock {zklock.__version__}\n", "")


def test_the_bill_and_the_licences_are_of_all_that_the_module_and_the_command_bring() -> None:
    files = {file.name: file.read_text() for file in importlib.metadata.files("zklock-py") or () if ".dist-info" in str(file)}
    parts = {part["name"] for part in json.loads(files["zklock-py.cdx.json"])["components"]}
    # Of the module alone, of the command alone, of both.
    assert {"pyo3", "clap", "aws-lc-sys", "rustls", "tokio"} <= parts
    named = {line.split()[0] for line in files["THIRD-PARTY.txt"].splitlines() if line.endswith(")")}
    assert parts <= named, parts - named


def test_it_starts_itself_again_as_the_warden_of_a_job(hosts: str, path: str) -> None:
    """The warden finds itself by the path of its own program, which must not be that of the interpreter."""
    held = start(COMMAND, "--hosts", hosts, "run", "--mutex", path, "--", "/bin/sh", "-c", "echo $$; exec /bin/sleep 1000")
    assert held.stdout is not None
    held.stdout.readline()
    held.send_signal(signal.SIGKILL)
    # The job has the other end of this pipe until the warden ends it.
    assert held.communicate(timeout=SOON)[0] == ""


def test_the_quickstart_is_that_of_the_command_of_the_package() -> None:
    with start(*PYTHON, "-m", "zklock.quickstart") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("A ZooKeeper server in memory, for this run alone: 127.0.0.1:")
        program = pathlib.Path(f"/proc/{process.pid}/exe").readlink()
        assert program.parent.samefile(SCRIPTS)
        process.kill()


def test_the_quickstart_passes_its_arguments_on() -> None:
    with zklock.testing.Server() as server:
        hosts = server.hosts
    process = start(*PYTHON, "-m", "zklock.quickstart", "--connect", hosts)
    out, err = process.communicate(timeout=50)
    assert (process.returncode, out) == (123, "")
    assert hosts in err and "Traceback" not in err


def test_the_quickstart_looks_in_the_path_and_says_what_to_do_if_there_is_no_command(tmp_path: pathlib.Path) -> None:
    program = "import importlib.metadata, sys; importlib.metadata.files = lambda package: None; import zklock.quickstart; "
    program += "sys.exit(zklock.quickstart.main())"
    process = start(*PYTHON, "-c", program, path=str(tmp_path))
    out, err = process.communicate(timeout=50)
    assert (process.returncode, out) == (1, "")
    assert err.startswith("zklock: No such file or directory.") and "install the package again" in err
    command = tmp_path / "zklock"
    command.write_text("#!/bin/sh\necho $*\n")
    command.chmod(0o755)
    assert start(*PYTHON, "-c", program, path=str(tmp_path)).communicate(timeout=50)[0] == "quickstart\n"
