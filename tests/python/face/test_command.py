"""The wheel contains the command `zklock`."""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import signal
import subprocess
import sysconfig

import zklock

COMMAND = pathlib.Path(sysconfig.get_path("scripts"), "zklock")
# None of the machine's own settings.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ZKLOCK_")}
ENVIRONMENT["ZKLOCK_CONFIG"] = os.devnull
SOON = 60


def command(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([COMMAND, *words], env=ENVIRONMENT, stdin=-1, stdout=-1, stderr=-1, text=True)


def test_it_is_of_the_version_of_the_wheel() -> None:
    said, errors = command("--version").communicate(timeout=SOON)
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
    held = command("--hosts", hosts, "run", "--mutex", path, "--", "sh", "-c", "echo $$; exec sleep 1000")
    assert held.stdout is not None
    held.stdout.readline()
    held.send_signal(signal.SIGKILL)
    # The job has the other end of this pipe until the warden ends it.
    assert held.communicate(timeout=SOON)[0] == ""
