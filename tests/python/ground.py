"""Real servers, and faults on the way to them: the program ``ground``, for Python.

See tests/src/bin/ground.rs for its commands, or ``Ground()("help")``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import subprocess
import threading
import time
import typing

_numbers = itertools.count()


def fresh_path(folder: str, test: str) -> str:
    """The path of a lock that nothing in this process has used, named after its test."""
    name = "".join(letter if letter.isalnum() else "-" for letter in test)[:60]
    return f"{folder}/{name}-{next(_numbers)}"


PROGRAM = os.environ.get("ZKLOCK_GROUND") or str(pathlib.Path(__file__).parents[2] / "target/debug/ground")


class Ground:
    """One ground. It ends with this process, in whatever way that ends."""

    def __init__(self) -> None:
        process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdin is not None and process.stdout is not None
        self._process, self._orders, self._answers = process, process.stdin, process.stdout
        self._one_at_a_time = threading.Lock()

    def __call__(self, command: str) -> str:
        """Sends a command, and returns its answer."""
        with self._one_at_a_time:
            (answer,) = self.tell(command)()
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise AssertionError(f"ground, told to {command}: {rest or 'it has ended'}")
        return rest

    def tell(self, *commands: str) -> typing.Callable[[], list[str]]:
        """Sends commands, which run one after the other while the caller does something else. Then returns their answers."""
        self._orders.write("".join(f"{command}\n" for command in commands))
        self._orders.flush()
        return lambda: [self._answers.readline().rstrip("\n") for _ in commands]

    def children(self, path: str) -> list[str]:
        """The children of a node; empty if the node does not exist."""
        return self(f"children {path}").split() if self(f"exists {path}") == "true" else []

    def expect_children(self, path: str, count: int, within: float = 30.0) -> list[str]:
        """Waits until a node has this number of children. A missing node has none."""
        if count == 0 and self(f"exists {path}") == "false":
            return []
        return self(f"wait-children {path} {count} {int(within * 1000)}").split()

    def expect_free(self, path: str, within: float = 30.0) -> None:
        """Waits until nobody is at a path, with any kind of lock. A semaphore leaves its two directories, empty."""
        until = time.monotonic() + within
        while left := [child for child in self.children(path) if not self._is_empty_queue(f"{path}/{child}")]:
            assert time.monotonic() < until, f"at {path} there are {left}"
            time.sleep(0.005)

    def _is_empty_queue(self, path: str) -> bool:
        return path.rpartition("/")[2] in ("locks", "leases") and not self.children(path)

    def proxy(self, server: str = "1") -> Proxy:
        """A proxy in front of that server."""
        number, address = self(f"proxy {server}").split()
        return Proxy(self, number, address)

    def close(self) -> None:
        """Ends the ground."""
        with contextlib.suppress(BrokenPipeError):
            self._orders.close()
        self._answers.close()
        self._process.wait(timeout=30)


def started(words: str) -> typing.Iterator[Ground]:
    """A ground with such servers, as a fixture."""
    with contextlib.closing(Ground()) as ground:
        ground(f"start {words}")
        yield ground


class Proxy(typing.NamedTuple):
    """A proxy in front of a server, which fails on demand: ``proxy("freeze", "both")``."""

    ground: Ground
    number: str
    hosts: str

    def __call__(self, command: str, *words: str) -> str:
        return self.ground(" ".join([command, self.number, *words]))
