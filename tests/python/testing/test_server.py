"""The methods of the embedded server, each once. What the server does with them is proved by its own scenarios in Rust."""

from __future__ import annotations

import pickle
import socket
import typing
import weakref

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from scenes import SOON, Attempt, eventually

import zklock
from zklock.testing import Injected, Server, Session

PATH = "/locks/embedded"


def number_of(zk: zklock.Client) -> int:
    assert zk.session_id is not None
    return zk.session_id


def test_sessions_are_shown_and_expire(server: Server, zk: zklock.Client) -> None:
    hold = zk.mutex(PATH).hold()
    [session] = server.sessions()
    assert session == Session(number_of(zk), 10.0, True, (hold.node,))
    assert server.owner(hold.node) == session.id
    assert server.expire(session) is True
    assert hold.lost.wait(SOON) and hold.lost.reason is zklock.LossReason.SESSION_EXPIRED
    assert server.expire(session) is server.expire(session.id) is False


def test_timeouts_of_sessions_are_bounded() -> None:
    with Server(tick=0.1) as by_tick, Server(session_timeouts=(1, 3.5)) as by_themselves:
        for server, granted in ((by_tick, (0.2, 2.0)), (by_themselves, (1.0, 3.5))):
            for wanted, bound in zip((0.1, 999.0), granted):
                with zklock.Client(server.hosts, session_timeout=wanted) as zk:
                    assert zk.session_timeout == bound


@pytest.mark.parametrize("like", ["3.8", "3.4", "keeper-25"])
def test_locks_work_on_each_server_that_is_copied(like: typing.Literal["3.8", "3.4", "keeper-25"]) -> None:
    with Server(like=like) as server, zklock.Client(server.hosts) as zk, zk.mutex(PATH, timeout=5) as hold:
        assert hold.token > 0


def test_words_are_answered_that_are_allowed() -> None:
    with Server(words="srvr") as server:
        for word, answer in ((b"srvr", "Mode: standalone"), (b"ruok", "not in the whitelist")):
            host, _, port = server.hosts.rpartition(":")
            with socket.create_connection((host, int(port))) as connection, connection.makefile() as answers:
                connection.sendall(word)
                assert answer in answers.read()


def test_time_goes_on_at_a_word() -> None:
    with Server(manual_clock=True) as server, zklock.Client(server.hosts, session_timeout=30) as zk:
        [session] = server.sessions()
        assert server.freeze(session) is True
        server.advance(29)
        assert [one.id for one in server.sessions()] == [session.id]
        server.advance(3)
        assert server.sessions() == []
        server.thaw()
        eventually(lambda: zk.stats().sessions == 2)


def test_a_reply_is_late_by_the_servers_clock(server: Server, zk: zklock.Client) -> None:
    injected = server.inject("delay-reply", "create", delay=3, below=PATH)
    attempt = Attempt(zk.mutex(PATH).hold)
    assert injected.wait(SOON)
    assert not attempt.wait(0.1)
    server.advance(3)
    attempt.result(2).release()


def test_faults_are_aimed_and_forgotten(server: Server, zk: zklock.Client) -> None:
    with zklock.Client(server.hosts) as other:
        third = server.inject("cut-after-reply", "create", nth=3, below="/a")
        twice = server.inject("cut_after_reply", "delete", times=2)  # type: ignore[call-overload]
        others = server.inject("cut-after-reply", "create", session=number_of(other))
        for _ in range(2):
            with zk.mutex("/b/lock"):
                pass
        eventually(lambda: twice.strikes == 2)
        with zk.mutex("/b/lock"):
            pass
        assert (third.strikes, twice.strikes, others.strikes) == (0, 2, 0)
        server.clear_faults()
        with other.mutex("/b/lock"):
            assert others.strikes == 0 and others.wait(0) is False


