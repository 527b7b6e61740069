"""A gate: each use of a function or a transport first asks whether the hold covers what the use needs."""

from __future__ import annotations

import asyncio
import inspect
import typing

import httpx
import pytest
from ground import Ground
from scenes import eventually, lose, raises

import zklock

# Less than any lease here has left.
SHORT = 0.001


@pytest.fixture
def lapsed(hosts: str, path: str) -> typing.Iterator[zklock.Hold]:
    """A hold whose lease has lapsed, though it is not lost: nothing proves it any more."""
    with zklock.Client(hosts, session_timeout=1, heartbeat=False) as zk, zk.mutex(f"{path}-lapsed") as hold:
        eventually(lambda: hold.valid_for() == 0)
        yield hold


def test_a_function_is_called_only_if_the_hold_covers_it(
    zk: zklock.Client, path: str, ground: Ground, lapsed: zklock.Hold
) -> None:
    calls: list[object] = []

    def send(first: int, *, second: str = "b") -> int:
        """Sends it."""
        calls.append((first, second))
        return first

    hold = zk.mutex(path).hold()
    gated = hold.gate(send, SHORT)
    assert gated(1, second="c") == 1 and gated(2) == 2
    raises(zklock.AtRisk, lambda: lapsed.gate(send, SHORT)(3))
    # No lease of a session is longer than that.
    raises(zklock.InvalidInput, lambda: hold.gate(send, needs=1000.0)(4))
    assert gated.__name__ == "send" and gated.__doc__ == "Sends it." and inspect.signature(gated) == inspect.signature(send)
    lose(ground, hold)
    raises(zklock.LockLost, lambda: gated(5))
    assert calls == [(1, "c"), (2, "b")]


def test_a_coroutine_function_asks_when_it_starts_to_run(
    zk: zklock.Client, path: str, ground: Ground, lapsed: zklock.Hold
) -> None:
    calls: list[int] = []

    async def send(number: int) -> int:
        calls.append(number)
        return number

    async def main() -> None:
        hold = await zk.aio.mutex(path).hold()
        gated = hold.gate(send, needs=SHORT)
        assert inspect.iscoroutinefunction(gated) and await gated(1) == 1
        made = gated(2)
        with pytest.raises(zklock.AtRisk):
            await lapsed.gate(send, SHORT)(3)
        lose(ground, hold)
        with pytest.raises(zklock.LockLost):
            await made

    asyncio.run(main())
    assert calls == [1]


class Transport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Notes what it is used for."""

    def __init__(self) -> None:
        self.used: list[str] = []

    def __enter__(self) -> typing.Any:
        self.used.append("enter")

    def __exit__(self, *raised: object) -> None:
        self.used.append("exit")

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.used.append(request.url.path)
        return httpx.Response(200)

    def close(self) -> None:
        self.used.append("close")

    async def __aenter__(self) -> typing.Any:
        self.__enter__()

    async def __aexit__(self, *raised: object) -> None:
        self.__exit__()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)

    async def aclose(self) -> None:
        self.close()


def test_a_transport_of_httpx_sends_nothing_that_the_hold_does_not_cover(
    zk: zklock.Client, path: str, ground: Ground, lapsed: zklock.Hold
) -> None:
    hold, transport, late = zk.mutex(path).hold(), Transport(), Transport()
    with httpx.Client(transport=hold.gate(transport, SHORT)) as client:
        assert client.get("http://host/1").status_code == 200
        lose(ground, hold)
        raises(zklock.LockLost, lambda: client.get("http://host/2"))
    client = httpx.Client(transport=lapsed.gate(late, SHORT))
    raises(zklock.AtRisk, lambda: client.get("http://host/3"))
    client.close()
    assert (transport.used, late.used) == (["enter", "/1", "exit"], ["close"])


async def test_an_asynchronous_transport_of_httpx_too(zk: zklock.Client, path: str, lapsed: zklock.Hold) -> None:
    transport, late = Transport(), Transport()
    async with zk.mutex(path) as hold, httpx.AsyncClient(transport=hold.gate(transport, SHORT)) as client:
        assert (await client.get("http://host/1")).status_code == 200
    client = httpx.AsyncClient(transport=lapsed.gate(late, SHORT))
    with pytest.raises(zklock.AtRisk):
        await client.get("http://host/2")
    await client.aclose()
    assert (transport.used, late.used) == (["enter", "/1", "exit"], ["close"])


def test_anything_else_is_refused(zk: zklock.Client, path: str) -> None:
    async def coroutine() -> None: ...

    with zk.mutex(path) as hold:
        # It would be checked when it is made, not when it runs.
        raises(zklock.InvalidInput, hold.gate(lambda: coroutine(), SHORT)).says("would only run later")
        gate = typing.cast("typing.Any", hold.gate)
        for wrong in (5, None, "send", object(), int, httpx.HTTPTransport):
            raises(zklock.InvalidInput, lambda: gate(wrong)).says("gate", "httpx transport")
        for needs in (-1.0, float("nan")):
            raises(zklock.InvalidInput, lambda: gate(len, needs=needs)).says("needs")
