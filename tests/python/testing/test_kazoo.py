"""Any client of ZooKeeper can use the embedded server: here kazoo, with its usual features."""

from __future__ import annotations

import queue
import typing

import pytest
from kazoo.client import KazooClient, KazooState  # type: ignore[import-untyped]
from kazoo.exceptions import (  # type: ignore[import-untyped]
    BadVersionError,
    ConnectionLoss,
    InvalidACLError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
)
from kazoo.security import (  # type: ignore[import-untyped]
    CREATOR_ALL_ACL,
    OPEN_ACL_UNSAFE,
    READ_ACL_UNSAFE,
    make_acl,
    make_digest_acl,
)
from scenes import SOON, Attempt, eventually

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


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda kazoo: kazoo.create("/a"), NodeExistsError),
        (lambda kazoo: kazoo.create("/b/c"), NoNodeError),
        (lambda kazoo: kazoo.create("/a/e/c"), NoChildrenForEphemeralsError),
        (lambda kazoo: kazoo.get("/b"), NoNodeError),
        (lambda kazoo: kazoo.get_children("/b"), NoNodeError),
        (lambda kazoo: kazoo.set("/a", b"", version=7), BadVersionError),
        (lambda kazoo: kazoo.delete("/a"), NotEmptyError),
        (lambda kazoo: kazoo.delete("/a/e", version=7), BadVersionError),
        (lambda kazoo: kazoo.create("/b", acl=[make_acl("digest", "x", all=True)]), InvalidACLError),
    ],
)
def test_refusals(kazoo: typing.Any, call: typing.Callable[[typing.Any], object], error: type[Exception]) -> None:
    kazoo.create("/a")
    kazoo.create("/a/e", ephemeral=True)
    with pytest.raises(error):
        call(kazoo)


def test_watches(kazoo: typing.Any, connect: Connect) -> None:
    other = connect()
    events: queue.Queue[typing.Any] = queue.Queue()
    assert kazoo.exists("/a", watch=events.put) is None
    other.create("/a")
    assert events.get(timeout=SOON)[:3:2] == ("CREATED", "/a")
    kazoo.get("/a", watch=events.put)
    kazoo.get_children("/a", watch=events.put)
    other.create("/a/b")
    assert events.get(timeout=SOON)[:3:2] == ("CHILD", "/a")
    other.set("/a", b"x")
    assert events.get(timeout=SOON)[:3:2] == ("CHANGED", "/a")
    # Each watch has fired once.
    other.set("/a", b"y")
    other.delete("/a/b")
    kazoo.sync("/")
    assert events.empty()
    kazoo.get("/a", watch=events.put)
    other.delete("/a")
    assert events.get(timeout=SOON)[:3:2] == ("DELETED", "/a")


def test_data_watch_and_children_watch(kazoo: typing.Any, server: Server) -> None:
    data: queue.Queue[object] = queue.Queue()
    children: queue.Queue[object] = queue.Queue()
    server.put("/a", b"0")

    @kazoo.DataWatch("/a")  # type: ignore[untyped-decorator]
    def changed(value: object, stat: object) -> None:
        data.put(value)

    @kazoo.ChildrenWatch("/a")  # type: ignore[untyped-decorator]
    def grown(names: list[str]) -> None:
        children.put(sorted(names))

    assert (data.get(timeout=SOON), children.get(timeout=SOON)) == (b"0", [])
    for number in range(1, 4):
        server.put("/a", str(number).encode())
        assert data.get(timeout=SOON) == str(number).encode()
        server.put(f"/a/{number}")
        assert children.get(timeout=SOON) == [str(name) for name in range(1, number + 1)]
    # The watchers survive a lost connection.
    server.cut()
    server.put("/a", b"after")
    server.put("/a/after")
    assert data.get(timeout=SOON) == b"after"
    assert children.get(timeout=SOON) == ["1", "2", "3", "after"]
    server.delete("/a")
    assert data.get(timeout=SOON) is None


def test_transaction(kazoo: typing.Any, server: Server) -> None:
    kazoo.create("/a")
    good = kazoo.transaction()
    good.check("/a", version=0)
    good.create("/a/b", b"one")
    good.set_data("/a/b", b"two")
    good.create("/a/s-", sequence=True)
    good.delete("/a/s-0000000001")
    results = good.commit()
    assert (results[0], results[1], results[2].version, results[3:]) == (True, "/a/b", 1, ["/a/s-0000000001", True])
    assert server.data("/a/b") == b"two"
    bad = kazoo.transaction()
    bad.create("/a/c")
    bad.check("/a", version=5)
    bad.delete("/a/b")
    results = bad.commit()
    assert [type(result) for result in results][:2] == [RolledBackError, BadVersionError]
    assert server.children("/a") == ["b"]


