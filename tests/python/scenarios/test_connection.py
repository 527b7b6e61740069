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


def reported(client: zklock.Client | zklock.AsyncClient) -> queue.Queue[ConnectionState]:
    """The states that are reported from now on."""
    states: queue.Queue[ConnectionState] = queue.Queue()
    client.on_connection(states.put)
    return states


def test_a_client_that_connects_later_tells_of_that(ground: Ground) -> None:
    proxy = ground.proxy("1")
    proxy("refuse", "on")
    zk = zklock.Client(proxy.hosts, session_timeout=SESSION, connect_timeout=0.3)
    states = reported(zk)
    assert zk.connection_state is None
    assert isinstance(raises(zklock.Unreachable, zk.connect).says(proxy.hosts).error, ConnectionError)
    assert states.empty() and zk.connection_state is None
    proxy("refuse", "off")
    with zk:
        assert states.get(timeout=SOON) is CONNECTED
        assert zk.connection_state is CONNECTED
        # A callback that is added later gets the current state.
        late = reported(zk.aio)
        assert late.get(timeout=SOON) is CONNECTED
        expire(proxy)
        for each in (states, late):
            while each.get(timeout=SOON) is not SESSION_LOST:
                pass
            assert each.get(timeout=SOON) is CONNECTED
    for each in (states, late):
        assert each.get(timeout=SOON) is CLOSED and each.empty()


def test_a_callback_that_raises_is_reported_and_called_again_and_harms_no_other(
    far: Far, unraisable: list[typing.Any]
) -> None:
    zk, proxy = far
    failure = ValueError("in the callback")

    def fail(state: ConnectionState) -> None:
        raise failure

    zk.on_connection(fail)
    states = reported(zk)
    assert states.get(timeout=SOON) is CONNECTED
    proxy("reset")
    assert states.get(timeout=SOON) is DISCONNECTED
    assert states.get(timeout=SOON) is CONNECTED
    zk.close()
    assert states.get(timeout=SOON) is CLOSED
    eventually(lambda: [(report.exc_value, report.object) for report in unraisable] == [(failure, fail)] * 4)
