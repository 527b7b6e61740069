"""An outage does not look like contention: ``False`` and ``Timeout`` mean that somebody else has the lock, ``Unreachable`` that
nobody knows."""

from __future__ import annotations

import typing

from scenes import SOON, ConnectFar, Face, eventually, raises, settled

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
