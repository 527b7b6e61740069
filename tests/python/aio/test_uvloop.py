"""uvloop, if it is installed."""

from __future__ import annotations

import typing

import pytest
from aio.support import run_in
from aio.test_loop import everything
from ground import Ground

import zklock

uvloop: typing.Any = pytest.importorskip("uvloop")


def test_uvloop_serves_as_well(zk: zklock.Client, path: str, ground: Ground) -> None:
    run_in(uvloop.new_event_loop(), everything(zk, path, ground))
