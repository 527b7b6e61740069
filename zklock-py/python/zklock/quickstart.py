"""Four worker processes share a lock and write to a ledger. One is killed while it holds the lock. Another is stopped while it
holds the lock, and resumes when the next one has taken over: its late write is refused.

    python -m zklock.quickstart                                  on a server in this process
    python -m zklock.quickstart --connect zk1:2181,zk2:2181      on your own ensemble
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
# Short, so that the lock of a killed worker is soon free. A real server may grant a longer timeout.
SESSION_TIMEOUT = 2.0


def work(hosts: str, name: str) -> None:
    """The work of one worker. A program needs no more than this for a lock and a fenced resource."""
    ledger = LedgerOfAWorker(name)
    with zklock.Client(hosts, session_timeout=SESSION_TIMEOUT, identity=name) as zk:
        try:
            with zk.mutex(LOCK, timeout=60) as hold:
                ledger.say(f"holds {hold.token}")
                ledger.write(hold.token)
                ledger.wait_until_the_work_is_done()
                # Whatever happened meanwhile, even a pause of this process: the token lets the ledger recognise a late write.
                if ledger.write(hold.token):
                    # Say it before the release, so that it is printed before the next worker says that it holds the lock.
                    ledger.say("releases")
        except zklock.LockLost as lost:
            ledger.say(f"lost {lost}")


class LedgerOfAWorker:
    """The worker's side of the resource that the lock guards. Here it is pipes from and to the parent process. All workers write
    to the same pipe."""

    def __init__(self, name: str) -> None:
        self._name = name

    def wait_until_the_work_is_done(self) -> None:
        self._answer()

    def write(self, token: int) -> bool:
        """Writes to the ledger, and returns whether it accepted the write."""
        self.say(f"writes {token}")
        return self._answer() == "accepted"

    def _answer(self) -> str:
        line = sys.stdin.readline()
        if not line:
            raise SystemExit("the ledger is gone")
        return line.strip()

    def say(self, line: str) -> None:
        # In one piece, so that lines of workers do not mix.
        sys.stdout.write(f"{self._name} {line}\n")
        sys.stdout.flush()


# Everything below is the demonstration around the workers.

# What happens to each worker while it holds the lock, in the order of the grants.
FATES = ("works", "is killed", "is stopped", "works")
# How many of its writes are accepted.
ACCEPTED = (2, 1, 1, 2)
# How long a worker works, and how long anything may take.
WORK = 0.4
PATIENCE = 30.0


class Failed(Exception):
    """A promise was broken."""


class Ledger:
    """The resource that the lock guards. It remembers the largest token that has written, and refuses smaller ones. That makes a
    late write harmless, however late it is. A holder may write as often as it likes."""

    greatest = 0

    def write(self, token: int) -> bool:
        is_accepted = token >= self.greatest
        self.greatest = max(self.greatest, token)
        return is_accepted


class Worker:
    """The process of a worker. Its output goes to the reports."""

    def __init__(self, hosts: str, name: str, reports: int) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "zklock.quickstart", "--connect", hosts, "--worker", name],
            stdin=subprocess.PIPE,
            stdout=reports,
            text=True,
            # Ctrl-C is for the parent process, which ends its workers.
            start_new_session=True,
        )

    def go_on(self) -> None:
        """Tells the worker that its work is done."""
        self.tell("go on")

    def tell(self, answer: str) -> None:
        assert self.process.stdin is not None
        # If the worker is gone, its status will show that.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{answer}\n")
            self.process.stdin.flush()

    def stop(self) -> None:
        """Stops the worker at any point, like a machine that is out of memory, or a laptop that is closed."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def end(self) -> None:
        """Ends the worker, whatever it is doing."""
        self.process.kill()
        # Messages that it has not read are lost.
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


