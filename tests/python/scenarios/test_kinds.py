"""Locks of each kind: one holds it, the next has its turn, and a loss is told. For their options see their own files."""

from __future__ import annotations

import typing

import pytest
from ground import Ground
from scenes import SOON, Attempt, Face, lose, raises, settled, times_out

import zklock

# How a client of either face makes it, and a part of the path of its node.
KINDS: dict[str, tuple[typing.Callable[..., typing.Any], str]] = {
    "mutex": (lambda zk, path, **options: zk.mutex(path, **options), "-lock-"),
    "read": (lambda zk, path, **options: zk.read_lock(path, **options), "__READ__"),
    "write": (lambda zk, path, **options: zk.write_lock(path, **options), "__WRIT__"),
    "semaphore": (lambda zk, path, **options: zk.semaphore(path, 1, **options), "/leases/"),
    "election": (lambda zk, path, **options: zk.election(path, **options), "-latch-"),
    "exclusive": (lambda zk, path, **options: zk.single_node(path, **options), "/lock"),
    "all": (lambda zk, path, **options: zk.all([zk.mutex(path), zk.write_lock(f"{path}-2")], **options), "-lock-"),
    "any": (lambda zk, path, **options: zk.any([zk.mutex(path)], **options), "-lock-"),
}
REENTRANT = [kind for kind in KINDS if kind not in ("semaphore", "any")]


@pytest.mark.parametrize("kind", KINDS)
def test_one_holds_it_and_the_next_has_its_turn(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str, face: Face, kind: str
) -> None:
    make, part = KINDS[kind]
    lock = make(face.of(zk), path)
    rival = KINDS["write" if kind == "read" else kind][0](face.of(other), path, timeout=0.5)
    hold = face(lock.hold, timeout=SOON)
    assert part in hold.node and hold.path == lock.path and hold.state is zklock.HoldState.HELD
    assert all(one.holds for one in face(lock.contenders))
    assert face(rival.acquire, blocking=False) is False and face(rival.acquire, timeout=0.5) is False
    # The lock's own timeout.
    assert isinstance(times_out(lambda: face(rival.hold)).says(rival.path).error, TimeoutError)
    settled(other)
    waiting = Attempt(lambda: face(rival.hold, timeout=SOON))
    assert not waiting.wait(0.1)
    face(hold.release)
    following = waiting.result()
    assert following.token > hold.token
    lose(ground, following)
    assert following.lost.reason is zklock.LossReason.NODE_DELETED
    raises(zklock.LockLost, lambda: face(following.release))
    assert face(lock.acquire, timeout=SOON) is True and lock.locked()
    face(lock.release)
    assert not lock.locked()


def test_a_try_gives_a_hold_or_none(zk: zklock.Client, other: zklock.Client, path: str, face: Face) -> None:
    lock, rival = face.of(zk).mutex(path), face.of(other).mutex(path)
    hold = face(lock.try_acquire)
    assert isinstance(hold, zklock.AsyncHold if face.is_async else zklock.Hold) and hold.token > 0
    assert face(rival.try_acquire) is None and lock.current is None
    assert face(face.of(other).mutex(path, timeout=0.01).acquire) is False
    face(hold.release)
    face(face(rival.try_acquire).release)


@pytest.mark.parametrize("kind", REENTRANT)
async def test_one_that_is_reentrant_is_had_again_by_its_owner_alone(
    zk: zklock.Client, path: str, face: Face, kind: str
) -> None:
    lock = KINDS[kind][0](face.of(zk), path, reentrant=True, timeout=SOON)
    async with face.block(lock) as outer, face.block(lock) as inner:
        assert outer.token == inner.token
        await face.fails(zklock.NotOwner, face.elsewhere, lock.release)
    assert not lock.locked()
