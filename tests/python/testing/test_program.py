"""``python -m zklock.testing``: the same server as a program, for tests in other languages."""

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
    assert answer(program, "put /a some words") == "ok"
    assert answer(program, "data /a") == "ok some words"
    assert answer(program, "dump /a") == '/a "some words"'
    program.expect("ok")
    assert answer(program, "fault freeze create nth=2") == "ok 1"
    assert answer(program, "strikes 1") == "ok 0"
    assert answer(program, "quit") == "ok"
    program.ends_well()


def test_orders_that_are_no_text_are_refused(start: Start) -> None:
    program = start(PROGRAM)
    program.line()
    assert program.process.stdin is not None
    program.process.stdin.buffer.write(b"\xff\xfe\n")  # type: ignore[attr-defined]
    program.process.stdin.flush()
    assert program.line().startswith("error an order is in UTF-8")


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
    program.signal(signal.SIGINT)
    assert program.finish()[:3] == (-signal.SIGINT, "", "")


def test_ends_with_its_input_while_clients_are_there(start: Start) -> None:
    program = start(PROGRAM)
    with zklock.Client(program.line()):
        assert program.process.stdin is not None
        program.process.stdin.close()
        program.ends_well()


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


def test_ends_quietly_when_nobody_reads() -> None:
    with subprocess.Popen(COMMAND, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write("dump\ndump\n")
        process.stdin.flush()
        assert process.wait(SOON) == 1
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["--help"], 0, "--manual-clock"),
        (["--loud"], 1, "there is no option \"--loud\"; --help tells which there are"),
        (["--listen", "nowhere"], 1, "cannot listen on nowhere"),
    ],
)
def test_helps_and_says_what_is_wrong_with_an_option(options: list[str], status: int, says: str) -> None:
    done = subprocess.run([*COMMAND, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON)
    said, nothing = (done.stderr, done.stdout) if status else (done.stdout, done.stderr)
    assert (done.returncode, nothing) == (status, "")
    assert says in said and "Traceback" not in said
    assert said.count("\n") == 1 or not status