class Play:
    """The whole demonstration, which prints everything as it happens."""

    def __init__(self, zk: zklock.Client) -> None:
        self._begun = time.monotonic()
        # Used to look at the queue.
        self._lock = zk.mutex(LOCK)
        self._ledger = Ledger()
        self._reports: queue.Queue[str | None] = queue.Queue()
        self._workers: dict[str, Worker] = {}
        self._queue: list[str] = []
        self._tokens: list[int] = []
        self._grants: list[Worker] = []
        self._accepted: list[Worker] = []
        self._killed: Worker | None = None
        # The worker that was stopped, until it is resumed, and until it learns that it has lost the lock.
        self._stopped: Worker | None = None
        self._late: Worker | None = None
        self._refused: list[Worker] = []
        self._lost: list[Worker] = []

    def perform(self, hosts: str) -> None:
        self.say(f"{len(FATES)} workers want the lock {LOCK}")
        # All workers share a pipe, so lines arrive in the order in which they were written. What one worker writes before it releases
        # the lock comes before everything that the next one writes, however the two are scheduled.
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
        """The next line of a worker; ``None`` when all workers have ended."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                return self._reports.get(timeout=0.1)
            except queue.Empty:
                for worker in self._workers.values():
                    status = worker.process.poll()
                    if status and worker is not self._killed:
                        raise Failed(f"{worker.name} has ended with {status}") from None
        raise Failed(f"no worker says anything for {PATIENCE} s")

    def _hear(self, worker: Worker, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "holds":
            self._granted(worker, int(rest))
        elif word == "writes":
            self._write(worker, int(rest))
        elif word == "releases":
            self.say(f"{worker.name} releases the lock")
        elif word == "lost":
            self._lose(worker, rest)
        else:
            raise Failed(f"{worker.name} says {line!r}")

    def _granted(self, worker: Worker, token: int) -> None:
        if len(self._grants) == len(FATES):
            raise Failed("more grants than workers")
        if not self._grants:
            self._wait_for_a_queue()
        self._grants.append(worker)
        self._tokens.append(token)
        waiting = [contender.identity for contender in self._lock.contenders() if not contender.holds]
        queued = f"{', '.join(waiting)} wait{'s' * (len(waiting) == 1)}" if waiting else "nobody waits"
        self.say(f"{worker.name} holds the lock, token {token}; {queued}")

    def _wait_for_a_queue(self) -> None:
        """Waits until all workers are in the queue, so that it can be shown."""
        end = time.monotonic() + PATIENCE
        while len(self._queue) < len(FATES):
            if time.monotonic() > end:
                raise Failed(f"not all workers are in the queue after {PATIENCE} s")
            time.sleep(0.01)
            self._queue = [contender.identity for contender in self._lock.contenders()]

    def _write(self, worker: Worker, token: int) -> None:
        if not self._ledger.write(token):
            self._refused.append(worker)
            self.say(f"{worker.name} writes with token {token}: REFUSED, {self._ledger.greatest} has written")
            worker.tell("refused")
            return
        self._accepted.append(worker)
        self.say(f"{worker.name} writes with token {token}: accepted")
        worker.tell("accepted")
        # After its second write, a worker is finished.
        if self._accepted.count(worker) == 1:
            self._let_nobody_speak(worker)
            self._strike(worker, FATES[len(self._grants) - 1])

    def _let_nobody_speak(self, holder: Worker) -> None:
        """Lets some time pass in which the holder works, and no other worker may say anything."""
        time.sleep(WORK)
        if not self._reports.empty():
            raise Failed(f"{self._reports.get()} while {holder.name} works")

    def _strike(self, worker: Worker, fate: str) -> None:
        """Makes something happen to the holder, or to the holder before it."""
        if fate == "is killed":
            worker.process.kill()
            self._killed = worker
            self.say(f"{worker.name} is killed; the lock is free when its session is over")
        elif fate == "is stopped":
            worker.stop()
            # The worker will read this when it is resumed, and believe that it may write.
            worker.go_on()
            self._stopped = self._late = worker
            self.say(f"{worker.name} is stopped where it is, and knows nothing of it")
        elif self._stopped is not None:
            # The holder goes on once this worker has learned what happened.
            self.say(f"{self._stopped.name} wakes up")
            self._stopped.process.send_signal(signal.SIGCONT)
            self._stopped = None
        else:
            worker.go_on()

    def _lose(self, worker: Worker, reason: str) -> None:
        self._lost.append(worker)
        self.say(f"{worker.name} is told: {reason}")
        if worker is not self._late:
            raise Failed(f"{worker.name} has lost the lock")
        self._late = None
        self._grants[-1].go_on()

    def _judge(self) -> None:
        """Checks that all promises were kept."""
        if len(self._grants) != len(FATES):
            raise Failed(f"{len(FATES)} grants were expected, not {len(self._grants)}")
        if [worker.name for worker in self._grants] != self._queue or sorted(set(self._tokens)) != self._tokens:
            raise Failed(f"the order of the queue was {self._queue}, and the tokens were {self._tokens}")
        _, killed, stopped, _ = self._grants
        for worker in self._workers.values():
            status = worker.process.wait(PATIENCE)
            if (status == 0) == (worker is killed):
                raise Failed(f"{worker.name} has ended with {status}")
        accepted = tuple(self._accepted.count(worker) for worker in self._grants)
        if accepted != ACCEPTED or self._refused != [stopped] or self._lost != [stopped]:
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
                # The ticks must be short enough for sessions of 2 s.
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
