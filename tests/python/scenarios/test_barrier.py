"""The barrier and the double barrier."""

from __future__ import annotations

import asyncio
import functools
import threading

import pytest
from ground import Ground
from scenes import SOON, Attempt, Far, eventually, expire, in_time, raises, settled

import zklock


@pytest.fixture
def at(path: str) -> str:
    return path.replace("/locks/", "/barriers/")


def gone(ground: Ground, at: str) -> None:
    """Waits until no member is left. The node `ready` may be left, but lets nobody in."""
    eventually(lambda: set(ground.children(at)) <= {"ready"})


def test_who_comes_waits_until_it_is_removed(zk: zklock.Client, other: zklock.Client, at: str) -> None:
    barrier, its = zk.barrier(at), other.barrier(at)
    # The barrier does not exist yet.
    assert barrier.wait() is True and its.is_set() is False and barrier.remove() is False
    assert barrier.set() is True
    assert its.set() is False
    assert its.is_set() is True
    assert in_time(lambda: its.wait(timeout=0.1), 0.1) is False
    assert its.wait(timeout=0) is False
    waiting = [Attempt(its.wait), Attempt(lambda: barrier.wait(timeout=SOON))]
    assert not waiting[0].wait(0.2) and not waiting[1].is_over()
    assert its.remove() is True
    assert [attempt.result() for attempt in waiting] == [True, True]
    assert its.wait(timeout=0) is True


def test_a_barrier_outlives_who_set_it(zk: zklock.Client, hosts: str, at: str) -> None:
    with zklock.Client(hosts, session_timeout=4) as setter:
        setter.barrier(at).set()
    assert zk.barrier(at).is_set()
    zk.barrier(at).remove()


def test_it_connects_when_it_is_needed(hosts: str, at: str) -> None:
    for call in ("set", "is_set", "wait", "remove"):
        client = zklock.Client(hosts, session_timeout=4)
        if call == "wait":
            assert client.barrier(at).wait(timeout=0) is False
        else:
            assert getattr(client.barrier(at), call)() is True
        client.close()
        raises(zklock.Closed, getattr(client.barrier(at), call))
    with zklock.Client(hosts, session_timeout=4) as client:
        meeting = zklock.Client(hosts, session_timeout=4).double_barrier(f"{at}-too", 1)
        with meeting as member:
            assert member.path == meeting.path
        assert client.stats().owed == 0


def test_all_begin_together_and_end_together(zk: zklock.Client, other: zklock.Client, ground: Ground, at: str) -> None:
    count, rounds = 4, 3
    inside, lock, most = [0], threading.Lock(), [0]

    def work(client: zklock.Client) -> None:
        meeting = client.double_barrier(at, count, timeout=SOON)
        for turn in range(rounds):
            with meeting:
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                eventually(lambda turn=turn: inside[0] >= count * (turn + 1))  # type: ignore[misc]

    for attempt in [Attempt(functools.partial(work, [zk, other][number % 2])) for number in range(count)]:
        attempt.result(within=40)
    assert inside[0] == most[0] == count * rounds
    gone(ground, at)


def test_who_is_alone_is_late_and_leaves_nothing(zk: zklock.Client, ground: Ground, at: str) -> None:
    meeting = zk.double_barrier(at, 2, timeout=0.1)
    raises(zklock.Timeout, lambda: in_time(meeting.enter, 0.1)).says(at)
    for call in (meeting.__enter__, lambda: meeting.enter(timeout=0)):
        # The member counts until its node is gone.
        settled(zk)
        gone(ground, at)
        raises(zklock.Timeout, call)
    gone(ground, at)
    raises(zklock.NotHeld, lambda: meeting.__exit__(None, None, None))


def test_who_leaves_waits_for_the_others(zk: zklock.Client, other: zklock.Client, ground: Ground, at: str) -> None:
    waiting = Attempt(lambda: other.double_barrier(at, 2).enter(timeout=SOON))
    mine = zk.double_barrier(at, 2).enter(timeout=SOON)
    its = waiting.result()
    assert mine.node != its.node and mine.loss is None
    raises(zklock.Timeout, lambda: mine.leave(timeout=0.1)).says("others")
    raises(zklock.NotHeld, mine.leave)
    its.leave(timeout=SOON)
    gone(ground, at)


def test_a_block_that_raises_leaves_and_waits_for_nobody(
    zk: zklock.Client, other: zklock.Client, ground: Ground, at: str
) -> None:
    waiting = Attempt(lambda: other.double_barrier(at, 2).enter(timeout=SOON))
    with pytest.raises(LookupError), zk.double_barrier(at, 2):
        assert waiting.wait(SOON)
        raise LookupError
    settled(zk)
    # So the other one does not wait for it.
    waiting.result().leave(timeout=SOON)
    gone(ground, at)
    with zk.double_barrier(at, 1).enter() as member:
        assert member.path == at


def test_one_that_is_forgotten_leaves(zk: zklock.Client, ground: Ground, at: str) -> None:
    zk.double_barrier(at, 1).enter()
    gone(ground, at)


def test_a_member_is_told_that_it_is_lost(far: Far, zk: zklock.Client, ground: Ground, at: str) -> None:
    waiting = Attempt(lambda: zk.double_barrier(at, 2).enter(timeout=SOON))
    lost = far.zk.double_barrier(at, 2).enter(timeout=SOON)
    its = waiting.result()
    leaving = Attempt(lambda: its.leave(timeout=SOON))
    assert not leaving.wait(0.1)
    expire(far.proxy)
    # It counts as a member that has left.
    leaving.result()
    eventually(lambda: lost.loss is not None)
    assert isinstance(raises(zklock.LockLost, lost.leave).error, zklock.LockLost)
    gone(ground, at)


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_block_raises_has_a_note_that_its_member_was_lost(far: Far, ground: Ground, at: str, is_async: bool) -> None:
    raised, doors = LookupError(), far.zk.double_barrier(at, 1)

    def lose(member: zklock.Member | zklock.AsyncMember) -> None:
        assert member.loss is None
        expire(far.proxy)
        eventually(lambda: member.loss is not None)

    async def main() -> None:
        async with doors.aio as member:
            lose(member)
            raise raised

    with pytest.raises(LookupError):
        if is_async:
            asyncio.run(main())
        else:
            with doors as member:
                lose(member)
                raise raised
    (note,) = getattr(raised, "__notes__", [])
    assert at in note and "lost: its session expired" in note
    gone(ground, at)


@pytest.mark.parametrize("is_connected", [False, True])
def test_what_cannot_be(zk: zklock.Client, hosts: str, at: str, is_connected: bool) -> None:
    client = zk if is_connected else zklock.Client(hosts)
    for members in (0, -1, 2**40):
        raises(zklock.InvalidInput, lambda: client.double_barrier(at, members))
    for make in (client.barrier, client.aio.barrier, functools.partial(client.double_barrier, members=1)):
        raises(zklock.InvalidInput, lambda: make("no/slash")).says("no/slash")
    raises(zklock.InvalidInput, lambda: client.barrier(at).wait(timeout=-1)).says("-1")
    raises(zklock.InvalidInput, lambda: client.double_barrier(at, 1).enter(timeout=-1))
    raises(zklock.InvalidInput, lambda: client.double_barrier(at, 1, timeout=-1))