def test_digest_authentication(kazoo: typing.Any, connect: Connect) -> None:
    knows = connect(auth_data=[("digest", "user:secret")])
    mine = make_digest_acl("user", "secret", all=True)
    readable = make_acl("world", "anyone", read=True)
    knows.create("/mine", b"x", acl=[mine])
    knows.create("/shown", b"x", acl=[mine, readable])
    assert knows.get("/mine")[0] == b"x"
    for call, *arguments in (
        (kazoo.get, "/mine"),
        (kazoo.set, "/shown", b"y"),
        (kazoo.create, "/mine/a"),
        (kazoo.set_acls, "/shown", OPEN_ACL_UNSAFE),
    ):
        with pytest.raises(NoAuthError):
            call(*arguments)
    assert kazoo.get("/shown")[0] == b"x"
    acls, _ = knows.get_acls("/mine")
    assert acls == [mine]
    wrong = connect(auth_data=[("digest", "user:guess")])
    with pytest.raises(NoAuthError):
        wrong.get("/mine")
    # A client that logs in later has access from then on.
    kazoo.add_auth("digest", "user:secret")
    assert kazoo.get("/mine")[0] == b"x"
    knows.set_acls("/mine", OPEN_ACL_UNSAFE)
    assert wrong.get("/mine")[0] == b"x"


def test_what_the_creator_alone_may_use(kazoo: typing.Any, connect: Connect) -> None:
    """kazoo sends this list with a null id."""
    knows = connect(auth_data=[("digest", "user:secret")])
    mine = [make_digest_acl("user", "secret", all=True)]
    knows.create("/created", acl=CREATOR_ALL_ACL)
    knows.create("/changed")
    knows.set_acls("/changed", CREATOR_ALL_ACL)
    together = knows.transaction()
    together.create("/together", acl=CREATOR_ALL_ACL)
    assert together.commit() == ["/together"]
    for path in ("/created", "/changed", "/together"):
        assert knows.get_acls(path)[0] == mine
        with pytest.raises(NoAuthError):
            kazoo.get(path)
    knows.create("/read", acl=READ_ACL_UNSAFE)
    assert kazoo.get("/read")[0] == b""
    with pytest.raises(InvalidACLError):
        kazoo.create("/nobody", acl=CREATOR_ALL_ACL)


def test_lock_that_its_creator_alone_may_use(kazoo: typing.Any, connect: Connect) -> None:
    knows = connect(auth_data=[("digest", "user:secret")], default_acl=CREATOR_ALL_ACL)
    lock = knows.Lock("/locks/mine", "me")
    assert lock.acquire(timeout=SOON)
    assert lock.contenders() == ["me"]
    with pytest.raises(NoAuthError):
        kazoo.get_children("/locks/mine")
    lock.release()


def test_words(kazoo: typing.Any, server: Server) -> None:
    assert kazoo.server_version() == (3, 8, 0)
    assert kazoo.command(b"ruok") == "imok"
    environment = kazoo.command(b"envi").splitlines()
    assert environment[0] == "Environment:" and all("=" in line for line in environment[1:])
    configured = dict(line.split("=", 1) for line in kazoo.command(b"conf").splitlines())
    assert (configured["clientPort"], configured["tickTime"]) == (server.hosts.split(":")[1], "2000")
    statistics = kazoo.command(b"stat")
    assert "Mode: standalone" in statistics and "Clients:" in statistics
    assert f"sid={kazoo.client_id[0]:#x}," in kazoo.command(b"cons")


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


def states_of(client: typing.Any) -> queue.Queue[typing.Any]:
    states: queue.Queue[typing.Any] = queue.Queue()
    client.add_listener(states.put)
    return states


def test_session_outlives_a_cut(kazoo: typing.Any, server: Server) -> None:
    kazoo.create("/mine", ephemeral=True)
    number = kazoo.client_id
    states = states_of(kazoo)
    server.cut()
    assert [states.get(timeout=SOON), states.get(timeout=SOON)] == [KazooState.SUSPENDED, KazooState.CONNECTED]
    assert kazoo.client_id == number
    assert server.owner("/mine") == number[0]


def test_session_that_expires(kazoo: typing.Any, server: Server) -> None:
    kazoo.create("/mine", ephemeral=True)
    number = kazoo.client_id
    states = states_of(kazoo)
    assert server.expire(number[0]) is True
    assert server.children("/") == ["zookeeper"]
    seen = []
    while KazooState.CONNECTED not in seen:
        seen.append(states.get(timeout=SOON))
    assert KazooState.LOST in seen
    assert kazoo.client_id != number
    eventually(lambda: [session.id for session in server.sessions()] == [kazoo.client_id[0]])


def test_lost_reply(kazoo: typing.Any, server: Server) -> None:
    """The node exists, but kazoo only learns that the connection was lost."""
    injected = server.inject("cut-before-reply", "create", below="/a")
    with pytest.raises(ConnectionLoss):
        kazoo.create("/a")
    assert injected.strikes == 1
    assert server.children("/a") == []
