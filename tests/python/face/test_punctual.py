"""The tests rely on this: a test that is late runs again, and fails if it is late each time."""

from __future__ import annotations

import pathlib

import pytest
from punctual import TRIES

pytest_plugins = ("pytester",)

TESTS = """
from punctual import not_later

runs = []

def test_late_twice():
    runs.append(None)
    not_later(0.0 if len(runs) == 3 else 1.0, 0.5)

def test_late():
    print("once more")
    not_later(1.0, 0.5)

def test_wrong():
    print("no more")
    assert "this" == "that"
"""


def test_who_is_late_each_time_fails_and_so_does_who_fails_otherwise(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(TESTS)
    # Here is where the plugin is.
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parent.parent))
    done = pytester.runpytest_subprocess("-p", "punctual", "-s")
    done.assert_outcomes(failed=2, passed=1)
    assert done.stdout.str().count("once more\n") == TRIES and done.stdout.str().count("no more\n") == 1
