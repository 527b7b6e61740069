"""Connections, outages and lost sessions are reported, by callback and on request."""

from __future__ import annotations

import queue
import typing

from conftest import SESSION
from ground import Ground
from scenes import SOON, Far, eventually, expire, raises

import zklock
from zklock import ConnectionState

CONNECTED, DISCONNECTED = ConnectionState.CONNECTED, ConnectionState.DISCONNECTED
SESSION_LOST, CLOSED = ConnectionState.SESSION_LOST, ConnectionState.CLOSED


class Listener:
    """Keeps the reported states."""

    def __init__(self, client: zklock.Client | zklock.AsyncClient) -> None:
        self._states: queue.Queue[ConnectionState] = queue.Queue()
        client.on_connection(self._states.put)

    def next(self) -> ConnectionState:
        return self._states.get(timeout=SOON)

    def has_heard_nothing(self) -> bool:
        return self._states.empty()


def test_a_client_that_connects_later_tells_of_that(ground: Ground) -> None:
    proxy = ground.proxy("1")
    proxy("refuse", "on")
    zk = zklock.Client(proxy.hosts, session_timeout=SESSION, connect_timeout=0.3)
    listener = Listener(zk)
    assert zk.connection_state is None
    assert isinstance(raises(zklock.Unreachable, zk.connect).says(proxy.hosts).error, ConnectionError)
    assert listener.has_heard_nothing() and zk.connection_state is None
    proxy("refuse", "off")
    with zk:
        assert listener.next() is CONNECTED
        assert zk.connection_state is CONNECTED
        # A callback that is added later gets the current state.
        late = Listener(zk.aio)
        assert late.next() is CONNECTED
        expire(proxy)
        for each in (listener, late):
            while each.next() is not SESSION_LOST:
                pass
            assert each.next() is CONNECTED
    for each in (listener, late):
        assert each.next() is CLOSED and each.has_heard_nothing()


def test_a_callback_that_raises_is_reported_and_called_again_and_harms_no_other(
    far: Far, unraisable: list[typing.Any]
) -> None:
    zk, proxy = far
    failure = ValueError("in the callback")

    def fail(state: ConnectionState) -> None:
        raise failure

    zk.on_connection(fail)
    listener = Listener(zk)
    assert listener.next() is CONNECTED
    proxy("reset")
    assert listener.next() is DISCONNECTED
    assert listener.next() is CONNECTED
    zk.close()
    assert listener.next() is CLOSED
    eventually(lambda: [(report.exc_value, report.object) for report in unraisable] == [(failure, fail)] * 4)
