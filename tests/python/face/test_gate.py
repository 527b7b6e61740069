"""A gate: each use of a function or a transport first asks whether the hold covers what the use needs."""

from __future__ import annotations

import inspect
import typing
from unittest import mock

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


async def test_a_coroutine_function_asks_when_it_starts_to_run(
    zk: zklock.Client, path: str, ground: Ground, lapsed: zklock.Hold
) -> None:
    calls: list[int] = []

    async def send(number: int) -> int:
        calls.append(number)
        return number

    hold = await zk.aio.mutex(path).hold()
    gated = hold.gate(send, needs=SHORT)
    assert inspect.iscoroutinefunction(gated) and await gated(1) == 1
    made = gated(2)
    with pytest.raises(zklock.AtRisk):
        await lapsed.gate(send, SHORT)(3)
    lose(ground, hold)
    with pytest.raises(zklock.LockLost):
        await made
    assert calls == [1]


def used(transport: mock.MagicMock) -> list[str]:
    """What was called, and the paths of requests."""
    return [given[0].url.path if name.startswith("handle") else name for name, given, _ in transport.mock_calls]


def test_a_transport_of_httpx_sends_nothing_that_the_hold_does_not_cover(
    zk: zklock.Client, path: str, ground: Ground, lapsed: zklock.Hold
) -> None:
    hold, transport, late = zk.mutex(path).hold(), *(mock.MagicMock(spec=httpx.HTTPTransport) for _ in range(2))
    transport.handle_request.return_value = httpx.Response(200)
    with httpx.Client(transport=hold.gate(transport, SHORT)) as client:
        assert client.get("http://host/1").status_code == 200
        lose(ground, hold)
        raises(zklock.LockLost, lambda: client.get("http://host/2"))
    client = httpx.Client(transport=lapsed.gate(late, SHORT))
    raises(zklock.AtRisk, lambda: client.get("http://host/3"))
    client.close()
    assert (used(transport), used(late)) == (["__enter__", "/1", "__exit__"], ["close"])


async def test_an_asynchronous_transport_of_httpx_too(zk: zklock.Client, path: str, lapsed: zklock.Hold) -> None:
    transport, late = (mock.MagicMock(spec=httpx.AsyncHTTPTransport) for _ in range(2))
    transport.handle_async_request.return_value = httpx.Response(200)
    async with zk.mutex(path) as hold, httpx.AsyncClient(transport=hold.gate(transport, SHORT)) as client:
        assert (await client.get("http://host/1")).status_code == 200
    client = httpx.AsyncClient(transport=lapsed.gate(late, SHORT))
    with pytest.raises(zklock.AtRisk):
        await client.get("http://host/2")
    await client.aclose()
    assert (used(transport), used(late)) == (["__aenter__", "/1", "__aexit__"], ["aclose"])


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
