"""Records over TCP which peers are inside, for peers in any language, and reports violations of the rules.

It knows nothing of ZooKeeper except the names of nodes. Each message is a line, which begins with a word and the peer's name:

``hello NAME``                   it is connected and about to begin; answered when all of the first peers are
``enter NAME MODE NODE TOKEN``   it has the lock. MODE is x (alone), r (with other readers), s:QUANTITY (of a semaphore);
                                 NODE the name of its node, or - where its library hides that; TOKEN its fencing token, or 0
``down NAME NODE``               it has taken the read side as well, and is about to release the write side
``leave NAME``                   it still has the lock, and is about to release it
``lost NAME WHY``                it is no longer inside, because it found that it has lost the lock
``note NAME TEXT``               a remark for the report; not answered

The answer to the others is ``go`` or, if the contest is over, ``stop``. A peer only releases the lock after the answer to
``leave``, so a peer that comes in before that was granted the lock too early.
"""

from __future__ import annotations

import collections
import dataclasses
import random
import re
import socket
import socketserver
import threading
import time
import typing

# This number of grants right after the end of the predecessor's session are excused: they come from a busy machine.
EXCUSED = 5
# The option of peers that leave the lock free now and then, so that a node can linger.
REST = "--rest=0.1"


@dataclasses.dataclass(frozen=True)
class Rules:
    """The promises of the lock."""

    # How much may be inside at once, if the modes alone do not say it.
    limit: int = 1
    # Whether grants follow the order of the nodes.
    ordered: bool = True
    # Whether a peer may come in again with its node, as long as nobody else has been in.
    lingers: bool = False


@dataclasses.dataclass
class Entry:
    """A peer that is inside."""

    name: str
    mode: str
    quantity: int
    node: str
    token: int
    # The problems with this claim, unless its owner turns out to have lost the lock earlier.
    suspects: list[str] = dataclasses.field(default_factory=list)

    @property
    def zklock(self) -> bool:
        return self.token != 0


