"""Fixtures for tests of the embedded server: one server each."""

from __future__ import annotations

import typing

import pytest

import zklock
from zklock.testing import Server


@pytest.fixture
def server() -> typing.Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def zk(server: Server) -> typing.Iterator[zklock.Client]:
    """A client of this server, not of the shared ground."""
    with zklock.Client(server.hosts) as client:
        yield client
