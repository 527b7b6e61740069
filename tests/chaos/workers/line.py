"""What workers in Python share: the line to the register, and how long they hold locks."""

from __future__ import annotations

import contextlib
import random
import socket
import threading

PATIENCE = 10.0


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


def drawn(chance: random.Random, times: str) -> tuple[float, float]:
    """How long a lock is held, in seconds, and how often that is said."""
    usual, rare, step = map(float, times.split(","))
    return chance.uniform(0, rare if chance.randrange(10) == 0 else usual) / 1e6, step / 1e6
