"""``python -m zklock.testing``: the same server as a program, for tests in other languages. The scenarios in Rust prove what it does."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from guests.programs import Program, Start
from scenes import SOON

import zklock

COMMAND = (sys.executable, "-W", "error", "-m", "zklock.testing")
# The same for the fixture `start`.
PROGRAM = """
import runpy
runpy.run_module("zklock.testing", run_name="__main__")
"""


def answer(program: Program, order: str) -> str:
    program.tell(order)
    return program.line()


def test_serves_and_obeys(start: Start) -> None:
    program = start(PROGRAM, "--tick", "0.5")
    with zklock.Client(program.line(), session_timeout=5) as zk:
        hold = zk.mutex("/locks/a").hold()
        assert answer(program, "children /locks/a") == f"ok {hold.node.rpartition('/')[2]}"
        assert answer(program, f"expire {zk.session_id}") == "ok"
        assert hold.lost.wait(SOON)
    assert answer(program, "quit") == "ok"
    program.ends_well()


@pytest.mark.parametrize("is_waiting", [False, True])
def test_ends_at_ctrl_c(start: Start, is_waiting: bool) -> None:
    program = start(PROGRAM)
    hosts = program.line()
    if is_waiting:
        # An order that takes an hour.
        program.tell("wait /a 1 3600")
        # Connect first, so that the order is being executed, or soon will be. (A new node would end its wait.)
        with zklock.Client(hosts):
            pass
    assert program.finish(by=signal.SIGINT)[:3] == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("is_ignored", [False, True])
@pytest.mark.parametrize("redirection", ["</dev/null", "<&-"])
def test_goes_on_without_input_that_is_no_pipe(redirection: str, is_ignored: bool) -> None:
    # A shell that starts it in the background has it ignore Ctrl-C.
    command = f"""{"trap '' INT; " * is_ignored}exec "$@" --manual-clock {redirection}"""
    with subprocess.Popen(["sh", "-c", command, "sh", *COMMAND], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        hosts = process.stdout.readline().rstrip("\n")
        if is_ignored:
            process.send_signal(signal.SIGINT)
        with zklock.Client(hosts) as zk, zk.mutex("/locks/a") as hold:
            assert hold.token > 0
        assert process.poll() is None
        end = signal.SIGTERM if is_ignored else signal.SIGINT
        process.send_signal(end)
        assert process.wait(SOON) == -end


def test_says_what_is_wrong_with_an_option() -> None:
    done = subprocess.run([*COMMAND, "--loud"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON)
    assert (done.returncode, done.stdout) == (1, "")
    assert 'there is no option "--loud"' in done.stderr and done.stderr.count("\n") == 1
