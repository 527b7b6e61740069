"""Records over TCP which peers are inside, for peers in any language, and reports violations of the rules.

It knows nothing of ZooKeeper except the names of nodes. Each message is a line, which begins with a word and the peer's name:

``hello NAME``                   it is connected and about to begin; answered when all of the first peers are
``enter NAME MODE NODE TOKEN``   it has the lock. MODE is x (alone), r (with other readers), s:QUANTITY (of a semaphore);
                                 NODE the name of its node, or - where its library hides that; TOKEN its fencing token, or 0
``down NAME NODE [WHEN]``        it has taken the read side as well, and is about to release the write side, as with ``leave``
``leave NAME [WHEN]``            it still has the lock, or had it at this time of the monotonic clock, and is about to release it
``lost NAME WHY``                it is no longer inside, because it found that it has lost the lock
``note NAME TEXT``               a remark for the report; not answered

The answer to the others is ``go`` or, if the contest is over, ``stop``. A peer only releases the lock after the answer to
``leave``, so a peer that comes in before that was granted the lock too early.
"""

from __future__ import annotations

import collections
import dataclasses
import heapq
import itertools
import math
import random
import re
import selectors
import socket
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
    # Whether peers of zklock's side take the read side within the write side.
    downgrades: bool = False


@dataclasses.dataclass
class Entry:
    """A peer that is inside."""

    name: str
    mode: str
    quantity: int
    node: str
    token: int
    # The problems with this claim and their times, unless its owner turns out to have lost the lock earlier.
    suspects: list[tuple[float, str]] = dataclasses.field(default_factory=list)

    @property
    def zklock(self) -> bool:
        return self.token != 0


