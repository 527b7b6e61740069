"""A real server, a chroot of it for each test, and hosts."""

from __future__ import annotations

import pathlib
import typing

import pytest
from ground import Ground, started
from host import Hosts


@pytest.fixture(scope="session")
def ground() -> typing.Iterator[Ground]:
    yield from started("standalone tick=500")


@pytest.fixture
def chroot(request: pytest.FixtureRequest, ground: Ground) -> str:
    """A node without children, as a chroot, so that the paths of the page can stay as they are."""
    path = f"/{request.module.__name__}-{request.node.name}"
    ground(f"create {path}")
    return path


@pytest.fixture
def servers(ground: Ground, chroot: str) -> str:
    return ground("servers") + chroot


@pytest.fixture
def hosts(tmp_path: pathlib.Path) -> typing.Iterator[Hosts]:
    hosts = Hosts(tmp_path)
    yield hosts
    hosts.close()
