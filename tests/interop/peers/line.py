"""A peer's connection to the register (see ../register.py), and other code that all peers in Python share."""

from __future__ import annotations

import argparse
import random
import socket
import time
import typing


class Line:
    """One connection. The peer ends when the register does."""

    def __init__(self, address: str, name: str) -> None:
        host, port = address.rsplit(":", 1)
        self.name = name
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("r")

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def _tell(self, word: str, *rest: object) -> None:
        self._socket.sendall(" ".join(map(str, [word, self.name, *rest])).encode() + b"\n")

    def _ask(self, word: str, *rest: object) -> bool:
        """Sends a line. Returns whether to go on."""
        self._tell(word, *rest)
        answer = self._answers.readline().strip()
        if not answer:
            raise SystemExit("the register has ended")
        return answer == "go"

    def hello(self) -> bool:
        return self._ask("hello")

    def enter(self, mode: str, node: str | None, token: int = 0) -> bool:
        return self._ask("enter", mode, node.rsplit("/", 1)[-1] if node else "-", token)

    def down(self, node: str, *when: float) -> bool:
        return self._ask("down", node.rsplit("/", 1)[-1], *when)

    def leave(self, *when: float) -> bool:
        return self._ask("leave", *when)

    def lost(self, why: object) -> bool:
        return self._ask("lost", _one_line(why))

    def note(self, text: object) -> None:
        self._tell("note", _one_line(text))


def _one_line(text: object) -> str:
    return " ".join(str(text).split()) or type(text).__name__


def words(options: typing.Callable[[argparse.ArgumentParser], object]) -> argparse.Namespace:
    """The arguments of every peer, and this one's own options."""
    parser = argparse.ArgumentParser()
    for name in ("connect", "kind", "path"):
        parser.add_argument(name)
    parser.add_argument("session_ms", type=int)
    parser.add_argument("register")
    parser.add_argument("name")
    parser.add_argument("--rest", type=float, default=0.0)
    options(parser)
    return parser.parse_args()


def take_rest(given: argparse.Namespace) -> None:
    """Rests between two turns, for at most the time on the command line. Without a rest somebody always waits."""
    if given.rest:
        time.sleep(random.uniform(0.0, given.rest))
