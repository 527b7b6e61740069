"""``python -m zklock.quickstart`` does what it promises, and its status says whether it did."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from zklock.testing import Server

COMMAND = (sys.executable, "-W", "error", "-m", "zklock.quickstart")

# The lines, without their times. Workers are named after their places in the queue, and a to d are the tokens of A to D.
STORY = """
4 workers want the lock /zklock-quickstart
A holds the lock, token a; B, C, D wait
A writes with token a: accepted
A writes with token a: accepted
A releases the lock
B holds the lock, token b; C, D wait
B writes with token b: accepted
B is killed; the lock is free when its session is over
C holds the lock, token c; D waits
C writes with token c: accepted
C is stopped where it is, and knows nothing of it
D holds the lock, token d; nobody waits
D writes with token d: accepted
C wakes up
C writes with token c: REFUSED, d has written
C is told: REASON
D writes with token d: accepted
D releases the lock
done: one holder at a time, in the order of the queue, and the late write did no harm
""".strip().splitlines()


def check_story(out: str) -> None:
    lines = [line.partition(" s  ")[2] for line in out.splitlines() if re.match(r" *\d+\.\d\d s  ", line)]
    granted = [re.fullmatch(r"(\S+) holds the lock, token (\d+);.*", line) for line in lines]
    holders = [(grant[1], int(grant[2])) for grant in granted if grant is not None]
    assert sorted(name for name, _ in holders) == [f"worker-{number}" for number in range(1, 5)], out
    tokens = [token for _, token in holders]
    assert tokens == sorted(set(tokens))
    for (name, token), letter in zip(holders, "ABCD"):
        lines = [line.replace(name, letter) for line in lines]
        lines = [re.sub(rf"(token|REFUSED,) {token}\b", rf"\1 {letter.lower()}", line) for line in lines]
    assert [re.sub("is told: .*", "is told: REASON", line) for line in lines] == STORY


def test_on_a_server_of_its_own() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("A ZooKeeper server in memory, for this run alone: 127.0.0.1:")
    check_story(done.stdout)


def test_on_an_ensemble(hosts: str) -> None:
    done = subprocess.run([*COMMAND, "--connect", hosts], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    check_story(done.stdout)


def test_fails_where_nobody_answers() -> None:
    with Server() as server:
        hosts = server.hosts
    done = subprocess.run([*COMMAND, "--connect", hosts], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (1, "")
    assert hosts in done.stderr and "Traceback" not in done.stderr


def workers_of(number: int) -> dict[str, int]:
    """The processes of its workers, by their names."""
    found = {}
    # The main thread has started the workers.
    for child in pathlib.Path(f"/proc/{number}/task/{number}/children").read_text().split():
        words = pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0")
        # A process that was killed has no command line.
        if "--worker" in words:
            found[words[words.index("--worker") + 1]] = int(child)
    return found


def start_until(moment: str) -> tuple[subprocess.Popen[str], str]:
    """Starts the program, and waits for a line with this text. Returns the worker that the line is about."""
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if moment in line:
            return process, line.split()[2]
    raise AssertionError(f"never: {moment}; {process.communicate()[1]}")


def test_fails_when_it_is_not_as_promised() -> None:
    process, stopped = start_until("is stopped")
    # With this its late write never comes.
    os.kill(workers_of(process.pid)[stopped], signal.SIGKILL)
    _, err = process.communicate(timeout=50)
    assert (process.returncode, err) == (1, f"{stopped} has ended with -9\n")


@pytest.mark.parametrize("moment", ["is stopped", "is killed"])
def test_ctrl_c_leaves_no_worker(moment: str) -> None:
    process, _ = start_until(moment)
    workers = workers_of(process.pid)
    # The first worker has finished, and the killed one is gone. The others are still there.
    assert len(workers) >= 2
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "")
    for worker in workers.values():
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_helps() -> None:
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--connect HOSTS" in done.stdout and "--worker" not in done.stdout
