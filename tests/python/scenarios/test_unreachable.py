"""An outage does not look like contention: ``False`` and ``Timeout`` mean that somebody else has the lock, ``Unreachable`` that
nobody knows."""

from __future__ import annotations

import asyncio
import typing

import pytest
from ground import Ground
from scenes import SOON, Attempt, ConnectFar, Listener, eventually, raises, settled

import zklock

A_WHILE = 0.2


def asks(zk: zklock.Client, path: str, timeout: float) -> dict[str, typing.Callable[[], object]]:
    """All calls that wait for others, with this timeout."""
    lock, barrier, doors = zk.mutex(path), zk.barrier(f"{path}-barrier"), zk.double_barrier(f"{path}-doors", 2)

    def block() -> None:
        with zk.mutex(path, timeout=timeout):
            raise AssertionError("it is held")

    def in_a_loop(ask: typing.Callable[[], typing.Awaitable[object]]) -> typing.Callable[[], object]:
        async def main() -> object:
            return await ask()

        return lambda: asyncio.run(main())

    async def async_block() -> None:
        async with zk.aio.mutex(path, timeout=timeout):
            raise AssertionError("it is held")

    return {
        "acquire": lambda: lock.acquire(timeout=timeout),
        "hold": lambda: lock.hold(timeout=timeout),
        "with": block,
        "aio.acquire": in_a_loop(lambda: lock.aio.acquire(timeout=timeout)),
        "aio.hold": in_a_loop(lambda: lock.aio.hold(timeout=timeout)),
        "async with": in_a_loop(async_block),
        "wait": lambda: barrier.wait(timeout=timeout),
        "aio.wait": in_a_loop(lambda: barrier.aio.wait(timeout=timeout)),
        "enter": lambda: doors.enter(timeout=timeout),
        "aio.enter": in_a_loop(lambda: doors.aio.enter(timeout=timeout)),
    }


WAYS = list(asks(zklock.Client("nobody.invalid"), "/any", 0))


@pytest.mark.parametrize("way", WAYS)
def test_where_no_server_was_ever_reached(path: str, way: str) -> None:
    with Listener.mute(listens=True) as mute:
        client = zklock.Client(mute.hosts, connect_timeout=SOON)
        raises(zklock.Unreachable, asks(client, path, A_WHILE)[way]).says(mute.hosts, "check hosts and network")
        client.close()


@pytest.mark.parametrize("way", WAYS)
def test_where_the_connection_is_broken(connect_far: ConnectFar, path: str, way: str) -> None:
    zk, proxy = connect_far()
    proxy("refuse", "on")
    proxy("reset")
    eventually(lambda: zk.session_id is None or is_cut(zk, path))
    raised = raises(zklock.Unreachable, asks(zk, path, A_WHILE)[way]).says("no server answers")
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


@pytest.mark.parametrize("way", [way for way in WAYS if "wait" not in way and "enter" not in way])
def test_where_a_server_takes_a_connection_and_never_answers(connect_far: ConnectFar, path: str, way: str) -> None:
    zk, proxy = connect_far(try_timeout=A_WHILE)
    proxy("freeze", "to-client")
    raises(zklock.Unreachable, asks(zk, path, 2 * A_WHILE)[way]).says("check hosts and network")
    proxy("thaw")
    with zk.mutex(path, timeout=SOON):
        pass
    settled(zk)


def test_where_the_connection_breaks_under_one_who_waits(
    zk: zklock.Client, connect_far: ConnectFar, ground: Ground, path: str
) -> None:
    # However late an answer may be, only a missing connection may cause the error here.
    far, proxy = connect_far(try_timeout=60)
    with zk.mutex(path):
        lock = far.mutex(path)
        attempt = Attempt(lambda: lock.acquire(timeout=5 * A_WHILE))
        ground.expect_children(path, 2)
        proxy("refuse", "on")
        proxy("reset")
        assert isinstance(attempt.error(), zklock.Unreachable)
        proxy("refuse", "off")
        # With a connection it is contention again.
        eventually(lambda: not is_cut(far, f"{path}-other"))
        assert lock.acquire(timeout=5 * A_WHILE) is False
        raises(zklock.Timeout, lambda: lock.hold(timeout=5 * A_WHILE)).says("others are before us")
    settled(far)


def test_what_others_have_is_not_to_be_had(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    barrier = zk.barrier(f"{path}-barrier")
    barrier.set()
    with zk.mutex(path):
        for way, ask in asks(other, path, A_WHILE).items():
            if "acquire" in way or "wait" in way:
                assert ask() is False, way
            else:
                raises(zklock.Timeout, ask)
        settled(other)
    barrier.remove()
