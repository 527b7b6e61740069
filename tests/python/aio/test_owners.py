"""A reentrant lock belongs to the task that acquired it, which may acquire it again. Others may not release it."""

from __future__ import annotations

import asyncio
import typing

import pytest
from aio.support import SOON, queue, soon, true
from ground import Ground
from scenes import elsewhere

import zklock


def test_an_inner_acquire_asks_nobody_and_only_the_last_release_frees(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=20) as zk:
            lock = zk.mutex(path, reentrant=True)
            async with lock as outer:
                proxy("freeze", "both")
                # No server is needed for any of this.
                async with lock as inner, zk.mutex(path, reentrant=True) as innermost:
                    assert outer.token == inner.token == innermost.token
                    assert await lock.acquire() and await lock.acquire(blocking=False)
                    value = await lock.hold(timeout=0)
                    await value.release()
                    await lock.release()
                    await lock.release()
                assert inner.state is zklock.HoldState.RELEASED
                assert outer.state is zklock.HoldState.HELD and lock.locked()
                proxy("thaw")
                assert len(ground.children(path)) == 1
            assert ground.children(path) == []
            async with lock as again:
                assert again.token > outer.token

    asyncio.run(main())


def test_another_task_waits_for_a_reentrant_lock_like_anybody(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path, reentrant=True)

        async def other() -> int:
            assert not await lock.acquire(blocking=False)
            async with lock as hold:
                return hold.token

        async with lock as outer:
            task = asyncio.create_task(other())
            await queue(ground, path, 2)
            async with lock as inner:
                assert inner.token == outer.token
            await asyncio.sleep(0.05)
            assert not task.done()
        assert await soon(task) > outer.token

    asyncio.run(main())


def test_a_release_by_another_task_is_refused_and_changes_nothing(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path, reentrant=True)
        await lock.acquire()
        value = await lock.hold()

        async def by_lock() -> None:
            await lock.release()

        async def by_hold() -> None:
            await value.release()

        for call in (by_lock, by_hold, by_lock):
            with pytest.raises(zklock.NotOwner):
                await asyncio.create_task(call())
            assert value.state is zklock.HoldState.HELD and value.valid_for() > 0
        assert len(ground.children(path)) == 1
        await value.release()
        await lock.release()
        assert ground.children(path) == []

    asyncio.run(main())


