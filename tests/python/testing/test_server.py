"""The methods of the embedded server."""

from __future__ import annotations

import pickle
import socket
import threading
import time
import typing
import weakref

import pytest
from scenes import SOON, Attempt, eventually

import zklock
from zklock.testing import Injected, Server, Session

PATH = "/locks/embedded"


def number_of(zk: zklock.Client) -> int:
    assert zk.session_id is not None
    return zk.session_id


def test_serves_from_the_first_moment() -> None:
    with Server() as server, zklock.Client(server.hosts) as zk:
        with zk.mutex(PATH, timeout=5) as hold:
            assert server.children(PATH) == [hold.node.rpartition("/")[2]]
            assert server.owner(hold.node) == zk.session_id
        assert server.children(PATH) == []


def test_sessions_are_shown(server: Server, zk: zklock.Client) -> None:
    with zk.mutex(PATH) as hold:
        [session] = server.sessions()
        assert session == Session(number_of(zk), 10.0, True, (hold.node,))
    zk.close()
    assert server.sessions() == []


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


def test_a_stated_version_that_is_too_new_is_named_in_the_error() -> None:
    with Server(like="3.4") as server, zklock.Client(server.hosts, server_version=(3, 5)) as zk:
        with pytest.raises(zklock.Refused, match="state 3.4"):
            zk.mutex(PATH).hold(timeout=SOON)


def test_words_are_answered_that_are_allowed() -> None:
    with Server(words="srvr") as server:
        for word, answer in ((b"srvr", "Mode: standalone"), (b"ruok", "not in the whitelist")):
            host, _, port = server.hosts.rpartition(":")
            with socket.create_connection((host, int(port))) as connection, connection.makefile() as answers:
                connection.sendall(word)
                assert answer in answers.read()


def test_a_session_that_has_expired_is_lost_to_its_client(server: Server, zk: zklock.Client) -> None:
    hold = zk.mutex(PATH).hold()
    [session] = server.sessions()
    assert server.expire(session) is True
    assert hold.lost.wait(SOON)
    assert hold.lost.reason is zklock.LossReason.SESSION_EXPIRED
    assert server.expire(session) is server.expire(session.id) is False


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


def test_a_job_is_due_again_when_the_date_lies_in_the_next_period(server: Server, zk: zklock.Client) -> None:
    day = 86_400
    job = zk.job("/jobs/report", every="1d")
    for date in (7.5 * day, 8 * day):
        server.set_date(date)
        with job as run:
            assert run
        record = job.last()
        assert record is not None and record.period == date // day and date <= record.began < date + day
        with job as run:
            assert not run
    server.set_date(7.5 * day)
    with job as run:
        assert not run


def test_a_reply_is_late_by_the_servers_clock(server: Server, zk: zklock.Client) -> None:
    injected = server.inject("delay-reply", "create", delay=3, below=PATH)
    attempt = Attempt(zk.mutex(PATH).hold)
    assert injected.wait(SOON)
    assert not attempt.wait(0.1)
    server.advance(3)
    attempt.result(2).release()


def test_faults_are_aimed(server: Server, zk: zklock.Client) -> None:
    with zklock.Client(server.hosts) as other:
        other_number = number_of(other)
        third = server.inject("cut-after-reply", "create", nth=3, below="/a")
        twice = server.inject("cut_after_reply", "delete", times=2)  # type: ignore[call-overload]
        others = server.inject("cut-after-reply", "create", session=other_number)
        for _ in range(2):
            with zk.mutex("/b/lock"):
                pass
        eventually(lambda: twice.strikes == 2)
        with zk.mutex("/b/lock"):
            pass
        assert (third.strikes, twice.strikes, others.strikes) == (0, 2, 0)
        with other.mutex("/b/lock"):
            assert others.strikes == 1