def test_connections_are_cut_refused_and_frozen(server: Server, zk: zklock.Client) -> None:
    with zk.mutex(PATH, timeout=5) as hold:
        assert server.cut() is True and hold.confirm() > 0
        assert server.cut(number_of(zk)) is True and hold.confirm() > 0
        server.refuse()
        with pytest.raises(zklock.Unreachable):
            zklock.Client(server.hosts, connect_timeout=0.3).connect()
        server.refuse(False)
        zklock.Client(server.hosts, connect_timeout=5).connect()
    server.freeze()
    attempt = Attempt(zk.mutex(PATH).hold)
    assert not attempt.wait(0.1)
    server.thaw()
    attempt.result().release()
    assert server.cut(1) is False


def test_nodes_are_put_and_deleted(server: Server) -> None:
    assert server.children("/a") is None
    assert server.data("/a") is None
    server.put("/a/b/c", b"one")
    server.put("/a/b/d", bytearray(b"two"))
    server.put("/a/b/c", b"three")
    assert server.children("/a/b") == ["c", "d"]
    assert (server.data("/a/b/c"), server.data("/a/b/d"), server.data("/a")) == (b"three", b"two", b"")
    assert server.owner("/a/b/c") is None
    assert server.dump("/a") == '/a\n/a/b\n/a/b/c "three"\n/a/b/d "two"\n'
    assert "/a/b/c" in server.dump() and "/zookeeper" in server.dump()
    assert server.delete("/a") is True
    assert server.delete("/a") is False


def test_a_node_has_the_number_that_is_set_and_comes_back(server: Server, zk: zklock.Client) -> None:
    server.put(PATH)
    assert server.set_sequence(PATH, 41) is True
    assert server.set_sequence("/nowhere", 1) is False
    with zk.mutex(PATH) as hold:
        assert hold.node.endswith("-0000000041")
        assert server.bring_back(hold.node) is False
    assert server.children(PATH) == []
    assert server.bring_back(hold.node) is True
    assert server.owner(hold.node) == number_of(zk)


def test_other_threads_run_while_children_are_waited_for(server: Server) -> None:
    assert server.wait_for_children("/a", 0) == []
    waiting = Attempt(lambda: server.wait_for_children("/a", 2, timeout=None))
    server.put("/a/b")
    assert not waiting.wait(0.1)
    server.put("/a/c")
    assert waiting.result() == ["b", "c"]


def test_close_ends_it_and_its_waits(server: Server) -> None:
    injected = server.inject("freeze", "create")
    waits: list[Attempt[typing.Any]] = [
        Attempt(lambda: server.wait_for_children("/a", 1, timeout=None)),
        Attempt(injected.wait),
    ]
    assert not waits[0].wait(0.1)
    for _ in range(2):
        server.close()
    for wait in waits:
        with pytest.raises(zklock.Closed):
            wait.result()
    with pytest.raises(zklock.Unreachable):
        zklock.Client(server.hosts, connect_timeout=0.3).connect()
    assert repr(server) == f"<zklock.testing.Server closed, was at {server.hosts}>"


def test_one_that_is_forgotten_ends() -> None:
    server = Server()
    hosts, gone = server.hosts, weakref.ref(server)
    del server
    assert gone() is None

    def is_free() -> bool:
        try:
            Server(listen=hosts).close()
        except zklock.Refused:
            return False
        return True

    eventually(is_free)


def test_what_it_looks_like(server: Server) -> None:
    injected = server.inject("freeze", "get-data")
    assert repr(server) == f"<zklock.testing.Server at {server.hosts}>"
    assert repr(injected) == "<zklock.testing.Injected freeze at get-data>"
    assert (type(server).__module__, type(injected).__module__) == ("zklock.testing", "zklock.testing")


def test_cannot_be_pickled(server: Server) -> None:
    injected: Injected = server.inject("freeze", "multi")
    for thing in (server, injected):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(thing)
    assert pickle.loads(pickle.dumps(server.sessions())) == []


def test_kazoo_locks(server: Server) -> None:
    # Any client can use it: here requests go in, and watches come out.
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
