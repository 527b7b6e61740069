"""Promises about time, on a machine that may be busy with other work.

On such a machine anything may be late by chance. So a test in which something was late runs again, with new fixtures,
and fails if it was late each time. If one run is in time, nothing in zklock takes longer.
"""

from __future__ import annotations

import time

import pytest
from _pytest.runner import runtestprotocol

TRIES = 10

_late: list[str] = []


class Late(AssertionError):
    """Something took longer than was promised."""


def not_later(took: float, bound: float) -> None:
    """Checks that something took no longer than the bound, in seconds."""
    if took > bound:
        _late.append(f"{took:.3f} s, not {bound:.3f} s")
        raise Late(_late[-1])


def wait_for_quiet() -> None:
    """Waits until this machine wakes who sleeps in time for a while, but for ten seconds at most."""
    end, in_time = time.monotonic() + 10, 0
    while in_time < 250 and time.monotonic() < end:
        begun = time.monotonic()
        time.sleep(0.001)
        in_time = in_time + 1 if time.monotonic() - begun < 0.02 else 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Runs a test, and runs it again if it was late."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports: list[pytest.TestReport] = []
    for _ in range(TRIES):
        _late.clear()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if not _late or all(report.passed for report in reports):
            break
        wait_for_quiet()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
