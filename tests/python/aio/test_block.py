"""The end of an ``async with`` block: it reports a loss, never hides an exception, and always releases."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
import types
import typing

import pytest
from aio.support import queue, settled, steps, true
from ground import Ground

import zklock


def test_a_block_gives_the_hold_and_releases_it(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path, timeout=5)
        async with lock as hold:
            assert isinstance(hold, zklock.AsyncHold) and hold.valid_for() > 0
            assert lock.locked() and lock.current is not None and lock.current.token == hold.token
            [contender] = await lock.contenders()
            assert contender.token == hold.token
        assert hold.state is zklock.HoldState.RELEASED and not lock.locked()
        assert ground.children(path) == []
        # The same objects serve both faces: here the blocking lock, and a hold.
        async with zk.mutex(path) as hold:
            assert isinstance(hold, zklock.AsyncHold)
        async with await lock.hold() as hold:
            assert hold.valid_for() > 0
        assert hold.state is zklock.HoldState.RELEASED and ground.children(path) == []

    asyncio.run(main())


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("kind", [LookupError, asyncio.CancelledError, SystemExit, zklock.Timeout])
def test_what_the_block_raises_is_not_masked(
    zk: zklock.Client, path: str, ground: Ground, kind: type[BaseException], is_lost: bool
) -> None:
    error = kind("from the block")

    async def work(lock: zklock.AsyncLock) -> None:
        async with lock as hold:
            if is_lost:
                ground(f"delete {hold.node}")
                await hold.lost
            raise error

    async def main() -> None:
        try:
            await work(zk.aio.mutex(path))
        except BaseException as caught:
            assert caught is error
        assert ground.children(path) == []

    asyncio.run(main())


def test_a_hold_found_lost_at_the_end_is_told(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)
        for wait in (True, False):
            with pytest.raises(zklock.LockLost) as caught:
                async with lock as hold:
                    ground(f"delete {hold.node}")
                    if wait:
                        await hold.lost
            assert caught.value.reason is zklock.LossReason.NODE_DELETED
            assert not lock.locked()
        with pytest.raises(zklock.LockLost):
            async with await lock.hold() as hold:
                ground(f"delete {hold.node}")
                await hold.lost

    asyncio.run(main())


@pytest.mark.parametrize("is_known", [True, False])
def test_what_a_block_raises_has_a_note_of_the_loss(
    zk: zklock.Client, path: str, ground: Ground, is_known: bool
) -> None:
    raised = [LookupError(), LookupError(), LookupError()]

    async def main() -> None:
        lock = zk.aio.mutex(path)

        async def lose(hold: zklock.AsyncHold) -> None:
            ground(f"delete {hold.node}")
            if is_known:
                await hold.lost

        with pytest.raises(LookupError):
            async with lock as hold:
                await lose(hold)
                raise raised[0]
        with pytest.raises(LookupError):
            async with await lock.hold() as hold:
                await lose(hold)
                raise raised[1]
        with pytest.raises(LookupError):
            async with contextlib.AsyncExitStack() as stack:
                await lose(await stack.enter_async_context(lock))
                raise raised[2]

    asyncio.run(main())
    for one in raised:
        (note,) = getattr(one, "__notes__", [])
        assert path in note and "lost: its node was deleted" in note


def test_the_end_of_a_block_runs_nothing_in_which_a_signal_could_raise(zk: zklock.Client, path: str) -> None:
    """Context managers written in Python can be interrupted like this, and would then leave the hold behind."""
    ran: list[str] = []

    def note(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call":
            ran.append(frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name)

    async def main() -> None:
        for lock in (zk.aio.mutex(path), zk.aio.mutex(path, reentrant=True)):
            await lock.__aenter__()
            sys.setprofile(note)
            try:
                ending = lock.__aexit__(None, None, None)
            finally:
                sys.setprofile(None)
            await ending

    asyncio.run(main())
    assert ran == []


def test_a_block_whose_hold_was_released_within_ends_in_peace(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)
        async with lock as hold:
            await hold.release()
            assert ground.children(path) == []
        async with await lock.hold() as hold:
            await hold.release()

        async def acquire() -> None:
            await lock.acquire()

        # Nor does it release another owner's hold.
        async with lock as hold:
            await hold.release()
            await asyncio.create_task(acquire())
        assert lock.locked()
        await lock.release()

    asyncio.run(main())


def test_a_release_that_is_not_confirmed_is_only_logged(
    path: str, ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=1) as zk:
            with caplog.at_level(logging.WARNING, "zklock"):
                async with zk.mutex(path) as hold:
                    proxy("freeze", "both")
                assert hold.state is zklock.HoldState.RELEASED
                # Another thread logs it.
                assert await true(lambda: any(path in record.getMessage() for record in caplog.records))
                assert {record.levelname for record in caplog.records} == {"WARNING"}
            proxy("thaw")
            await settled(zk)
        await queue(ground, path, 0)

    asyncio.run(main())


def rows(lock: zklock.AsyncLock) -> typing.AsyncGenerator[int, None]:
    async def generate() -> typing.AsyncGenerator[int, None]:
        async with lock as hold:
            yield hold.token

    return generate()


def test_a_generator_that_is_closed_within_a_block_releases(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)
        generator = rows(lock)
        async for _ in generator:
            assert lock.locked()
            break
        await generator.aclose()
        assert not lock.locked()
        generator = rows(lock)
        await generator.__anext__()
        with pytest.raises(LookupError):
            await generator.athrow(LookupError)
        await queue(ground, path, 0)
        await settled(zk)

    asyncio.run(main())


def test_a_generator_that_is_forgotten_within_a_block_releases(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)
        async for _ in rows(lock):
            assert lock.locked()
            break
        # The loop closes the generator, in another task.
        gc.collect()
        await steps(3)
        assert await true(lambda: not lock.locked(), within=2)
        await queue(ground, path, 0)
        assert await other.aio.mutex(path).acquire(blocking=False)
        await other.aio.mutex(path).release()

    asyncio.run(main())


def test_a_generator_that_is_closed_by_the_end_of_the_loop_releases(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    generator = rows(zk.aio.mutex(path))

    async def main() -> None:
        await generator.__anext__()
        assert zk.mutex(path).locked()

    asyncio.run(main())
    assert not zk.mutex(path).locked()
    ground.expect_children(path, 0)


def test_a_generator_closed_within_the_inner_block_leaves_the_outer_hold(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path, reentrant=True)
        async with lock as outer:
            generator = rows(lock)
            assert await generator.__anext__() == outer.token
            await generator.aclose()
            assert outer.state is zklock.HoldState.HELD and lock.locked()
            assert len(ground.children(path)) == 1 and await outer.confirm() > 0
        assert ground.children(path) == []

    asyncio.run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_a_block_that_another_task_ends_releases(
    zk: zklock.Client, path: str, ground: Ground, fails: bool
) -> None:
    """Frameworks may begin a block in one task and end it in another."""

    async def main() -> None:
        lock, stack = zk.aio.mutex(path), contextlib.AsyncExitStack()

        async def enter() -> None:
            await stack.enter_async_context(lock)

        async def leave() -> None:
            error = LookupError() if fails else None
            await stack.__aexit__(type(error) if error else None, error, None)

        await asyncio.create_task(enter())
        assert lock.locked()
        await asyncio.create_task(leave())
        assert not lock.locked()
        await queue(ground, path, 0)

    asyncio.run(main())


def test_an_end_without_a_beginning_is_an_error(zk: zklock.Client, path: str) -> None:
    async def main() -> None:
        with pytest.raises(zklock.NotHeld):
            await zk.aio.mutex(path).__aexit__(None, None, None)

    asyncio.run(main())
