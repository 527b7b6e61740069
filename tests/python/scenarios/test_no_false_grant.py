"""Promise 7: a grant is delivered only with a live lease, checked at the moment of delivery."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time

import pytest
from ground import Ground
from scenes import SOON, Attempt, raises

import zklock

SLEEPER = """
import sys
import zklock

hosts, path = sys.argv[1:]
with zklock.Client(hosts, session_timeout=2) as zk:
    print("ready", flush=True)
    hold = zk.mutex(path).hold(timeout=30)
    valid_for, state = hold.valid_for(), hold.state
    confirmed = hold.confirm()
    print(state.name, valid_for > 0, confirmed > 0, hold.node, flush=True)
    hold.release()
"""


# Past the lease, and past the session.
@pytest.mark.parametrize("stop", [1.2, 3.2])
def test_a_grant_that_the_process_slept_through_is_not_delivered(
    zk: zklock.Client, ground: Ground, hosts: str, path: str, stop: float
) -> None:
    with zk.mutex(path) as first:
        sleeper = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SLEEPER, hosts, path], stdout=subprocess.PIPE, text=True
        )
        try:
            assert sleeper.stdout is not None and sleeper.stdout.readline() == "ready\n"
            ground.expect_children(path, 2)
            sleeper.send_signal(signal.SIGSTOP)
            first.release()
            # The process is stopped for this time.
            time.sleep(stop)
            sleeper.send_signal(signal.SIGCONT)
            state, was_valid, was_confirmed, node = sleeper.stdout.readline().split()
            assert (state, was_valid, was_confirmed) == ("HELD", "True", "True")
            assert node.startswith(path) and node != first.node
            assert sleeper.wait(SOON) == 0
        finally:
            sleeper.kill()
            sleeper.communicate()


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
    raises(zklock.LockLost, before.release)
