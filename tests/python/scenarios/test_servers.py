"""The version of the servers, as it is given to a client. Servers of ZooKeeper 3.4 lack some requests of later ones."""

from __future__ import annotations

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


def test_a_version_that_is_too_new_is_named_in_the_error(old: Ground) -> None:
    with zklock.Client(old("servers"), session_timeout=4, server_version=(3, 5)) as zk:
        raises(zklock.Refused, lambda: zk.mutex("/locks/wrong").hold(timeout=SOON)).says("state 3.4")
