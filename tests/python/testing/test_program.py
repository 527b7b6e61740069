"""``python -m zklock.testing``: the same server as a program, for tests in other languages."""

from __future__ import annotations

import signal
import subprocess
import sys
import typing

import pytest
from scenes import SOON, Attempt

import zklock

COMMAND = (sys.executable, "-W", "error", "-m", "zklock.testing")


class Program:
    """The running program, which executes orders."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.hosts = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def __call__(self, order: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return self.line()

    def finish(self) -> tuple[int, str, str]:
        """Ends its input. Returns its status, and the rest of its output."""
        out, err = self.process.communicate(timeout=SOON)
        return self.process.returncode, out, err


Run = typing.Callable[..., Program]


@pytest.fixture
def run() -> typing.Iterator[Run]:
    programs: list[Program] = []

    def run(*options: str) -> Program:
        programs.append(Program(*options))
        return programs[-1]

    yield run
    for program in programs:
        program.process.kill()
        program.process.communicate()


def test_serves_and_obeys(run: Run) -> None:
    program = run("--tick", "0.5")
    with zklock.Client(program.hosts, session_timeout=5) as zk:
        hold = zk.mutex("/locks/a").hold()
        assert program("children /locks/a") == f"ok {hold.node.rpartition('/')[2]}"
        assert program(f"expire {zk.session_id}") == "ok"
        assert hold.lost.wait(SOON)
    assert program("put /a some words") == "ok"
    assert program("data /a") == "ok some words"
    assert program("dump /a") == '/a "some words"'
    assert program.line() == "ok"
    assert program("fault freeze create nth=2") == "ok 1"
    assert program("strikes 1") == "ok 0"
    assert program.finish() == (0, "", "")


def test_orders_that_are_no_text_are_refused(run: Run) -> None:
    program = run()
    assert program.process.stdin is not None
    program.process.stdin.buffer.write(b"\xff\xfe\n")  # type: ignore[attr-defined]
    program.process.stdin.flush()
    assert program.line().startswith("error no such order: ")
    assert program.finish() == (0, "", "")


def test_quits(run: Run) -> None:
    program = run()
    assert program("quit") == "ok"
    assert program.process.wait(SOON) == 0


@pytest.mark.parametrize("is_waiting", [False, True])
def test_ends_at_ctrl_c(run: Run, is_waiting: bool) -> None:
    program = run()
    if is_waiting:
        # An order that takes an hour.
        Attempt(lambda: program("wait /a 1 3600"))
        # Connect first, so that the order is being executed, or soon will be. (A new node would end its wait.)
        with zklock.Client(program.hosts):
            pass
    program.process.send_signal(signal.SIGINT)
    assert program.process.wait(SOON) == 130
    assert program.process.stderr is not None
    assert program.process.stderr.read() == ""


def test_ends_with_its_input_while_clients_are_there(run: Run) -> None:
    program = run()
    with zklock.Client(program.hosts):
        assert program.finish() == (0, "", "")


@pytest.mark.parametrize("redirection", ["</dev/null", "<&-"])
def test_goes_on_without_input_that_is_no_pipe(redirection: str) -> None:
    command = f'exec "$@" --manual-clock {redirection}'
    shell = ["sh", "-c", command, "sh", *COMMAND]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        hosts = process.stdout.readline().rstrip("\n")
        with zklock.Client(hosts) as zk, zk.mutex("/locks/a") as hold:
            assert hold.token > 0
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) == 130


def test_ends_quietly_when_nobody_reads(run: Run) -> None:
    program = run()
    assert program.process.stdin is not None and program.process.stdout is not None
    program.process.stdout.close()
    program.process.stdin.write("dump\ndump\n")
    program.process.stdin.flush()
    assert program.process.wait(SOON) == 1
    assert program.process.stderr is not None
    assert program.process.stderr.read() == ""


def said(*options: str) -> tuple[int, str, str]:
    done = subprocess.run([*COMMAND, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON)
    return done.returncode, done.stdout, done.stderr


def test_helps() -> None:
    status, out, err = said("--help")
    assert (status, err) == (0, "")
    for word in ("--listen", "--tick", "--manual-clock", "expire ID", "advance SECONDS", "fault WHAT KIND"):
        assert word in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--loud"], "there is no option \"--loud\"; --help tells which there are"),
        (["--tick"], "--tick needs a value; --help tells more"),
        (["--tick", "soon"], '"soon" is not a number'),
        (["--listen", "nowhere"], "cannot listen on nowhere"),
    ],
)
def test_says_what_is_wrong_with_an_option(options: list[str], says: str) -> None:
    status, out, err = said(*options)
    assert (status, out) == (1, "")
    assert says in err and "Traceback" not in err
    assert err.count("\n") == 1
