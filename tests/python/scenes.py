"""What the scenarios have in common: calls on threads of their own, faults on the way, and bounds of time."""

from __future__ import annotations

import concurrent.futures
import socket
import threading
import time
import typing

from ground import Ground, Proxy

import zklock

# How long anything may take that takes no time on an idle machine.
SOON = 30.0
# The delay beyond the deadline that promise 4 allows.
GRACE = 0.05

Result = typing.TypeVar("Result")


class Connect(typing.Protocol):
    """Connects a client, which is closed at the end of the test: by default to the servers, with the usual session."""

    def __call__(
        self,
        hosts: str = ...,
        *,
        session_timeout: float = ...,
        connect_timeout: float = ...,
        try_timeout: float = ...,
    ) -> zklock.Client: ...


class Far(typing.NamedTuple):
    """A client, and the proxy through which it goes."""

    zk: zklock.Client
    proxy: Proxy


class ConnectFar(typing.Protocol):
    """Connects a client through a proxy of its own."""

    def __call__(
        self, *, session_timeout: float = ..., connect_timeout: float = ..., try_timeout: float = ...
    ) -> Far: ...


def eventually(holds: typing.Callable[[], object], within: float = SOON) -> None:
    """Waits until it holds."""
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "never"
        time.sleep(0.005)


def settled(client: zklock.Client) -> None:
    """Waits until the client owes nothing any more."""
    eventually(lambda: client.stats().owed == 0)


def lose(ground: Ground, hold: zklock.BaseHold) -> None:
    """Deletes the node of a hold, and waits until the hold knows of it."""
    ground(f"delete {hold.node}")
    assert hold.lost.wait(SOON)


def sequence(hold: zklock.BaseHold) -> int:
    """The number that the server gave the node."""
    return int(hold.node[-10:])


class Stat(typing.NamedTuple):
    """What the server says of a node."""

    czxid: int
    owner: int
    version: int

    @classmethod
    def of(cls, ground: Ground, node: str) -> Stat:
        words = dict(word.split("=") for word in ground(f"stat {node}").split())
        return cls(int(words["czxid"], 16), int(words["owner"], 16), int(words["version"]))


class Attempt(typing.Generic[Result]):
    """A call on a thread of its own."""

    def __init__(self, call: typing.Callable[[], Result]) -> None:
        self._done: concurrent.futures.Future[Result] = concurrent.futures.Future()
        self._call = call
        self.took = 0.0
        # A daemon: a call that hangs is to fail its test, and not to keep the others from running.
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        begun = time.monotonic()
        try:
            result = self._call()
        except BaseException as error:
            self.took = time.monotonic() - begun
            self._done.set_exception(error)
        else:
            self.took = time.monotonic() - begun
            self._done.set_result(result)

    def is_over(self) -> bool:
        return self._done.done()

    def wait(self, within: float) -> bool:
        """Whether it is over by then."""
        return bool(concurrent.futures.wait([self._done], within).done)

    def result(self, within: float = SOON) -> Result:
        """What it returned, once it has; or it raises what that raised."""
        return self._done.result(within)

    def error(self, within: float = SOON) -> BaseException:
        """What it raised, once it has."""
        error = self._done.exception(within)
        assert error is not None, "it raised nothing"
        return error


def elsewhere(call: typing.Callable[[], Result]) -> Result:
    """Has another thread make a call."""
    return Attempt(call).result()


class Hook(typing.NamedTuple):
    """Watches for a message at a proxy, and does with it what it was told to."""

    ground: Ground
    number: str

    def has_fired(self) -> bool:
        return self.ground(f"fired {self.number}") == "true"

    def wait(self) -> None:
        """Until it has fired."""
        assert self.ground(f"wait {self.number} {int(SOON * 1000)}") == "true", "it never fired"

    def open(self) -> None:
        """Lets the message go that it holds."""
        self.ground(f"open {self.number}")


def hook(proxy: Proxy, what: str, kind: str, path: str = "", nth: int = 1) -> Hook:
    """``hook(proxy, "hold-reply", "create", path)``: the next such message."""
    return Hook(proxy.ground, proxy(what, kind, str(nth), path))


def just_after_a_heartbeat(proxy: Proxy) -> None:
    """The next heartbeat of the client behind the proxy has just been answered."""
    hook(proxy, "see-reply", "multi").wait()


def expire(proxy: Proxy) -> float:
    """Ends the latest session that came through the proxy. Its client is kept out meanwhile. Gives the time before."""
    begun = time.monotonic()
    proxy("refuse", "on")

    def has_ended() -> bool:
        # The server may be busy with the end of the client's own connection.
        try:
            proxy("expire")
        except AssertionError:
            return False
        return True

    eventually(has_ended)
    proxy("refuse", "off")
    return begun


def heard(proxy: Proxy, message: str) -> int:
    """How many messages of this kind and side went through the proxy since it began to record."""
    return sum(said.startswith(message) for said in proxy("messages").split())


def asked(proxy: Proxy) -> list[str]:
    """The requests that were recorded, without those that only keep the session and its lease."""
    requests = [said for said in proxy("messages").split() if said.startswith("request:")]
    return [said for said in requests if not said.startswith(("request:multi:", "request:ping:"))]


class Lateness:
    """By how much the machine is late, at its worst, while it is looked at: by so much anything may be."""

    def __init__(self) -> None:
        self._worst = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._is_over.is_set():
            begun = time.monotonic()
            time.sleep(0.001)
            self._worst = max(self._worst, time.monotonic() - begun - 0.001)

    def __enter__(self) -> Lateness:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def allowance(self) -> float:
        """Where several threads and the servers have a part in it."""
        return 0.1 + 4 * self._worst


def in_time(call: typing.Callable[[], Result], timeout: float) -> Result:
    """Makes a call that is to take this time, and no more than the grace beyond it; and gives its last result.

    What comes late by chance, on a busy machine, does not so time and again.
    """
    took = []
    for _ in range(20):
        begun = time.monotonic()
        result = call()
        took.append(time.monotonic() - begun)
        if took[-1] <= timeout + GRACE:
            return result
    raise AssertionError(f"{took} instead of {timeout} s")


class Raised(typing.NamedTuple):
    """What a call raised."""

    error: zklock.Error

    @classmethod
    def by(cls, kind: type[zklock.Error], call: typing.Callable[[], object]) -> Raised:
        try:
            call()
        except zklock.Error as error:
            # Exactly this one, and not one that is derived from it.
            assert type(error) is kind, repr(error)
            return cls(error)
        raise AssertionError(f"no {kind.__name__}")

    def says(self, *parts: str) -> Raised:
        for part in parts:
            assert part in str(self.error), f"{self.error} does not say: {part}"
        return self


raises = Raised.by


class Listener(typing.NamedTuple):
    """Something that listens at a port and is no ZooKeeper; or that only has the port, and refuses."""

    socket: socket.socket

    @classmethod
    def mute(cls, listens: bool) -> Listener:
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        if listens:
            taken.listen(64)
        return cls(taken)

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.socket.getsockname()[1]}"

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()
