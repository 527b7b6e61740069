"""Programs of their own, which tests control while they run."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import re
import signal
import subprocess
import time
import typing

from scenes import eventually

# Since 3.12 a fork of a process with threads warns, but some tests are about such forks.
OPTIONS: typing.Final = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")

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
    """A running program. It is killed at the end of the test with all that it has started, if it has not ended by then."""

    def __init__(self, words: typing.Sequence[str], folder: pathlib.Path, patience: float = 30.0, **more: typing.Any) -> None:
        self._out, self._errors, self._patience, self._read = folder / "out", folder / "errors", patience, 0
        with self._out.open("w") as out, self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=out, stderr=errors, text=True, start_new_session=True, **more
            )

    def errors(self) -> str:
        """Its stderr so far."""
        return self._errors.read_text()

    def log(self) -> str:
        """All of its output so far."""
        return self._out.read_text() + self.errors()

    def unread(self) -> list[str]:
        """The lines of its output so far that were not read."""
        return self._out.read_text().splitlines(keepends=True)[self._read :]

    def line(self, within: float | None = None) -> str:
        """The next line of its output."""
        eventually(lambda: "\n" in "".join(self.unread()[:1]), within or self._patience, self.log)
        self._read += 1
        return self._out.read_text().splitlines()[self._read - 1]

    def expect(self, line: str, within: float | None = None) -> None:
        assert self.line(within) == line, self.errors()

    def said(self, pattern: str, times: int = 1, within: float | None = None) -> list[str]:
        """Waits until it has printed something this number of times."""

        def found() -> list[str]:
            return re.findall(pattern, self.log())

        eventually(lambda: len(found()) >= times or self.process.poll() is not None, within or self._patience, self.log)
        assert len(found()) >= times, f"{pattern} was said {len(found())} times: {self.log()}"
        return found()

    def tell(self, line: str = "go on") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def finish(self, within: float | None = None, by: signal.Signals | None = None) -> Ended:
        """Waits for its end, after this signal."""
        begun = time.monotonic()
        if by is not None:
            self.process.send_signal(by)
        eventually(lambda: self.process.poll() is not None, within or self._patience, self.log)
        return Ended(self.process.returncode, "".join(self.unread()).rstrip("\n"), self.errors(), time.monotonic() - begun)

    def ends_well(self, out: str = "", within: float | None = None) -> float:
        """Waits for its end, which must be a success, without errors, and with this output that was not read. Returns how long it waited."""
        ended = self.finish(within)
        assert ended[:3] == (0, out, ""), ended.err
        return ended.seconds

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=30)
        assert self.process.stdin is not None
        # It no longer reads its input.
        with contextlib.suppress(OSError):
            self.process.stdin.close()


# The type of the fixture ``start``, which starts a program in Python with these arguments and ``options``.
Start = typing.Callable[..., Program]
# The type of the fixture ``run``, which runs a program that gets the hosts, the path, and what else is given. It must end well.
Run = typing.Callable[..., float]


@contextlib.contextmanager
def logged(tell: typing.Callable[[logging.LogRecord], object], level: int = logging.NOTSET) -> typing.Iterator[None]:
    """Hands each record of the log to a function, and sets this level if one is given."""
    logger, handler = logging.getLogger("zklock"), logging.Handler()
    handler.emit = tell  # type: ignore[method-assign, assignment]
    before = logger.level
    logger.setLevel(level or before)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
