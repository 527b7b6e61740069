"""Four workers, each a process of its own, share one lock and write to one ledger. One is killed while it holds the lock;
one is stopped while it holds the lock, and wakes when another has taken over: its late write is refused.

    python -m zklock.quickstart                                  on a server in this process
    python -m zklock.quickstart --connect zk1:2181,zk2:2181      on an ensemble of yours
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import zklock
from zklock.testing import Server

LOCK = "/zklock-quickstart"
# Short, so that nobody waits long for the lock of a worker that was killed. A real server may grant more.
SESSION_TIMEOUT = 2.0


def work(hosts: str, name: str) -> None:
    """What one worker does. This is all that a program has to do for a lock and a fenced resource."""
    ledger = LedgerOfAWorker(name)
    with zklock.Client(hosts, session_timeout=SESSION_TIMEOUT, identity=name) as zk:
        try:
            with zk.mutex(LOCK, timeout=60) as hold:
                ledger.say(f"holds {hold.token}")
                ledger.wait_until_the_work_is_done()
                # Whatever happened meanwhile, pauses of the process included: with its token the ledger knows a late write.
                ledger.write(hold.token)
            ledger.say("released")
        except zklock.LockLost as lost:
            ledger.say(f"lost {lost}")


class LedgerOfAWorker:
    """The worker's end of the resource that the lock is for: here pipes from and to the process that started it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def wait_until_the_work_is_done(self) -> None:
        if not sys.stdin.readline():
            raise SystemExit("nobody is there any more")

    def write(self, token: int) -> None:
        self.say(f"writes {token}")

    def say(self, line: str) -> None:
        # In one piece.
        sys.stdout.write(f"{self._name} {line}\n")
        sys.stdout.flush()


# What follows is the play in which they take part.

# What happens to a worker while it holds the lock, in the order of the grants.
FATES = ("works", "is killed", "is stopped", "works")
# How long a worker works, and how long anything may take.
WORK = 0.4
PATIENCE = 30.0


class Failed(Exception):
    """Something was not as promised."""


class Ledger:
    """The resource that the lock is for. It keeps the greatest token that has written, and refuses smaller ones: this is
    what makes a late write harmless, however late it is."""

    greatest = 0

    def write(self, token: int) -> bool:
        is_accepted = token > self.greatest
        self.greatest = max(self.greatest, token)
        return is_accepted


class Worker:
    """The process of a worker. What it says goes to the reports."""

    def __init__(self, hosts: str, name: str, reports: int) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "zklock.quickstart", "--connect", hosts, "--worker", name],
            stdin=subprocess.PIPE,
            stdout=reports,
            text=True,
            # Ctrl-C is for the play, which ends its workers.
            start_new_session=True,
        )

    def go_on(self) -> None:
        """Tells it that its work is done."""
        assert self.process.stdin is not None
        # One that is gone will be noticed by its status.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("go on\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Ends it, whatever it does."""
        self.process.kill()
        # What it has not read any more is lost.
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


