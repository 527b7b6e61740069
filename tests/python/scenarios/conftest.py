"""Additional fixtures for the scenarios: both faces, more clients, and clients behind proxies."""

from __future__ import annotations

import contextlib
import typing

import pytest
from conftest import SESSION
from ground import Ground
from scenes import Connect, ConnectFar, Face, Far

import zklock


@pytest.fixture(params=[False, True], ids=["blocking", "asyncio"])
def face(request: pytest.FixtureRequest) -> Face:
    """For a test that both faces must pass."""
    return Face(request.param)


@pytest.fixture
def connect(path: str, hosts: str) -> typing.Iterator[Connect]:
    servers = hosts
    with contextlib.ExitStack() as clients:

        def connect(hosts: str = servers, **options: typing.Any) -> zklock.Client:
            options.setdefault("session_timeout", SESSION)
            return clients.enter_context(zklock.Client(hosts, **options))

        yield connect


@pytest.fixture
def connect_far(connect: Connect, ground: Ground) -> ConnectFar:
    def connect_far(**options: typing.Any) -> Far:
        proxy = ground.proxy("1")
        return Far(connect(proxy.hosts, **options), proxy)

    return connect_far


@pytest.fixture
def far(connect_far: ConnectFar) -> Far:
    """One such client."""
    return connect_far()
