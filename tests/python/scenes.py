"""Helpers for the scenarios: calls on separate threads and in both faces, faults, and time limits."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import inspect
import threading
import time
import typing

import pytest
from ground import Ground, Proxy

import zklock

# The limit for anything that takes almost no time on an idle machine.
SOON = 30.0

Result = typing.TypeVar("Result")


class Far(typing.NamedTuple):
    """A client, and its proxy."""

    zk: zklock.Client
    proxy: Proxy


def eventually(holds: typing.Callable[[], object], within: float = SOON, says: typing.Callable[[], object] = lambda: "never") -> None:
    """Waits until the condition is true, or says what is wrong."""
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, says()
        time.sleep(0.005)


def without_garbage(holds: typing.Callable[[], object]) -> None:
    """Waits until the condition is true, while garbage is collected."""
    eventually(lambda: gc.collect() >= 0 and holds())


def settled(client: zklock.Client) -> None:
    """Waits until the client owes nothing any more."""
    eventually(lambda: client.stats().owed == 0)


def lose(ground: Ground, hold: zklock.BaseHold) -> None:
    """Deletes the node of a hold, and waits until the hold knows of it."""
    ground(f"delete {hold.node}")
    # The thread of an event loop may not wait for it.
    eventually(hold.lost.is_set)


def stat(ground: Ground, node: str) -> dict[str, int]:
    """A node's metadata on the server."""
    return {name: int(value, 0) for name, value in (word.split("=") for word in ground(f"stat {node}").split())}


class Attempt(concurrent.futures.Future[Result]):
    """A call on a separate thread."""

    def __init__(self, call: typing.Callable[[], Result]) -> None:
        super().__init__()
        # A daemon thread, so that a call that hangs fails its test, but does not block the others.
        threading.Thread(target=self._run, args=[call], daemon=True).start()

    def _run(self, call: typing.Callable[[], Result]) -> None:
        try:
            self.set_result(call())
        except BaseException as error:
            self.set_exception(error)

    def wait(self, within: float) -> bool:
        """Whether the call ends within this time."""
        return bool(concurrent.futures.wait([self], within).done)

    def result(self, timeout: float | None = SOON) -> Result:
        """The result of the call, or its exception, which is raised. Waits for its end."""
        return super().result(timeout)


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
        """The exception of a call, which is of exactly this class."""
        with pytest.raises(kind) as raised:
            await self.make(call, *arguments)
        assert type(raised.value) is kind, repr(raised.value)
        return Raised(raised.value)

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

    def open(self) -> None:
        """Lets go what it holds."""
        self.ground(f"open {self.number}")


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


class Raised(typing.NamedTuple):
    """The exception of a call."""

    error: zklock.Error

    def says(self, *parts: str) -> Raised:
        for part in parts:
            assert part in str(self.error), f"{self.error} does not say: {part}"
        return self


def raises(kind: type[zklock.Error], call: typing.Callable[[], object]) -> Raised:
    """The exception of a call, which is of exactly this class, not of a derived one."""
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind, repr(raised.value)
    return Raised(raised.value)


def times_out(call: typing.Callable[[], object]) -> Raised:
    """The timeout of a call. On a busy machine it may come before any answer, or too late to say why, but not every time."""
    for _ in range(20):
        with contextlib.suppress(zklock.Unreachable):
            raised = raises(zklock.Timeout, call)
            if str(raised.error) != "the time is up":
                return raised
    raise AssertionError("no timeout says why")
