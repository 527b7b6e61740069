"""Additional fixtures for the scenarios: both faces, and a client behind a proxy."""

from __future__ import annotations

import typing

import pytest
from conftest import SESSION
from ground import Ground
from scenes import Face, Far

import zklock


@pytest.fixture(params=[False, True], ids=["blocking", "asyncio"])
def face(request: pytest.FixtureRequest) -> Face:
    """For a test that both faces must pass."""
    return Face(request.param)


@pytest.fixture
def far(path: str, ground: Ground) -> typing.Iterator[Far]:
    """A client, whose nodes are gone before the path is checked, and its proxy."""
    proxy = ground.proxy("1")
    with zklock.Client(proxy.hosts, session_timeout=SESSION) as client:
        yield Far(client, proxy)
