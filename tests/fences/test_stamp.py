"""Stamps of real holds, and of what is none."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import typing

import pytest
from holds import AsyncHeld, Held

import zklock
import zklock.testing
from zklock import fence


def test_a_stamp_has_what_the_hold_has() -> None:
    assert fence.stamp(Held("/locks/a", 5)) == fence.Stamp("/locks/a", 5, "one")
    assert fence.stamp(Held("/locks/a", 5), "accounts") == fence.Stamp("accounts", 5, "one")
    assert fence.stamp(fence.Stamp("/locks/a", 5, "one"), "accounts") == fence.Stamp("accounts", 5, "one")


def test_that_of_an_asynchronous_hold_is_awaited() -> None:
    async def main() -> fence.Stamp:
        return await fence.stamp(AsyncHeld("/locks/a", 5), "accounts")

    assert asyncio.run(main()) == fence.Stamp("accounts", 5, "one")


def test_a_blocking_fence_refuses_an_asynchronous_hold() -> None:
    async def main(zk: zklock.Client) -> None:
        async with zk.aio.mutex("/locks/a") as hold:
            with pytest.raises(zklock.InvalidInput, match="await fence.stamp"):
                fence.transaction(database, typing.cast("zklock.Hold", hold)).__enter__()

    with zklock.testing.Server() as server, zklock.Client(server.hosts) as zk, contextlib.closing(sqlite3.connect(":memory:")) as database:
        asyncio.run(main(zk))


@pytest.mark.parametrize("name", ["", "x" * 256, "two\nlines", "a space ", "nothing\0", "half\ud800", "\x85"])
def test_a_name_that_no_database_keeps_is_refused(name: str) -> None:
    with pytest.raises(zklock.InvalidInput, match="a name has 1 to 255"):
        fence.stamp(Held(name, 5))


@pytest.mark.parametrize("token", [-1, 2**63, 5.0, "5", None])
def test_what_is_no_token_is_refused(token: typing.Any) -> None:
    with pytest.raises(zklock.InvalidInput, match="a token is a number"):
        fence.stamp(Held("/locks/a", token))


@pytest.mark.parametrize("ensemble", ["", "x" * 65, "two words", "\u00e4"])
def test_what_is_no_identity_is_refused(ensemble: str) -> None:
    with pytest.raises(zklock.InvalidInput, match="identity"):
        fence.stamp(Held("/locks/a", 5, ensemble))


def test_the_longest_name_is_accepted() -> None:
    assert fence.stamp(Held("/" + "\u00fc" * 254, 2**63 - 1)).token == 2**63 - 1


def test_an_exception_of_a_program_has_no_numbers() -> None:
    for error in (zklock.StaleToken("late"), zklock.OtherEnsemble("late")):
        assert str(error) == "late" and error.name is None
        assert set(vars(type(error))) & {"written", "kept"} and error.args == ("late",)
    assert (zklock.StaleToken().written, zklock.StaleToken().token, str(zklock.StaleToken())) == (None, None, "")
    assert (zklock.OtherEnsemble().kept, zklock.OtherEnsemble().ensemble, str(zklock.OtherEnsemble())) == (None, None, "")
