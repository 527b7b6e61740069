"""What workers in Python share: the line to the register, and how long they hold locks."""

from __future__ import annotations

import contextlib
import random
import socket
import threading

PATIENCE = 10.0
# How often it says that it still holds: ten times more rarely for slow locks.
STEP = 0.002
SLOW = ":/slow/"
# Locks that are held for a millisecond at most, so that they are granted often.
SWIFT = ":/swift-"
SWIFT_STEP = 0.0002


class Register:
    """Sends lines to the register, and notices its end. A line that cannot be sent is dropped: the run is over then."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.over = threading.Event()
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._await_end, daemon=True).start()

    def say(self, *words: object) -> None:
        try:
            self._socket.sendall(" ".join(map(str, words)).encode() + b"\n")
        except OSError:
            self.over.set()

    def _await_end(self) -> None:
        # The register never sends anything.
        with contextlib.suppress(OSError):
            while self._socket.recv(4096):
                pass
        self.over.set()


def times(chance: random.Random, word: str, session_timeout: float) -> tuple[float, float]:
    """How long a lock is held, and how often that is said. Mostly short; below some paths long, so that much goes wrong meanwhile."""
    if SLOW in word:
        return chance.uniform(0, 3 * session_timeout), STEP * 10
    if SWIFT in word:
        return chance.uniform(0, 0.001), SWIFT_STEP
    return chance.uniform(0, 0.2 if chance.randrange(10) == 0 else 0.005), STEP
