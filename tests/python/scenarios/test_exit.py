"""The end of a ``with`` or ``async with`` block: it releases, reports a loss, and never hides an exception of the block."""

from __future__ import annotations

import asyncio
import logging
import typing

import pytest
from ground import Ground
from scenes import SOON, Face, Far, eventually, lose

import zklock


class Failure(Exception):
    """The exception of a block."""


async def blocks(face: Face, zk: zklock.Client, path: str) -> typing.AsyncIterator[typing.Any]:
    """What may begin a block: a lock, a reentrant one, and a hold."""
    yield face.of(zk).mutex(path, timeout=SOON)
    yield face.of(zk).mutex(path, reentrant=True, timeout=SOON)
    yield await face.make(face.of(zk).mutex(path).hold, timeout=SOON)


def notes(exception: BaseException) -> list[str]:
    """The notes that were added to an exception."""
    return getattr(exception, "__notes__", [])


def levels(caplog: pytest.LogCaptureFixture, *parts: str) -> list[int]:
    """The log records that have all these parts."""
    said = [record for record in caplog.records if record.name == "zklock"]
    return [record.levelno for record in said if all(part in record.getMessage() for part in parts)]


async def test_the_end_of_a_block_releases_and_has_waited_for_it(
    zk: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    async for manager in blocks(face, zk, path):
        async with face.block(manager) as hold:
            assert isinstance(hold, zklock.AsyncHold if face.is_async else zklock.Hold)
            assert len(ground.children(path)) == 1
        # The node is already gone, not only soon.
        assert ground.children(path) == []
        assert hold.state is zklock.HoldState.RELEASED


KINDS = [Failure, KeyboardInterrupt, SystemExit, asyncio.CancelledError, zklock.Timeout]


@pytest.mark.parametrize("loss", ["none", "known", "unknown"])
@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_block_raises_comes_out_as_it_is_with_a_note_of_a_loss(
    zk: zklock.Client,
    ground: Ground,
    path: str,
    face: Face,
    kind: type[BaseException],
    loss: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async for manager in blocks(face, zk, path):
        caplog.clear()
        raised = kind("in the block")
        try:
            async with face.block(manager) as hold:
                if loss == "known":
                    lose(ground, hold)
                elif loss == "unknown":
                    # The release finds no node.
                    ground(f"delete {hold.node}")
                raise raised
        except BaseException as caught:
            assert caught is raised and raised.__context__ is None and raised.__cause__ is None
        assert ground.children(path) == []
        # The note warns that the work of the block may have been unprotected.
        assert [path in note and "lost: its node was deleted" in note for note in notes(raised)] == [True] * (loss != "none")
        if loss == "known":
            eventually(lambda: logging.WARNING in levels(caplog, path))


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_loss_is_raised_at_the_end_of_a_block(
    zk: zklock.Client, ground: Ground, path: str, face: Face, is_known: bool
) -> None:
    async for manager in blocks(face, zk, path):
        has_ended = False
        with pytest.raises(zklock.LockLost, match="stop the work that it guarded") as caught:
            async with face.block(manager) as hold:
                # If nobody knows of it yet, the release finds no node.
                lose(ground, hold) if is_known else ground(f"delete {hold.node}")
                has_ended = True
        assert has_ended and path in str(caught.value)
        assert caught.value.reason is zklock.LossReason.NODE_DELETED


async def test_an_exception_that_takes_no_note_is_raised_all_the_same(
    zk: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    class Stubborn(Exception):
        def add_note(self, note: str) -> None:
            raise ValueError(note)

        def __setattr__(self, name: str, value: object) -> None:
            raise ValueError(name)

    # Without `face.block`, because a context manager of Python's sets attributes.
    with pytest.raises(Stubborn) as caught:
        if face.is_async:
            async with zk.aio.mutex(path) as held:
                lose(ground, held)
                raise Stubborn
        with zk.mutex(path) as hold:
            lose(ground, hold)
            raise Stubborn
    assert notes(caught.value) == []


async def test_a_hold_that_is_released_in_its_block_is_not_released_again(
    zk: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    async for manager in blocks(face, zk, path):
        async with face.block(manager) as hold:
            await face.make(hold.release)
            # The lock is free, even for another block, which the end of this one does not affect.
            following = await face.make(face.of(zk).mutex(path).hold, timeout=SOON)
        assert following.state is zklock.HoldState.HELD
        await face.make(following.release)
    async with face.block(face.of(zk).mutex(path)) as hold:
        # The release has told of the loss.
        lose(ground, hold)
        await face.fails(zklock.LockLost, hold.release)
        await face.fails(zklock.NotHeld, hold.release)


@pytest.mark.parametrize("reentrant", [False, True])
async def test_a_lock_that_is_released_in_its_block_has_no_end_to_release(
    zk: zklock.Client, ground: Ground, path: str, face: Face, reentrant: bool
) -> None:
    """As with ``threading``: the end of the block releases what was acquired last, if there is anything."""
    lock = face.of(zk).mutex(path, reentrant=reentrant)
    with pytest.raises(RuntimeError, match="nothing to release") as caught:
        async with face.block(lock):
            await face.make(lock.release)
            assert ground.children(path) == []
    assert type(caught.value) is zklock.NotHeld
    # Even then the block's own exception is not hidden.
    with pytest.raises(Failure):
        async with face.block(lock):
            await face.make(lock.release)
            raise Failure
    async with face.block(lock) as hold:
        await face.make(lock.release)
        assert await face.make(lock.acquire, timeout=SOON)
        assert lock.current is not None and lock.current.token > hold.token
    assert not lock.locked() and ground.children(path) == []


async def test_a_release_that_is_not_confirmed_in_time_is_no_error_but_logged(
    far: Far, ground: Ground, path: str, face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    zk, proxy = far
    async with face.block(face.of(zk).mutex(path)) as hold:
        proxy("freeze", "to-server")
    assert hold.state is zklock.HoldState.RELEASED
    eventually(lambda: logging.WARNING in levels(caplog, path, "in the background"))
    assert zk.stats().owed == 1
    proxy("thaw")
    eventually(lambda: zk.stats().owed == 0)
    ground.expect_children(path, 0)
