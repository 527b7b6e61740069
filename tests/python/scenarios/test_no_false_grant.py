"""Promise 7: a grant is delivered only with a live lease, checked at the moment of delivery."""

from __future__ import annotations

import ctypes
import sys

import pytest
from ground import Ground
from scenes import SOON, Attempt

import zklock


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="nothing keeps this interpreter")
def test_a_hold_that_died_while_the_interpreter_was_busy_is_not_delivered(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    """An extension may keep the interpreter so long that the hold dies between its grant and its block."""
    before = other.mutex(path).hold(timeout=SOON)
    delivered: list[tuple[float, int]] = []

    def work() -> None:
        with zk.mutex(path, timeout=SOON) as hold:
            delivered.append((hold.valid_for(), hold.token))

    attempt = Attempt(work)
    first, second = sorted(ground.expect_children(path, 2), key=lambda name: name[-10:])
    # The second gets the lock, and its node is deleted before it could be told. The wait for five nodes just takes time.
    answers = ground.tell(f"delete {path}/{first}", f"wait-children {path} 5 400", f"delete {path}/{second}")
    ctypes.PyDLL(None).poll(None, 0, 2000)
    assert [answer.split()[0] for answer in answers()] == ["ok", "error", "ok"]
    attempt.result()
    ((valid_for, token),) = delivered
    assert valid_for > 0 and token > before.token
    assert zk.stats()[:4] == (1, 2, 1, 0)