class Peer:
    """A connected peer."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = b""
        self.name = ""
        # Since when it waits for the lock.
        self.waits_since: float | None = None


class Register:
    """The record. It has its own thread until it is closed."""

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
        most ``stay`` seconds or, if that is ``None``, until ``let_go``. ``exists`` tells whether a node exists."""
        self.at_most, self.has_shown = at_most, has_shown
        self.rules, self.target, self.first = rules, grants, first
        self.patience, self.stay, self.exists = patience, stay, exists
        self.violations: list[str] = []
        self.notes: list[str] = []
        self.excused: list[str] = []
        self.grants: collections.Counter[str] = collections.Counter()
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
        # How often zklock's writers became readers.
        self.downs = 0
        self._latest: dict[str, tuple[str, str]] = {}
        self._highest: dict[str, int] = {}
        self._token = 0
        self._doomed: set[str] = set()
        self._hellos: list[Peer] = []
        self._staying: list[Peer] = []
        self._peers: list[Peer] = []
        self._answers: list[tuple[float, int, Peer, bytes]] = []
        self._numbers = itertools.count()
        self._closing = False
        self._lock = threading.RLock()
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self.address = "127.0.0.1:{}".format(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, name="register")
        self._thread.start()

    def doom(self, name: str) -> None:
        """Notes that this peer will be killed, so that its end is expected."""
        with self._lock:
            self._doomed.add(name)

    def let_go(self) -> None:
        """Lets the peers leave that have stayed until now. Then the contest is over."""
        with self._lock:
            self.over.set()
            for peer in self._staying:
                self._answers.append((0.0, next(self._numbers), peer, b"go\n"))
            heapq.heapify(self._answers)
            self._staying.clear()

    def present(self) -> list[str]:
        """The names of the peers that take part."""
        with self._lock:
            return [peer.name for peer in self._peers if peer in self._hellos]

    def waiting(self) -> list[str]:
        with self._lock:
            return [peer.name for peer in self._peers if peer.waits_since is not None]

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        for peer in self._peers:
            peer.connection.close()
        self._listener.close()
        self._selector.close()

    def __enter__(self) -> Register:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _serve(self) -> None:
        while not self._closing:
            now = time.monotonic()
            wait = 0.05 if not self._answers else min(0.05, max(0.0, self._answers[0][0] - now))
            for key, _ in self._selector.select(wait):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            now = time.monotonic()
            with self._lock:
                while self._answers and self._answers[0][0] <= now:
                    _, _, peer, answer = heapq.heappop(self._answers)
                    self._send(peer, answer)
                self._look_at_the_clock(now)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(connection)
        with self._lock:
            self._peers.append(peer)
        self._selector.register(connection, selectors.EVENT_READ, peer)

    def _read(self, peer: Peer) -> None:
        try:
            received = peer.connection.recv(4096)
        except OSError:
            received = b""
        with self._lock:
            if not received:
                self._gone(peer)
                return
            peer.received += received
            *lines, peer.received = peer.received.split(b"\n")
            for line in lines:
                self._hear(peer, line.decode(errors="replace"))

    def _send(self, peer: Peer, answer: bytes) -> None:
        try:
            peer.connection.send(answer)
        except OSError:
            pass  # The peer is gone, which the next read shows.

    def _answer(self, peer: Peer) -> None:
        self._send(peer, b"stop\n" if self.over.is_set() else b"go\n")

    def _answer_later(self, peer: Peer) -> None:
        if self.stay is None:
            self._staying.append(peer)
        else:
            due = time.monotonic() + random.uniform(0.0, self.stay)
            heapq.heappush(self._answers, (due, next(self._numbers), peer, b"go\n"))

    def _gone(self, peer: Peer) -> None:
        self._selector.unregister(peer.connection)
        peer.connection.close()
        self._peers.remove(peer)
        entry = self.inside.pop(peer.name, None)
        if entry is not None:
            self._accuse(entry)
        # A peer without a name was killed before it sent one, or has ended, which its status will show.
        if peer.name and peer.name not in self._doomed and not self.over.is_set():
            self._violated(f"{peer.name} has ended by itself")

    def _hear(self, peer: Peer, line: str) -> None:
        word, name, *rest = line.split(" ")
        if word == "note":
            self.notes.append(f"{name}: {' '.join(rest)}")
            return
        now = time.monotonic()
        if word == "hello":
            peer.name = name
            self._hellos.append(peer)
            if len(self._hellos) < self.first:
                return
            for each in self._hellos if len(self._hellos) == self.first else [peer]:
                each.waits_since = now
                self._answer(each)
            self.begun.set()
        elif word == "enter":
            peer.waits_since = None
            self._enter(name, *rest)
            self._answer_later(peer)
        elif word == "down":
            entry = self.inside[name]
            self._accuse(entry, *map(float, rest[1:]))
            entry.mode, entry.node, entry.suspects = "r", rest[0], []
            self.downs += entry.zklock
            self._answer_later(peer)
        elif word in ("leave", "lost"):
            entry = self.inside.pop(name)
            if word == "leave":
                self._accuse(entry, *map(float, rest))
            else:
                self.notes.append(f"{name}: lost: {' '.join(rest)}")
                self._accuse(entry, until=0.0)
            peer.waits_since = None if self.over.is_set() else now
            self._answer(peer)
        else:
            self._violated(f"not a message: {line}")

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
                    other.suspects.append((time.monotonic(), problem))
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

    def _accuse(self, entry: Entry, until: float = math.inf) -> None:
        for when, problem in entry.suspects:
            if when < until:
                self._violated(f"{problem}, which held on to the end")
            else:
                self._excuse(problem)

    def _excuse(self, problem: str) -> None:
        self.excused.append(problem)
        if len(self.excused) > EXCUSED:
            self._violated(f"{problem}: its session had ended, as those of too many others")

    def _violated(self, problem: str) -> None:
        self.violations.append(problem)
        self.over.set()

    def _look_at_the_clock(self, now: float) -> None:
        for peer in self._peers:
            if peer.waits_since is not None and now - peer.waits_since > self.patience:
                self._violated(f"{peer.name} waits for more than {self.patience} s; inside: {list(self.inside)}")
                peer.waits_since = None


def _describe(entry: Entry) -> str:
    return f"{entry.name} ({entry.mode}, {entry.node})"
