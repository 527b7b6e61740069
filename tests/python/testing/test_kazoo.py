"""Any client of ZooKeeper can use the embedded server: here kazoo, whose requests go in and whose watches come out."""

from __future__ import annotations

import typing

from kazoo.client import KazooClient  # type: ignore[import-untyped]
from scenes import SOON, Attempt

from zklock.testing import Server


def test_kazoo_locks(server: Server) -> None:
    clients: list[typing.Any] = [KazooClient(server.hosts, timeout=10) for _ in range(2)]
    for client in clients:
        client.start(timeout=SOON)
    first, second = clients[0].Lock("/lock", "first"), clients[1].Lock("/lock", "second")
    assert first.acquire(timeout=SOON)
    assert second.acquire(blocking=False) is False
    waiting = Attempt(lambda: second.acquire(timeout=SOON))
    server.wait_for_children("/lock", 2)
    assert first.contenders() == ["first", "second"]
    first.release()
    assert waiting.result() is True
    second.release()
    for client in clients:
        client.stop()
        client.close()
