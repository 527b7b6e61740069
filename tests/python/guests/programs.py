"""Programs in separate interpreters, which tests control while they run."""

from __future__ import annotations

import contextlib
import logging
import pathlib
import queue
import subprocess
import sys
import threading
import time
import typing

# Since 3.12 a fork of a process with threads warns, but some tests are about such forks.
OPTIONS: typing.Final = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")
# How soon a program goes on after a signal.
SOON: typing.Final = 0.05


# What most programs begin with. Those that take more arguments find them in `more`.
BEGIN = """
import asyncio, atexit, logging, os, signal, sys, threading, time
hosts, path, *more = sys.argv[1:]
import zklock

logging.getLogger("zklock").addHandler(logging.NullHandler())
zk = zklock.Client(hosts, session_timeout=4, connect_timeout=60)
lock = zk.mutex(path)


def say(*words):
    print(*words, flush=True)


def until(is_so):
    end = time.monotonic() + 50
    while not is_so():
        assert time.monotonic() < end, "never"
        time.sleep(0.005)
"""


class Ended(typing.NamedTuple):
    """How a program has ended, and the rest of its output."""

    status: int
    out: str
    err: str
    seconds: float
    """When the wait for its end began."""


class Program:
    """A running program. It is killed at the end of the test, if it has not ended by then."""

    def __init__(self, folder: pathlib.Path, text: str, arguments: tuple[str, ...], options: tuple[str, ...]) -> None:
        file = folder / "program.py"
        file.write_text(text)
        self._errors = folder / "errors"
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", *options, str(file), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def errors(self) -> str:
        """Its stderr so far."""
        return self._errors.read_text()

    def line(self, within: float = 30.0) -> str:
        """The next line of its output."""
        try:
            return self._lines.get(timeout=within)
        except queue.Empty:
            raise AssertionError(f"nothing was said within {within} s; errors: {self.errors()}") from None

    def is_quiet(self) -> bool:
        """Whether nothing was said that was not read."""
        return self._lines.empty()

    def expect(self, line: str, within: float = 30.0) -> None:
        assert self.line(within) == line, self.errors()

    def tell(self, line: str = "go on") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> float:
        """Sends it a signal. Returns when, on the clock that all processes share."""
        now = time.monotonic()
        self.process.send_signal(number)
        return now

    def await_sleep(self, within: float = 30.0) -> None:
        """Waits until its main thread sleeps, in five checks in a row."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/stat")
        looks, until = 0, time.monotonic() + within
        while looks < 5:
            assert time.monotonic() < until, "its main thread does not sleep"
            looks = looks + 1 if stat.read_text().rpartition(")")[2].split()[0] == "S" else 0
            time.sleep(0.01)

    def finish(self, within: float = 30.0) -> Ended:
        """Waits for its end."""
        begun = time.monotonic()
        status = self.process.wait(timeout=within)
        seconds = time.monotonic() - begun
        self._reader.join(timeout=30)
        out = []
        while not self._lines.empty():
            out.append(self._lines.get())
        return Ended(status, "\n".join(out), self.errors(), seconds)

    def ends_well(self, out: str = "", within: float = 30.0) -> float:
        """Waits for its end, which must be a success, without errors, and with this output that was not read. Returns how long it waited."""
        ended = self.finish(within)
        assert ended[:3] == (0, out, ""), ended.err
        return ended.seconds

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=10)
        self._reader.join(timeout=10)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:
                pass  # it no longer reads its input


class Start(typing.Protocol):
    """The type of the fixture ``start``, which starts programs."""

    def __call__(self, text: str, *arguments: str, options: tuple[str, ...] = OPTIONS) -> Program: ...


# The type of the fixture ``run``, which runs a program that gets the hosts, the path, and what else is given. It must end well.
Run = typing.Callable[..., float]


class Calls(logging.Handler):
    """A handler of the log that calls a function with each line."""

    def __init__(self, call: typing.Callable[[str], object]) -> None:
        super().__init__()
        self.call = call

    def emit(self, record: logging.LogRecord) -> None:
        self.call(record.getMessage())


@contextlib.contextmanager
def logged(handler: logging.Handler, level: int = logging.NOTSET) -> typing.Iterator[None]:
    """Has this handler of the log, and this level if one is given."""
    logger = logging.getLogger("zklock")
    before = logger.level
    logger.setLevel(level or before)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
