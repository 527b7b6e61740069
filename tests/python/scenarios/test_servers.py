"""A server of ZooKeeper 3.4, which lacks some requests of later ones."""

from __future__ import annotations

import asyncio
import contextlib
import typing

import pytest
from ground import Ground
from scenes import SOON, raises

import zklock


@pytest.fixture(scope="module")
def old() -> typing.Iterator[Ground]:
    with contextlib.closing(Ground()) as ground:
        ground("start standalone version=3.4.14 tick=200")
        yield ground


@pytest.mark.parametrize("version", [None, (3, 4)])
def test_a_lock_is_held_on_an_old_server(old: Ground, version: tuple[int, int] | None) -> None:
    path = "/locks/old"
    with zklock.Client(old("servers"), session_timeout=4, server_version=version) as zk, zklock.Client(
        old("servers"), session_timeout=4
    ) as other:
        with zk.mutex(path) as hold:
            assert hold.valid_for() > 0 and hold.confirm() > 0
            # Giving up leaves the connection as it is.
            raises(zklock.Timeout, lambda: other.mutex(path).hold(timeout=0.1))
        other.mutex(path).hold(timeout=SOON).release()
        assert other.stats().sessions == 1

        async def in_a_task() -> None:
            async with zk.aio.mutex(path) as hold:
                assert hold.valid_for() > 0

        asyncio.run(in_a_task())
    old.expect_free(path)


def test_what_an_old_server_cannot_do_is_refused_and_the_session_goes_on(old: Ground) -> None:
    with zklock.Client(old("servers"), session_timeout=4) as zk:
        pair = [zk.mutex("/locks/old-a"), zk.mutex("/locks/old-b")]
        raises(zklock.Refused, lambda: zk.all(pair).hold(timeout=SOON)).says("a set of locks needs ZooKeeper 3.5")
        with pair[0]:
            assert zk.stats().sessions == 1


def test_a_version_that_is_too_new_is_named_in_the_error(old: Ground) -> None:
    with zklock.Client(old("servers"), session_timeout=4, server_version=(3, 5)) as zk:
        raises(zklock.Refused, lambda: zk.mutex("/locks/wrong").hold(timeout=SOON)).says("state 3.4")
