"""Fixtures for pytest, which finds them by itself if zklock is installed.

``zklock_server`` is a ``zklock.testing.Server``, a new embedded server for each test. ``zklock_client`` is a
``zklock.Client`` that is connected to it::

    def test_report(zklock_server, zklock_client):
        with zklock_client.mutex("/locks/report", timeout=5):
            assert len(zklock_server.children("/locks/report")) == 1

If you need a server with other options, define a fixture of the same name in your ``conftest.py``::

    @pytest.fixture
    def zklock_server():
        with zklock.testing.Server(tick=0.1, manual_clock=True) as server:
            yield server
"""

from __future__ import annotations

import typing

import pytest

if typing.TYPE_CHECKING:
    from ._zklock import Client
    from .testing import Server


@pytest.fixture
def zklock_server() -> typing.Iterator[Server]:
    """An embedded ZooKeeper server, new for this test: a zklock.testing.Server."""
    from .testing import Server

    with Server() as server:
        yield server


@pytest.fixture
def zklock_client(zklock_server: Server) -> typing.Iterator[Client]:
    """A zklock.Client that is connected to zklock_server."""
    from ._zklock import Client

    with Client(zklock_server.hosts) as client:
        yield client
