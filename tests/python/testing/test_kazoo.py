"""Any client of ZooKeeper can use the embedded server: here kazoo, which reads, writes and locks."""

from __future__ import annotations

import typing

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from scenes import SOON, Attempt

import zklock
from zklock.testing import Server

Connect = typing.Callable[..., typing.Any]


@pytest.fixture
def connect(server: Server) -> typing.Iterator[Connect]:
    clients = []

    def connect(**options: typing.Any) -> typing.Any:
        client: typing.Any = KazooClient(server.hosts, timeout=10, **options)
        clients.append(client)
        client.start(timeout=SOON)
        return client

    yield connect
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def kazoo(connect: Connect) -> typing.Any:
    return connect()


def test_nodes(kazoo: typing.Any, server: Server) -> None:
    assert kazoo.create("/a", b"one") == "/a"
    data, stat = kazoo.get("/a")
    assert (data, stat.version, stat.dataLength, stat.ephemeralOwner) == (b"one", 0, 3, 0)
    assert kazoo.set("/a", b"two", version=0).version == 1
    assert server.data("/a") == b"two"
    path, created = kazoo.create("/a/b", include_data=True)
    assert (path, created.czxid) == ("/a/b", kazoo.get("/a/b")[1].czxid)
    assert kazoo.create("/a/s-", sequence=True) == "/a/s-0000000001"
    kazoo.create("/a/e", ephemeral=True)
    assert server.owner("/a/e") == kazoo.client_id[0]
    assert sorted(kazoo.get_children("/a")) == server.children("/a") == ["b", "e", "s-0000000001"]
    children, stat = kazoo.get_children("/a", include_data=True)
    assert (len(children), stat.numChildren, stat.cversion) == (3, 3, 3)
    assert kazoo.exists("/a/b").numChildren == 0
    assert kazoo.exists("/a/c") is None
    kazoo.ensure_path("/x/y/z")
    kazoo.sync("/x")
    kazoo.delete("/x", recursive=True)
    assert server.children("/x") is None


def test_words_that_are_not_allowed() -> None:
    with Server(words="srvr") as server:
        client: typing.Any = KazooClient(server.hosts)
        client.start(timeout=SOON)
        assert "Mode: standalone" in client.command(b"srvr")
        for word in (b"envi", b"stat", b"conf", b"cons", b"mntr", b"ruok"):
            assert "not in the whitelist" in client.command(word)
        client.stop()
        client.close()


def test_lock(kazoo: typing.Any, connect: Connect, server: Server) -> None:
    first, second = kazoo.Lock("/lock", "first"), connect().Lock("/lock", "second")
    assert first.acquire(timeout=SOON)
    assert second.acquire(blocking=False) is False
    waiting = Attempt(lambda: second.acquire(timeout=SOON))
    server.wait_for_children("/lock", 2)
    assert first.contenders() == ["first", "second"]
    first.release()
    assert waiting.result() is True
    second.release()


def test_lock_beside_ours(kazoo: typing.Any, zk: zklock.Client, server: Server) -> None:
    theirs = kazoo.Lock("/lock")
    assert theirs.acquire(timeout=SOON)
    waiting = Attempt(zk.mutex("/lock", dialect="kazoo").hold)
    server.wait_for_children("/lock", 2)
    assert not waiting.wait(0.05)
    theirs.release()
    waiting.result().release()
