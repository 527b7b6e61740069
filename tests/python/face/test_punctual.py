"""The tests rely on this: a test that is late runs again, and fails if it is late each time."""

from __future__ import annotations

import pathlib
import subprocess
import sys

from punctual import TRIES, not_later

runs: list[None] = []


def test_who_is_late_twice_and_then_in_time_passes() -> None:
    runs.append(None)
    not_later(0.0 if len(runs) == 3 else 1.0, 0.5)
    assert len(runs) == 3


def test_who_is_late_each_time_fails_and_so_does_who_fails_otherwise(tmp_path: pathlib.Path) -> None:
    text = """
from punctual import not_later

def test_late():
    print("once more")
    not_later(1.0, 0.5)

def test_wrong():
    print("no more")
    assert "this" == "that"
"""
    (tmp_path / "test_it.py").write_text(text)
    # Here is where the plugin is.
    here = pathlib.Path(__file__).parent.parent
    command = [sys.executable, "-m", "pytest", "-p", "punctual", "-p", "no:cacheprovider", "-s", str(tmp_path)]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "2 failed" in done.stdout, done.stdout
    assert done.stdout.count("once more\n") == TRIES and done.stdout.count("no more\n") == 1, done.stdout
