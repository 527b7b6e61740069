"""A peer with kazoo: its locks, and locks as programs have made them for themselves."""

from __future__ import annotations

import argparse
import logging
import random
import re
import threading
import time
import typing
import uuid

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss, KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from line import Line, take_rest, words

# kazoo has no types.
Lock = typing.Any

# The contenders of each home-made layout, which one tutorial or another teaches.
HOME_MADE = {
    # Several locks under one node: NAME_lock_0000000001.
    "named": "{name}_lock_",
    # Readers and writers: HOST-R-0000000001, HOST-W-0000000002.
    "host": ".*-[RW]-",
    # GUID-lock-0000000001, which is found by its GUID after a lost reply.
    "guid": ".*-lock-",
    # lock-0000000001, and every child is a contender.
    "plain": "",
    # lock-SESSION0000000001, and whoever queues looks for a node of its session first.
    "session": "lock-",
}


class HomeMade:
    """A lock in one of these layouts."""

    def __init__(self, client: KazooClient, path: str, layout: str, mode: str) -> None:
        above, _, name = path.rpartition("/")
        self._client, self._layout, self._reads = client, layout, mode == "r"
        self._folder = above if layout == "named" else path
        self._contends = re.compile(HOME_MADE[layout].format(name=name))
        self._beginnings = {
            "named": f"{name}_lock_",
            # All programs of this host have the same, so it tells none of them apart.
            "host": "web-1-R-" if self._reads else "web-1-W-",
            "guid": f"{uuid.uuid4()}-lock-",
            "plain": "lock-",
        }

    def acquire(self) -> None:
        self.node = self._queue()
        while ahead := self._ahead():
            changed = threading.Event()
            if self._client.retry(self._client.exists, f"{self._folder}/{ahead}", watch=lambda _: changed.set()):
                changed.wait()

    def release(self) -> None:
        self._client.delete(f"{self._folder}/{self.node}")

    def _queue(self) -> str:
        """Puts a node in the queue. Returns its name."""
        looks = self._layout == "session"
        while True:
            try:
                beginning = self._beginnings.get(self._layout) or f"lock-{self._session()}"
                for child in self._client.get_children(self._folder) if looks else ():
                    if child.startswith(beginning):
                        return str(child)
                node: str = self._client.create(f"{self._folder}/{beginning}", ephemeral=True, sequence=True)
                return node.rpartition("/")[2]
            except ConnectionLoss:
                if self._layout not in ("guid", "session"):
                    raise
                looks = True
                time.sleep(0.05)

    def _session(self) -> int:
        session: tuple[int, bytes] | None = self._client.client_id
        if not session:
            raise ConnectionLoss
        return session[0]

    def _ahead(self) -> str | None:
        """The nearest in the queue for whom this node waits."""
        contenders = filter(self._contends.match, self._client.retry(self._client.get_children, self._folder))
        queue = sorted(contenders, key=lambda child: child if self._layout in ("named", "plain") else child[-10:])
        if self.node not in queue:
            raise NoNodeError(self.node)
        ahead = queue[: queue.index(self.node)]
        return next((other for other in reversed(ahead) if not self._reads or "-W-" in other), None)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--extra-lock-patterns", action="append", default=[])
    parser.add_argument("--home-made", choices=HOME_MADE)


def main() -> None:
    given = words(options)
    logging.basicConfig(level=logging.ERROR)
    line = Line(given.register, given.name)
    client = KazooClient(given.connect, timeout=given.session_ms / 1000, connection_retry={"max_tries": -1, "max_delay": 0.2})
    losses: list[str] = []
    client.add_listener(lambda state: losses.append(state) if state != KazooState.CONNECTED else None)
    client.start()
    goes_on = line.hello()
    while goes_on:
        mode, lock = choose(client, given)
        try:
            lock.acquire()
            before = len(losses)
            line.enter(mode, lock.node)
            goes_on = line.leave() if len(losses) == before else line.lost(losses[-1])
            lock.release()
            take_rest(given)
        except (KazooException, KazooTimeoutError) as error:
            line.note(f"{type(error).__name__}: {error}")
            time.sleep(0.05)
            if given.home_made:
                # The end of the session deletes what it has left in the queue.
                client.restart()
    client.stop()
    client.close()


def choose(client: KazooClient, given: argparse.Namespace) -> tuple[str, Lock]:
    kind = given.kind
    mode = "r" if kind == "rw" and random.randrange(4) else "x"
    if given.home_made:
        return mode, HomeMade(client, given.path, given.home_made, mode)
    if kind == "mutex":
        return mode, client.Lock(given.path, given.name, extra_lock_patterns=given.extra_lock_patterns)
    if kind == "rw":
        return mode, (client.ReadLock if mode == "r" else client.WriteLock)(given.path, given.name)
    raise SystemExit(f"no kind: {kind}")


if __name__ == "__main__":
    main()
