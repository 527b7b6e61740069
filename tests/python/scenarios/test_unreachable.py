"""An outage does not look like contention: ``False`` and ``Timeout`` mean that somebody else has the lock, ``Unreachable`` that
nobody knows."""

from __future__ import annotations

import typing

import pytest
from ground import Ground
from scenes import SOON, Attempt, ConnectFar, Face, Listener, eventually, raises, settled

import zklock

A_WHILE = 0.2


def asks(face: Face, zk: zklock.Client, path: str, timeout: float) -> dict[str, typing.Callable[[], object]]:
    """All calls that wait for others, with this timeout."""
    zks = face.of(zk)
    lock, block = zks.mutex(path), zks.mutex(path, timeout=timeout)
    return {
        "acquire": lambda: face(lock.acquire, timeout=timeout),
        "hold": lambda: face(lock.hold, timeout=timeout),
        "with": lambda: face(block.__aenter__ if face.is_async else block.__enter__),
        "wait": lambda: face(zks.barrier(f"{path}-barrier").wait, timeout=timeout),
        "enter": lambda: face(zks.double_barrier(f"{path}-doors", 2).enter, timeout=timeout),
    }


WAYS = list(asks(Face(False), zklock.Client("nobody.invalid"), "/any", 0))


@pytest.mark.parametrize("way", WAYS)
def test_where_no_server_was_ever_reached(path: str, face: Face, way: str) -> None:
    with Listener.mute(listens=True) as mute:
        client = zklock.Client(mute.hosts, connect_timeout=SOON)
        raises(zklock.Unreachable, asks(face, client, path, A_WHILE)[way]).says(mute.hosts, "check hosts and network")
        client.close()


def test_where_the_connection_is_broken(connect_far: ConnectFar, path: str, face: Face) -> None:
    zk, proxy = connect_far()
    proxy("refuse", "on")
    proxy("reset")
    eventually(lambda: zk.session_id is None or is_cut(zk, path))
    for ask in asks(face, zk, path, A_WHILE).values():
        raised = raises(zklock.Unreachable, ask).says("no server answers")
        assert isinstance(raised.error, ConnectionError)
    proxy("refuse", "off")
    with zk.mutex(path, timeout=SOON):
        pass
    settled(zk)


def is_cut(zk: zklock.Client, path: str) -> bool:
    """Whether the client knows that it has no connection."""
    try:
        zk.mutex(path).hold(timeout=0.02).release()
    except zklock.Unreachable:
        return True
    except zklock.Timeout:
        pass
    return False


@pytest.mark.parametrize("way", ["acquire", "hold", "with"])
def test_where_a_server_takes_a_connection_and_never_answers(
    connect_far: ConnectFar, path: str, face: Face, way: str
) -> None:
    zk, proxy = connect_far(try_timeout=A_WHILE)
    proxy("freeze", "to-client")
    raises(zklock.Unreachable, asks(face, zk, path, 2 * A_WHILE)[way]).says("check hosts and network")
    proxy("thaw")
    with zk.mutex(path, timeout=SOON):
        pass
    settled(zk)


def test_where_the_connection_breaks_under_one_who_waits(
    zk: zklock.Client, connect_far: ConnectFar, ground: Ground, path: str, face: Face
) -> None:
    # However late an answer may be, only a missing connection may cause the error here.
    far, proxy = connect_far(try_timeout=60)
    with zk.mutex(path):
        lock = face.of(far).mutex(path)
        # Long enough to be in the queue, and without a connection, before it is over.
        attempt = Attempt(lambda: face(lock.acquire, timeout=20 * A_WHILE))
        ground.expect_children(path, 2)
        proxy("refuse", "on")
        proxy("reset")
        assert isinstance(attempt.error(), zklock.Unreachable)
        proxy("refuse", "off")
        # With a connection it is contention again.
        eventually(lambda: not is_cut(far, f"{path}-other"))
        assert face(lock.acquire, timeout=5 * A_WHILE) is False
    settled(far)


def test_what_others_have_is_not_to_be_had(zk: zklock.Client, other: zklock.Client, path: str, face: Face) -> None:
    barrier = zk.barrier(f"{path}-barrier")
    barrier.set()
    with zk.mutex(path):
        for way, ask in asks(face, other, path, A_WHILE).items():
            if "acquire" in way or "wait" in way:
                assert ask() is False, way
            else:
                raises(zklock.Timeout, ask)
        settled(other)
    barrier.remove()
