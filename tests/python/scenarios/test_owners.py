"""A reentrant lock belongs to the thread or task that acquired it, which may acquire it again. Others may not release it.

For what is asyncio's own see aio/test_owners.py.
"""

from __future__ import annotations

import gc

import pytest
from ground import Ground
from scenes import SOON, Face, settled

import zklock


async def test_an_inner_acquire_is_granted_at_once_and_only_the_last_release_frees(
    zk: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    lock, again = (face.of(zk).mutex(path, reentrant=True) for _ in range(2))
    outer = await face.make(lock.hold, timeout=SOON)
    # Another object for the same lock works as well, and so do all ways to acquire it.
    inner = [await face.make(one.hold, timeout=timeout) for one in (lock, again) for timeout in (None, 0.001, 0)]
    assert {(hold.token, hold.node) for hold in inner} == {(outer.token, outer.node)}
    assert await face.make(again.acquire) and await face.make(lock.acquire, blocking=False)
    async with face.block(again) as block:
        assert block.token == outer.token and block is not outer
    # Any order is allowed, here the outer hold first.
    await face.make(outer.release)
    assert outer.state is zklock.HoldState.RELEASED and outer.valid_for() == 0
    (await face.fails(zklock.NotHeld, outer.release)).says(path, "already released")
    for hold in inner:
        await face.make(hold.release)
    await face.make(lock.release)
    assert lock.locked() and lock.current is not None and lock.current.token == outer.token
    assert len(ground.children(path)) == 1
    await face.make(again.release)
    assert ground.children(path) == [] and not lock.locked()
    (await face.fails(zklock.NotHeld, lock.release)).says(path)


async def test_another_waits_for_a_reentrant_lock_like_anybody_and_may_not_release_it(
    zk: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    lock = face.of(zk).mutex(path, reentrant=True)
    assert await face.make(lock.acquire, timeout=SOON)
    value = await face.make(lock.hold)
    assert await face.elsewhere(lock.acquire, blocking=False) is False
    await face.fails(zklock.Timeout, face.elsewhere, lambda: lock.hold(timeout=0))
    settled(zk)
    for release in (lock.release, value.release, face.of(zk).mutex(path, reentrant=True).release):
        refused = await face.fails(zklock.NotOwner, face.elsewhere, release)
        refused.says(path, "reentrant", "that acquired it: release it there")
    assert value.state is zklock.HoldState.HELD and len(ground.children(path)) == 1
    await face.make(value.release)
    await face.make(lock.release)
    assert ground.children(path) == []
    async with face.block(lock):
        await face.fails(zklock.NotOwner, face.elsewhere, lambda: face.exit(lock)(None, None, None))
    # An owner that has ended is nobody. Another does not become the owner, even at its address or with its number.
    hold = await face.elsewhere(lock.hold)
    for _ in range(50):
        await face.fails(zklock.NotOwner, face.elsewhere, hold.release)
        assert await face.elsewhere(lock.acquire, blocking=False) is False
    # Nobody can release it any more, except the garbage collector.
    with pytest.warns(ResourceWarning, match="never released"):
        del hold
        gc.collect()
    ground.expect_children(path, 0)


async def test_what_only_oneself_can_release_is_not_waited_for(zk: zklock.Client, path: str, face: Face) -> None:
    async with face.block(face.of(zk).mutex(path, reentrant=True)) as hold:
        other = face.of(zk).mutex(path)
        for acquire in (other.acquire, lambda: other.acquire(timeout=SOON), other.hold, face.enter(other)):
            (await face.fails(zklock.Deadlock, acquire)).says(path, "through a reentrant lock", "release that first")
        assert await face.make(other.acquire, blocking=False) is False
        assert hold.state is zklock.HoldState.HELD


async def test_a_lock_that_is_not_reentrant_is_released_from_anywhere_but_once(
    zk: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    lock = face.of(zk).mutex(path)
    hold = await face.make(lock.hold, timeout=SOON)
    # A release of the lock leaves values alone.
    await face.fails(zklock.NotHeld, lock.release)
    await face.elsewhere(hold.release)
    assert ground.children(path) == []
    following = await face.make(lock.hold, timeout=SOON)
    (await face.fails(zklock.NotHeld, hold.release)).says("already released")
    await face.fails(zklock.NotHeld, face.elsewhere, hold.release)
    await face.fails(zklock.NotHeld, hold.confirm)
    # The next hold is not affected.
    assert following.state is zklock.HoldState.HELD
    await face.make(following.release)
    # What another has acquired, and what one has oneself.
    await face.elsewhere(lock.acquire)
    assert lock.locked() and lock.current is None
    await face.make(lock.release)
    await face.make(lock.acquire)
    await face.elsewhere(face.of(zk).mutex(path).release)
    assert not lock.locked()
    await face.fails(zklock.NotHeld, lock.release)
