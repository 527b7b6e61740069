"""A server that grants short sessions, paths, and a place for figures."""

from __future__ import annotations

import typing

import pytest
from ground import Ground, fresh_path, started
from kazoo.client import KazooClient  # type: ignore[import-untyped]


@pytest.fixture(scope="session")
def ground() -> typing.Iterator[Ground]:
    # Sessions of one second, which end at most a quarter of a second late.
    yield from started("standalone tick=250 real")


@pytest.fixture
def path(request: pytest.FixtureRequest, ground: Ground) -> typing.Iterator[str]:
    """The path of a lock that no other test uses. Checks that nobody is in its queue afterwards."""
    path = fresh_path("", request.node.name)
    # Not a container, which the server would delete between two turns, so that the numbers of the nodes would start again.
    ground(f"create {path}")
    yield path
    for child in ground.children(path):
        if child in ("locks", "leases"):
            ground.expect_children(f"{path}/{child}", 0)
            ground(f"delete {path}/{child}")
    ground.expect_children(path, 0)


@pytest.fixture
def kazoo(ground: Ground) -> typing.Iterator[typing.Any]:
    """A kazoo client in this process. kazoo has no types."""
    client: typing.Any = KazooClient(ground("servers"), timeout=4)
    client.start(timeout=30)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> typing.Callable[[str], None]:
    """Prints figures at the end, even of a test that passes."""
    return lambda text: request.node.user_properties.append(("figures", text))


def pytest_terminal_summary(terminalreporter: typing.Any) -> None:
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for key, text in report.user_properties if report.when == "call" else ():
            if key == "figures":
                terminalreporter.write_line(f"{report.nodeid.split('::')[-1]}: {text}")