def test_faults_are_forgotten(server: Server, zk: zklock.Client) -> None:
    injected = server.inject("cut-before-reply", "create")
    server.clear_faults()
    with zk.mutex(PATH):
        assert injected.strikes == 0
        assert injected.wait(0) is False


def test_a_session_outlives_a_cut(server: Server, zk: zklock.Client) -> None:
    with zk.mutex(PATH, timeout=5) as hold:
        assert server.cut() is True
        assert hold.confirm() > 0
        assert server.cut(number_of(zk)) is True
        assert hold.confirm() > 0
    assert zk.stats().sessions == 1
    zk.close()
    assert server.cut(1) is False


def test_refuse_keeps_new_connections_out(server: Server) -> None:
    server.refuse()
    with pytest.raises(zklock.Unreachable):
        zklock.Client(server.hosts, connect_timeout=0.3).connect()
    server.refuse(False)
    zklock.Client(server.hosts, connect_timeout=5).connect()


def test_freeze_stops_all_and_thaw_goes_on(server: Server, zk: zklock.Client) -> None:
    server.freeze()
    attempt = Attempt(zk.mutex(PATH).hold)
    assert not attempt.wait(0.1)
    server.thaw()
    attempt.result().release()


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
    assert server.children("/") == ["zookeeper"]


def test_sequence_goes_on_where_it_is_set(server: Server, zk: zklock.Client) -> None:
    server.put(PATH)
    assert server.set_sequence(PATH, 41) is True
    assert server.set_sequence("/nowhere", 1) is False
    with zk.mutex(PATH) as hold:
        assert hold.node.endswith("-0000000041")


def test_a_node_that_was_released_comes_back(server: Server, zk: zklock.Client) -> None:
    with zk.mutex(PATH) as hold:
        assert server.bring_back(hold.node) is False
    assert server.children(PATH) == []
    assert server.bring_back(hold.node) is True
    assert server.owner(hold.node) == number_of(zk)
    assert server.bring_back(PATH + "/never") is False


def test_waits_for_children(server: Server) -> None:
    assert server.wait_for_children("/a", 0) == []
    waiting = Attempt(lambda: server.wait_for_children("/a", 2, timeout=None))
    server.put("/a/b")
    assert not waiting.wait(0.1)
    server.put("/a/c")
    assert waiting.result() == ["b", "c"]


def test_other_threads_run_while_it_is_waited_for(server: Server) -> None:
    beats = 0
    is_over = threading.Event()

    def beat() -> None:
        nonlocal beats
        while not is_over.is_set():
            beats += 1
            time.sleep(0.001)

    beating = Attempt(beat)
    with pytest.raises(zklock.Timeout):
        server.wait_for_children("/a", 1, timeout=0.5)
    is_over.set()
    beating.result()
    assert beats > 50


def test_close_ends_it(server: Server, zk: zklock.Client) -> None:
    server.close()
    server.close()
    with pytest.raises(zklock.Unreachable):
        zklock.Client(server.hosts, connect_timeout=0.3).connect()
    assert repr(server) == f"<zklock.testing.Server closed, was at {server.hosts}>"


def test_close_ends_waits(server: Server) -> None:
    injected = server.inject("freeze", "create")
    waits: list[Attempt[typing.Any]] = [
        Attempt(lambda: server.wait_for_children("/a", 1, timeout=None)),
        Attempt(injected.wait),
    ]
    assert not waits[0].wait(0.1)
    server.close()
    for wait in waits:
        assert isinstance(wait.error(), zklock.Closed)


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


def test_many_leave_no_thread() -> None:
    before = threading_count()
    for _ in range(30):
        with Server() as server, zklock.Client(server.hosts) as zk, zk.mutex(PATH):
            pass
    # The client's threads stay, one set for the whole process.
    eventually(lambda: threading_count() <= before + 4)


def threading_count() -> int:
    with open("/proc/self/status") as status:
        [count] = [line.split()[1] for line in status if line.startswith("Threads:")]
    return int(count)


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