def test_a_second_acquire_by_the_same_task_waits_as_that_of_any_task(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        async def release(hold: zklock.AsyncHold) -> None:
            await hold.release()

        lock = zk.aio.mutex(path, timeout=0.1)
        hold = await lock.hold(timeout=SOON)
        with pytest.raises(zklock.Timeout, match="holds it itself"):
            await lock.hold()
        with pytest.raises(zklock.Timeout, match="holds it itself"):
            async with lock:
                raise AssertionError("it is held twice")
        assert not await zk.aio.mutex(path).acquire(timeout=0.1)
        assert not await lock.acquire(blocking=False)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(zk.aio.mutex(path).acquire(), 0.1)
        assert hold.state is zklock.HoldState.HELD
        # A release by another task ends the wait, and so does one by this task, if another task awaits the wait.
        for by_another in (True, False):
            waits = asyncio.create_task(zk.aio.mutex(path).hold())
            await queue(ground, path, 2)
            await (asyncio.create_task(release(hold)) if by_another else release(hold))
            hold = await soon(waits)
        await hold.release()

    asyncio.run(main())


def test_two_users_in_one_task_take_turns(zk: zklock.Client, path: str) -> None:
    """The task that makes the coroutines is their owner, whichever task runs them."""

    async def main() -> None:
        lock, inside = zk.aio.mutex(path), []
        waits = [lock.hold(timeout=SOON) for _ in range(5)]

        async def work(wait: typing.Awaitable[zklock.AsyncHold]) -> None:
            hold = await wait
            inside.append(hold)
            await asyncio.sleep(0)
            assert inside == [hold]
            inside.clear()
            await hold.release()

        await asyncio.gather(*map(work, waits))

    asyncio.run(main())


def test_what_only_this_task_can_release_it_does_not_wait_for(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        async with zk.aio.mutex(path, reentrant=True) as hold:
            lock = zk.aio.mutex(path)
            # The same with a timeout, by any of these calls, and if another task awaits it for us.
            for call in (
                lock.acquire(),
                lock.acquire(timeout=SOON),
                lock.hold(),
                asyncio.create_task(lock.acquire()),
                asyncio.wait_for(lock.acquire(), SOON),
            ):
                with pytest.raises(zklock.Deadlock, match="release that first"):
                    await asyncio.wait_for(call, 30)
            assert not await lock.acquire(blocking=False)
            assert hold.state is zklock.HoldState.HELD and len(ground.children(path)) == 1

    asyncio.run(main())


def test_a_lock_that_is_not_reentrant_is_released_from_anywhere_but_once(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)

        async def release() -> None:
            await lock.release()

        await lock.acquire()
        await asyncio.create_task(release())
        assert ground.children(path) == []
        with pytest.raises(zklock.NotHeld, match=path):
            await lock.release()
        with pytest.raises(RuntimeError):
            await asyncio.create_task(release())
        hold = await lock.hold()
        await hold.release()
        with pytest.raises(zklock.NotHeld):
            await hold.release()
        # The same from the blocking face, in another thread.
        await lock.acquire()
        await asyncio.to_thread(zk.mutex(path).release)
        assert not lock.locked() and ground.children(path) == []

    asyncio.run(main())


def test_the_owner_is_the_task_that_calls_whoever_awaits(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path, reentrant=True)
        assert await asyncio.create_task(lock.acquire())
        assert await asyncio.wait_for(lock.acquire(), SOON)
        assert await asyncio.shield(lock.acquire())
        assert all(await asyncio.gather(lock.acquire()))
        for _ in range(3):
            await lock.release()
            assert lock.current is not None
        await lock.release()
        assert lock.current is None and ground.children(path) == []

    asyncio.run(main())


def test_a_reentrant_lock_acquired_twice_at_once_by_one_task_is_counted(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path, reentrant=True)
        # Both calls have begun before either is granted.
        assert all(await asyncio.wait_for(asyncio.gather(lock.acquire(), lock.acquire()), 3))
        await lock.release()
        await lock.release()
        assert ground.children(path) == []

    asyncio.run(main())


def test_an_inner_section_is_not_entered_when_the_outer_hold_is_lost(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock, tokens = zk.aio.mutex(path, reentrant=True), []
        with pytest.raises(zklock.LockLost):
            async with lock as outer:
                tokens.append(outer.token)
                ground(f"delete {outer.node}")
                assert await soon(outer.lost) is zklock.LossReason.NODE_DELETED
                for call in (lock.acquire(), lock.acquire(timeout=SOON), lock.acquire(blocking=False), lock.hold()):
                    with pytest.raises(zklock.LockLost):
                        await call
                with pytest.raises(zklock.LockLost):
                    async with lock:
                        raise AssertionError("it is entered")
        async with lock as again:
            assert [again.token] > tokens

    asyncio.run(main())


def test_a_task_that_ends_while_it_holds_leaves_the_lock_held(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        lock = zk.aio.mutex(path)

        async def forget() -> None:
            await lock.acquire()

        await asyncio.create_task(forget())
        # As with threading.Lock, anybody may release it, and nobody is mistaken for its dead owner.
        for _ in range(50):
            assert not await asyncio.create_task(lock.acquire(blocking=False))
        assert lock.locked() and lock.current is None
        waiter = asyncio.create_task(lock.acquire())
        await queue(ground, path, 2)
        await lock.release()
        assert await soon(waiter)
        await lock.release()
        assert await true(lambda: ground.children(path) == [])

    asyncio.run(main())


def test_a_task_that_ends_while_it_holds_a_reentrant_lock_leaves_it_until_the_client_is_closed(
    hosts: str, path: str, ground: Ground
) -> None:
    async def main() -> None:
        async with zklock.Client(hosts) as zk:
            lock = zk.mutex(path, reentrant=True)

            async def forget() -> None:
                await lock.acquire()

            await asyncio.create_task(forget())
            # A task at the address of a dead one is not its successor.
            for _ in range(50):
                assert not await asyncio.create_task(lock.acquire(blocking=False))
            with pytest.raises(zklock.NotOwner):
                await lock.release()
            assert lock.locked()
        await queue(ground, path, 0)

    asyncio.run(main())


def test_tasks_and_threads_are_different_owners(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path, reentrant=True)

    async def main() -> None:
        async with lock:
            assert not elsewhere(lambda: lock.acquire(blocking=False))
            # The thread of the loop is another owner than the task.
            with pytest.raises(zklock.NotOwner):
                lock.release()

    async def within() -> None:
        assert not await lock.aio.acquire(blocking=False)
        with pytest.raises(zklock.NotOwner):
            await lock.aio.release()

    asyncio.run(main())
    with lock:
        asyncio.run(within())


def test_a_task_is_not_taken_for_one_that_has_ended_at_its_address(zk: zklock.Client, path: str) -> None:
    """Addresses are reused, but a lock that a dead task held does not belong to the next task at its address."""
    lock = zk.aio.mutex(path, reentrant=True)

    async def leave_behind() -> int:
        assert await lock.acquire(timeout=SOON)
        return id(asyncio.current_task())

    async def try_at(address: int) -> bool | None:
        return await lock.acquire(blocking=False) if id(asyncio.current_task()) == address else None

    async def main() -> bool:
        address = await asyncio.create_task(leave_behind())
        for _ in range(20):
            # So many tasks at once that one of them gets that address.
            tried = await asyncio.gather(*[try_at(address) for _ in range(200)])
            assert True not in tried
            if False in tried:
                return True
        return False

    assert asyncio.run(main()), "no task came to that address"