class Conversation(socketserver.StreamRequestHandler):
    """That with one peer, in a thread of its own."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        typing.cast(Server, self.server).register.converse(self)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, register: Register) -> None:
        super().__init__(("127.0.0.1", 0), Conversation)
        self.register = register


class Register:
    """The record. It listens until it is closed."""

    def __init__(
        self,
        rules: Rules,
        grants: int,
        first: int,
        *,
        patience: float,
        stay: float | None = 0.001,
        exists: typing.Callable[[str], bool] = lambda node: True,
        at_most: int = 0,
        has_shown: typing.Callable[[], bool] = lambda: True,
    ) -> None:
        """The contest is over after ``grants`` grants, or later, when ``has_shown`` is true, but after ``at_most`` at the latest.
        Peers begin when ``first`` of them are there, and must not wait for longer than ``patience`` seconds. They stay for at
        most ``stay`` seconds or, if that is ``None``, until the contest is over. ``exists`` tells whether a node exists."""
        self.at_most, self.has_shown = at_most, has_shown
        self.rules, self.target, self.first = rules, grants, first
        self.patience, self.stay, self.exists = patience, stay, exists
        self.violations: list[str] = []
        self.notes: list[str] = []
        self.excused: list[str] = []
        self.grants: collections.Counter[str] = collections.Counter()
        # The peers that take part.
        self.present: set[str] = set()
        self.inside: dict[str, Entry] = {}
        # The most that was inside at once, and the peers that were together.
        self.peak = 0
        self.together: set[frozenset[str]] = set()
        self.begun = threading.Event()
        # Somebody has come in.
        self.entered = threading.Event()
        self.over = threading.Event()
        # How often a peer came in again with its node.
        self.again = 0
        # Peers that will be killed, so that their end is expected.
        self.doomed: set[str] = set()
        self._latest: dict[str, tuple[str, str]] = {}
        self._highest: dict[str, int] = {}
        self._token = 0
        self._lock = threading.Lock()
        self._server = Server(self)
        self.address = "127.0.0.1:{}".format(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="register").start()

    def close(self) -> None:
        # So that no peer's thread waits for these.
        self.begun.set()
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Register:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def converse(self, peer: Conversation) -> None:
        """Hears what a peer says, until it ends."""
        name, waits_until = "", None
        try:
            while True:
                peer.connection.settimeout(waits_until and max(0.001, waits_until - time.monotonic()))
                line = peer.rfile.readline().decode(errors="replace")
                # What a killed peer had not written to its end is no word.
                if not line.endswith("\n"):
                    break
                word, name, *rest = line.split()
                if word == "note":
                    self.notes.append(f"{name}: {' '.join(rest)}")
                    continue
                with self._lock:
                    self._hear(word, name, rest)
                if word in ("enter", "down"):
                    waits_until = None
                    self.over.wait() if self.stay is None else time.sleep(random.uniform(0.0, self.stay))
                else:
                    self.begun.wait()
                    waits_until = None if self.over.is_set() else time.monotonic() + self.patience
                peer.wfile.write(b"stop\n" if self.over.is_set() else b"go\n")
        except socket.timeout:
            self._violated(f"{name} waits for more than {self.patience} s; inside: {list(self.inside)}")
        except OSError:
            pass  # It is gone.
        with self._lock:
            self.present.discard(name)
            if name in self.inside:
                self._accuse(self.inside.pop(name))
            # A peer without a name was killed before it sent one, or has ended, which its status will show.
            if name and name not in self.doomed and not self.over.is_set():
                self._violated(f"{name} has ended by itself")

    def _hear(self, word: str, name: str, rest: list[str]) -> None:
        if word == "hello":
            self.present.add(name)
            if len(self.present) == self.first:
                self.begun.set()
        elif word == "enter":
            self._enter(name, *rest)
        elif word == "down":
            self.inside[name].mode, self.inside[name].node = "r", rest[0]
        elif word == "leave":
            self._accuse(self.inside.pop(name))
        elif word == "lost":
            self.notes.append(f"{name}: lost: {' '.join(rest)}")
            self._excuse(*self.inside.pop(name).suspects)
        else:
            self._violated(f"not a message: {word}")

    def _enter(self, name: str, mode: str, node: str, token: str) -> None:
        letter, _, quantity = mode.partition(":")
        entry = Entry(name, letter, int(quantity or 1), node, int(token))
        if name in self.inside:
            self._violated(f"{_describe(entry)} came in twice")
        self._compare(entry)
        self.inside[name] = entry
        self.grants[name] += 1
        self.entered.set()
        self.peak = max(self.peak, sum(one.quantity for one in self.inside.values()))
        self.together.update(frozenset((name, other)) for other in self.inside if other != name)
        count = sum(self.grants.values())
        if count >= self.target and (count >= self.at_most or self.has_shown()):
            self.over.set()

    def _compare(self, entry: Entry) -> None:
        """Compares a claim with those of all peers that are inside, and that were."""
        others = list(self.inside.values())
        if entry.mode == "s":
            crowd = others if entry.quantity + sum(other.quantity for other in others) > self.rules.limit else []
        else:
            crowd = [other for other in others if not (entry.mode == other.mode == "r")]
        for other in crowd:
            problem = f"{_describe(entry)} came in with {_describe(other)} inside"
            if self._gone_from_the_queue(entry):
                self._excuse(problem)
            elif self._gone_from_the_queue(other):
                # A library that does not report the end of its session cannot know. zklock must.
                if other.zklock:
                    other.suspects.append(problem)
                else:
                    self._excuse(problem)
            else:
                self._violated(problem)
        self._in_order(entry)

    def _in_order(self, entry: Entry) -> None:
        found = re.search(r"(\d{10})$", entry.node)
        if not self.rules.ordered or not found:
            return
        sequence = int(found[1])
        is_again = self.rules.lingers and self._latest.get(entry.mode) == (entry.name, entry.node)
        self.again += is_again
        self._latest[entry.mode] = (entry.name, entry.node)
        # A reader may be faster than the reader ahead. Nobody may overtake a writer, and a writer may overtake nobody.
        ahead = ("x",) if entry.mode == "r" else ("x", "r", "s")
        for mode in ahead:
            # In that case its own number is the highest.
            highest = self._highest.get(mode, -1) - (is_again and mode == entry.mode)
            if sequence <= highest:
                problem = f"{_describe(entry)} came in after number {self._highest[mode]}"
                (self._excuse if self._gone_from_the_queue(entry) else self._violated)(problem)
                return
        self._highest[entry.mode] = max(sequence, self._highest.get(entry.mode, -1))
        if entry.zklock and entry.mode == "x":
            if entry.token <= self._token - is_again:
                self._violated(f"{_describe(entry)} has token {entry.token}, after {self._token}")
            self._token = entry.token

    def _gone_from_the_queue(self, entry: Entry) -> bool:
        return entry.node != "-" and not self.exists(entry.node)

    def _accuse(self, entry: Entry) -> None:
        for problem in entry.suspects:
            self._violated(f"{problem}, which held on to the end")

    def _excuse(self, *problems: str) -> None:
        self.excused.extend(problems)
        if len(self.excused) > EXCUSED:
            self._violated(f"{problems[-1]}: its session had ended, as those of too many others")

    def _violated(self, problem: str) -> None:
        self.violations.append(problem)
        self.over.set()


def _describe(entry: Entry) -> str:
    return f"{entry.name} ({entry.mode}, {entry.node})"
