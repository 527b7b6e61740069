"""Helpers for the scenarios: calls on separate threads and in both faces, faults, and time limits."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import threading
import time
import typing

from ground import Ground, Proxy

import zklock

# The limit for anything that takes almost no time on an idle machine.
SOON = 30.0

Result = typing.TypeVar("Result")


# Connects a client, which is closed at the end of the test; by default to the servers, with the usual session timeout.
Connect = typing.Callable[..., zklock.Client]


class Far(typing.NamedTuple):
    """A client, and its proxy."""

    zk: zklock.Client
    proxy: Proxy


# Connects a client with these options through its own proxy.
ConnectFar = typing.Callable[..., Far]


def eventually(holds: typing.Callable[[], object], within: float = SOON) -> None:
    """Waits until the condition is true."""
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
    # The thread of an event loop may not wait for it.
    eventually(hold.lost.is_set)


class Stat(typing.NamedTuple):
    """A node's metadata on the server."""

    czxid: int
    owner: int
    version: int

    @classmethod
    def of(cls, ground: Ground, node: str) -> Stat:
        words = dict(word.split("=") for word in ground(f"stat {node}").split())
        return cls(int(words["czxid"], 16), int(words["owner"], 16), int(words["version"]))


class Attempt(typing.Generic[Result]):
    """A call on a separate thread."""

    def __init__(self, call: typing.Callable[[], Result]) -> None:
        self._done: concurrent.futures.Future[Result] = concurrent.futures.Future()
        self._call = call
        # A daemon thread, so that a call that hangs fails its test, but does not block the others.
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._done.set_result(self._call())
        except BaseException as error:
            self._done.set_exception(error)

    def is_over(self) -> bool:
        return self._done.done()

    def wait(self, within: float) -> bool:
        """Whether the call ends within this time."""
        return bool(concurrent.futures.wait([self._done], within).done)

    def result(self, within: float = SOON) -> Result:
        """The result of the call, or its exception, which is raised. Waits for its end."""
        return self._done.result(within)

    def error(self, within: float = SOON) -> BaseException:
        """The exception of the call. Waits for its end."""
        error = self._done.exception(within)
        assert error is not None, "it raised nothing"
        return error


def elsewhere(call: typing.Callable[[], Result]) -> Result:
    """Makes a call on another thread."""
    return Attempt(call).result()


class Face(typing.NamedTuple):
    """One of the two faces, whose methods have the same names. ``face(lock.hold, timeout=5)`` makes a call and waits for it."""

    is_async: bool

    def of(self, client: zklock.Client) -> typing.Any:
        """The client of this face."""
        return client.aio if self.is_async else client

    def enter(self, manager: typing.Any) -> typing.Any:
        """The call that begins a block."""
        return manager.__aenter__ if self.is_async else manager.__enter__

    def exit(self, manager: typing.Any) -> typing.Any:
        """The call that ends a block."""
        return manager.__aexit__ if self.is_async else manager.__exit__

    def __call__(self, call: typing.Callable[..., typing.Any], *arguments: object, **named: object) -> typing.Any:
        """In asyncio in a task and a loop of its own. So it may be made on any thread."""

        async def main() -> typing.Any:
            return await call(*arguments, **named)

        return asyncio.run(main()) if self.is_async else call(*arguments, **named)

    def run(self, main: typing.Coroutine[typing.Any, typing.Any, None]) -> None:
        """Runs a test that makes all its calls in one task, or in this thread, by means of the methods below."""
        if self.is_async:
            return asyncio.run(main)
        try:
            main.send(None)
        except StopIteration:
            return None
        raise AssertionError("the blocking face awaits nothing")

    async def make(self, call: typing.Callable[..., typing.Any], *arguments: object, **named: object) -> typing.Any:
        made = call(*arguments, **named)
        return await made if inspect.isawaitable(made) else made

    async def elsewhere(self, call: typing.Callable[..., typing.Any], *arguments: object, **named: object) -> typing.Any:
        """Makes a call in another task, or in another thread."""
        if self.is_async:
            return await asyncio.create_task(self.make(call, *arguments, **named))
        return elsewhere(lambda: call(*arguments, **named))

    async def fails(self, kind: type[zklock.Error], call: typing.Callable[..., typing.Any], *arguments: object) -> Raised:
        """The exception of a call, which is of exactly this class. A timeout says why: see ``times_out``."""
        for _ in range(20):
            try:
                await self.make(call, *arguments)
            except kind as error:
                assert type(error) is kind, repr(error)
                if str(error) != "the time is up":
                    return Raised(error)
            else:
                raise AssertionError(f"no {kind.__name__}")
        raise AssertionError("no timeout says why")

    @contextlib.asynccontextmanager
    async def block(self, manager: typing.Any) -> typing.AsyncIterator[typing.Any]:
        """A ``with`` block, or an ``async with`` block."""
        if self.is_async:
            async with manager as entered:
                yield entered
        else:
            with manager as entered:
                yield entered


in_asyncio = Face(is_async=True)


class Hook(typing.NamedTuple):
    """Waits for a message at a proxy, and performs an action on it."""

    ground: Ground
    number: str

    def wait(self) -> None:
        """Waits until it has fired."""
        assert self.ground(f"wait {self.number} {int(SOON * 1000)}") == "true", "it never fired"


def hook(proxy: Proxy, what: str, kind: str, path: str = "", nth: int = 1) -> Hook:
    """``hook(proxy, "hold-reply", "create", path)``: the next such message."""
    return Hook(proxy.ground, proxy(what, kind, str(nth), path))


def expire(proxy: Proxy) -> float:
    """Ends the latest session that came through the proxy, and keeps its client out meanwhile. Returns the time before."""
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


class Raised(typing.NamedTuple):
    """The exception of a call."""

    error: zklock.Error

    @classmethod
    def by(cls, kind: type[zklock.Error], call: typing.Callable[[], object]) -> Raised:
        try:
            call()
        except zklock.Error as error:
            # Exactly this class, not a derived one.
            assert type(error) is kind, repr(error)
            return cls(error)
        raise AssertionError(f"no {kind.__name__}")

    def says(self, *parts: str) -> Raised:
        for part in parts:
            assert part in str(self.error), f"{self.error} does not say: {part}"
        return self


raises = Raised.by


def times_out(call: typing.Callable[[], object]) -> Raised:
    """The timeout of a call. On a busy machine it may come before any answer, or too late to say why, but not every time."""
    for _ in range(20):
        with contextlib.suppress(zklock.Unreachable):
            raised = raises(zklock.Timeout, call)
            if str(raised.error) != "the time is up":
                return raised
    raise AssertionError("no timeout says why")
