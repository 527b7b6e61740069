"""A worker with kazoo (see ../README.md). With --listens, any state of its listener other than "connected" ends a hold."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sys
import threading
import time
import typing

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import LockTimeout
from kazoo.protocol.states import KeeperState
from line import PATIENCE, Register, drawn

# kazoo has no types.
Lock = typing.Any

# At the end: how long a turn may go on by itself, and how long its client may take to close.
GRACE = 1.0
LAST_GRACE = 5.0
# By default kazoo would in the end pause for an hour between tries.
RETRY = {"max_tries": -1, "max_delay": 0.5}


class Session:
    """A client, and how often its listener was told of another state than "connected"."""

    def __init__(self, hosts: str, session_ms: int) -> None:
        self.troubles = 0
        self.client = KazooClient(hosts, timeout=session_ms / 1000, connection_retry=RETRY, command_retry=RETRY)
        self.client.add_listener(self._listen)

    def _listen(self, state: str) -> None:
        if state != KazooState.CONNECTED:
            self.troubles += 1

    def is_closed(self) -> bool:
        return self.client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)

    def close(self) -> None:
        # If stopping fails (OSError, WriterNotClosedException), the session ends with its timeout.
        with contextlib.suppress(Exception):
            self.client.stop()
            self.client.close()

    def lock(self, lock: str, name: str) -> Lock:
        kind, path = lock.split(":", 1)
        if kind == "read":
            return self.client.ReadLock(path, name)
        if kind == "write":
            return self.client.WriteLock(path, name)
        if kind.startswith("semaphore="):
            return self.client.Semaphore(path, name, max_leases=int(kind.partition("=")[2]))
        return self.client.Lock(path, name)

    def forget(self, lock: Lock) -> None:
        # Otherwise kazoo's semaphore would leave a listener behind in each turn.
        self.client.remove_listener(lock._watch_session)


class Worker:
    def __init__(self, hosts: str, session_ms: str, register: str, name: str, seed: str, times: str, locks: list[str], listens: bool) -> None:
        self._hosts, self._session_ms, self._name, self._locks, self._listens = hosts, int(session_ms), name, locks, listens
        self._times = times
        self._chance = random.Random(seed)
        self._register = Register(register)
        self._over = self._register.over
        self._session: Session | None = None
        self._turn = 0

    def run(self) -> None:
        threading.Thread(target=self._end, daemon=True).start()
        try:
            self._register.say("hello", self._name, os.getpid())
            while not self._over.is_set():
                session = self._connected()
                if session:
                    self._take_turn(session)
                    if self._chance.randrange(3) == 0:
                        self._over.wait(self._chance.uniform(0, 0.02))
        finally:
            self._drop_session()

    def _end(self) -> None:
        """Closes the client at the end of the run: a wait in kazoo would not notice that the register has ended."""
        self._over.wait()
        time.sleep(GRACE)
        threading.Thread(target=self._drop_session, daemon=True).start()
        time.sleep(LAST_GRACE)
        os._exit(0)

    def _connected(self) -> Session | None:
        if self._session and self._session.is_closed():
            self._drop_session()
        if not self._session:
            self._session = session = Session(self._hosts, self._session_ms)
            try:
                session.client.start(PATIENCE)
            except Exception as error:  # whatever it is, it is tried again
                logging.error("no connection: %r", error)
                self._drop_session()
                self._over.wait(0.1)
        return self._session

    def _drop_session(self) -> None:
        """Ends the session, and whatever kazoo may have left behind in it."""
        session, self._session = self._session, None
        if session:
            session.close()

    def _take_turn(self, session: Session) -> None:
        self._turn += 1
        chosen = self._chance.choice(self._locks)
        tries = self._chance.randrange(5) == 0
        lock = session.lock(chosen, self._name)
        self._say("want", chosen, time.monotonic_ns())
        # Counted from before the acquire, so that trouble while it returns is noticed.
        before = session.troubles
        try:
            has = lock.acquire(blocking=False) if tries else lock.acquire(timeout=PATIENCE)
            why = "" if has else "busy" if tries else "timeout"
        except LockTimeout:
            has, why = False, "timeout"
        except Exception as error:  # no error of the library ends the worker
            has, why = False, type(error).__name__
        if has and self._listens and session.troubles != before:
            # The lock may be from before the trouble. Nothing was claimed yet, so this counts as not having it.
            why = "suspended"
        now = time.monotonic_ns()
        if why:
            self._say("gave", now, why)
            # If kazoo cannot delete the node of a failed acquire at once, neither cancel() nor release() does it later.
            is_left = has and not self._release(lock)
            if is_left or not has and session.troubles != before or why not in ("busy", "timeout", "suspended"):
                self._drop_session()
            if why not in ("busy", "timeout"):
                self._over.wait(0.1)
        else:
            self._say("have", 0, "-", now)
            self._hold(session, before)
            if not self._release(lock):
                self._drop_session()
            self._say("free", time.monotonic_ns())
        session.forget(lock)

    def _hold(self, session: Session, before: int) -> None:
        longest, step = drawn(self._chance, self._times)
        until = time.monotonic() + longest
        is_last = False
        while not is_last:
            left = until - time.monotonic()
            is_last = left <= 0 or self._over.is_set()
            # The flag is checked after the time was read, so that the claim is not longer than the hold.
            now = time.monotonic_ns()
            if self._listens and session.troubles != before:
                return self._say("lost", time.monotonic_ns(), "listener")
            self._say("done" if is_last else "still", now)
            if not is_last:
                self._over.wait(min(left, step))

    def _release(self, lock: Lock) -> bool:
        try:
            lock.release()
        except Exception as error:  # no error of the library ends the worker
            logging.error("no release: %r", error)
            return False
        return True

    def _say(self, word: str, *rest: object) -> None:
        self._register.say(word, self._turn, *rest)


def main() -> None:
    listens = sys.argv[-1] == "--listens"
    hosts, session_ms, register, name, seed, times, *locks = sys.argv[1 : -1 if listens else None]
    logging.basicConfig(level=logging.ERROR)
    Worker(hosts, session_ms, register, name, seed, times, locks, listens).run()


if __name__ == "__main__":
    main()