class Play:
    """All of it, told as it happens."""

    def __init__(self, zk: zklock.Client) -> None:
        self._begun = time.monotonic()
        # To look at the queue with.
        self._lock = zk.mutex(LOCK)
        self._ledger = Ledger()
        self._reports: queue.Queue[str | None] = queue.Queue()
        self._workers: dict[str, Worker] = {}
        self._queue: list[str] = []
        self._tokens: list[int] = []
        self._grants: list[Worker] = []
        self._asleep: Worker | None = None
        self._refused: list[Worker] = []
        self._lost: list[Worker] = []

    def perform(self, hosts: str) -> None:
        self.say(f"{len(FATES)} workers want the lock {LOCK}")
        # One pipe for all: so what they say comes in the order in which it was said.
        reading, writing = os.pipe()
        with contextlib.ExitStack() as ends:
            reader = threading.Thread(target=self._read, args=(reading,))
            reader.start()
            ends.callback(reader.join)
            with open(writing, "wb") as reports:
                for number in range(1, len(FATES) + 1):
                    worker = Worker(hosts, f"worker-{number}", reports.fileno())
                    ends.callback(worker.end)
                    self._workers[worker.name] = worker
            while (line := self._next_report()) is not None:
                name, _, words = line.partition(" ")
                self._hear(self._workers[name], words)
            self._judge()
        self.say("done: one holder at a time, in the order of the queue, and the late write did no harm")

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._begun:6.2f} s  {text}", flush=True)

    def _read(self, reports: int) -> None:
        with open(reports) as lines:
            for line in lines:
                self._reports.put(line.rstrip("\n"))
        self._reports.put(None)

    def _next_report(self) -> str | None:
        """What is said next; ``None`` when all workers have ended."""
        try:
            return self._reports.get(timeout=PATIENCE)
        except queue.Empty:
            raise Failed(f"no worker says anything for {PATIENCE} s") from None

    def _hear(self, worker: Worker, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "holds":
            self._granted(worker, int(rest))
        elif word == "writes":
            self._write(worker, int(rest))
        elif word == "lost":
            self._lost.append(worker)
            self.say(f"{worker.name} is told: {rest}")
        else:
            self.say(f"{worker.name} has {line} the lock")

    def _granted(self, worker: Worker, token: int) -> None:
        if len(self._grants) == len(FATES):
            raise Failed("more grants than workers")
        if not self._grants:
            self._wait_for_a_queue()
        fate = FATES[len(self._grants)]
        self._grants.append(worker)
        self._tokens.append(token)
        waiting = [contender.identity for contender in self._lock.contenders() if not contender.holds]
        queued = f"{', '.join(waiting)} wait{'s' * (len(waiting) == 1)}" if waiting else "nobody waits"
        self.say(f"{worker.name} holds the lock, token {token}; {queued}")
        self._let_nobody_speak()
        if fate == "is killed":
            worker.process.kill()
            self.say(f"{worker.name} is killed; the lock is free when its session is over")
        elif fate == "is stopped":
            # Where it is, as a machine does that is out of memory, or a laptop that is closed.
            worker.process.send_signal(signal.SIGSTOP)
            self._asleep = worker
            self.say(f"{worker.name} is stopped where it is, and knows nothing of it")
        if fate != "is killed":
            # One that is stopped reads this when it wakes, and believes that it may write.
            worker.go_on()

    def _wait_for_a_queue(self) -> None:
        """So that there is somebody to be seen in it."""
        end = time.monotonic() + PATIENCE
        while len(self._queue) < len(FATES):
            if time.monotonic() > end:
                raise Failed(f"not all workers are in the queue after {PATIENCE} s")
            time.sleep(0.01)
            self._queue = [contender.identity for contender in self._lock.contenders()]

    def _let_nobody_speak(self) -> None:
        """Lets time pass in which the holder works, and nobody else may have anything to say."""
        time.sleep(WORK)
        for line in list(self._reports.queue):
            # The one before may still be on its way out.
            if line is not None and not line.endswith(" released"):
                raise Failed(f"while another holds the lock it is said: {line}")

    def _write(self, worker: Worker, token: int) -> None:
        if not self._ledger.write(token):
            self._refused.append(worker)
            self.say(f"{worker.name} writes with token {token}: REFUSED, {self._ledger.greatest} has written")
            return
        self.say(f"{worker.name} writes with token {token}: accepted")
        if self._asleep is not None:
            # The next has taken over.
            self.say(f"{self._asleep.name} wakes up")
            self._asleep.process.send_signal(signal.SIGCONT)
            self._asleep = None

    def _judge(self) -> None:
        """Whether it was as promised."""
        if len(self._grants) != len(FATES):
            raise Failed(f"{len(FATES)} grants were expected, not {len(self._grants)}")
        if [worker.name for worker in self._grants] != self._queue or sorted(set(self._tokens)) != self._tokens:
            raise Failed(f"the order of the queue was {self._queue}, and the tokens were {self._tokens}")
        _, killed, stopped, _ = self._grants
        for worker in self._workers.values():
            status = worker.process.wait(PATIENCE)
            if (status == 0) == (worker is killed):
                raise Failed(f"{worker.name} has ended with {status}")
        if self._refused != [stopped] or self._lost != [stopped]:
            raise Failed("the late write, and it alone, was to be refused, and its writer to be told")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m zklock.quickstart",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--connect",
        metavar="HOSTS",
        help="the servers, host:port,host:port; a /chroot may follow. Without it, a throw-away server in memory is started",
    )
    parser.add_argument("--worker", metavar="NAME", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    try:
        if arguments.worker is not None:
            work(arguments.connect, arguments.worker)
            return 0
        with contextlib.ExitStack() as opened:
            hosts = arguments.connect
            if hosts is None:
                # Ticks that are short enough for sessions of 2 s.
                hosts = opened.enter_context(Server(tick=0.5)).hosts
                print(f"A ZooKeeper server in memory, for this run alone: {hosts}", flush=True)
            zk = opened.enter_context(zklock.Client(hosts, connect_timeout=5))
            Play(zk).perform(hosts)
        return 0
    except (Failed, zklock.Error) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
