"""A node stays after a release as long as nobody else wants the lock, and a holder learns when somebody does."""

from __future__ import annotations

import asyncio
import math
import queue
import typing

import pytest
from aio.support import queue as queue_of
from aio.support import soon
from ground import Ground
from guests.programs import FORKS, Start
from scenes import SOON, Attempt, Far, asked, raises

import zklock


def test_a_lock_that_lingers_is_taken_again_without_a_request(far: Far, ground: Ground, path: str) -> None:
    zk, proxy = far
    lock = zk.mutex(path, linger=SOON)
    with lock as first:
        pass
    proxy("record")
    assert first.state is zklock.HoldState.RELEASED and first.valid_for() == 0 and not lock.locked()
    for _ in range(100):
        with lock as hold:
            assert hold.token == first.token and hold.valid_for() > 0
    assert lock.acquire(blocking=False)
    lock.release()
    # Another object for the same lock is not another contender, nor is the other face.
    with zk.mutex(path, linger=SOON).hold(timeout=0) as hold:
        assert hold.token == first.token

    async def main() -> None:
        async with lock as hold:
            assert hold.token == first.token
        assert await lock.aio.acquire(blocking=False)
        await lock.aio.release()

    asyncio.run(main())
    # The reads that look for others may have come late. There is one set of them for all rounds.
    looks = {f"request:getchildren:{path}", f"request:getdata:{first.node}"}
    assert set(asked(proxy)) <= looks and len(asked(proxy)) == len(set(asked(proxy)))
    assert len(ground.children(path)) == 1
    zk.close()
    ground.expect_children(path, 0)


@pytest.mark.parametrize("linger", [None, 0, 0.0])
def test_a_lock_does_not_linger_unless_it_is_told_to(
    zk: zklock.Client, ground: Ground, path: str, linger: float | None
) -> None:
    with zk.mutex(path, linger=linger) as first:
        pass
    assert ground.children(path) == []
    with zk.mutex(path, linger=0.05) as second:
        assert second.token > first.token
    ground.expect_children(path, 0)


def test_readers_share_the_node_that_lingers(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    lock = zk.read(path, linger=10 * SOON)
    with lock as first, lock as second, other.read(path) as theirs:
        assert first.token == second.token != theirs.token
        # Readers do not wait for each other.
        assert not first.wanted.wait(0.05) and len(ground.children(path)) == 2
        writer = Attempt(lambda: other.write(path).hold(timeout=SOON))
        assert first.wanted.wait(SOON) and second.wanted.wait(SOON)
        theirs.release()
        second.release()
        assert not writer.is_over()
    with writer.result() as alone:
        assert alone.token > first.token


def test_turns_within_the_client_are_without_a_request_and_counted_while_others_wait(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    lock = zk.mutex(path, local_turns=2)
    first = lock.hold(timeout=SOON)
    mine = Attempt(lambda: lock.hold(timeout=SOON))
    assert first.wanted.wait(SOON) and len(ground.children(path)) == 1
    theirs = Attempt(lambda: other.mutex(path).hold(timeout=SOON))
    ground.expect_children(path, 2)
    # The event about them comes before the answer to any later request, and so does the list that it causes.
    for _ in range(3):
        first.confirm()
    first.release()
    second = mine.result()
    assert second.token == first.token and not theirs.is_over()
    mine = Attempt(lambda: lock.hold(timeout=SOON))
    # There is no turn left, so it queues behind them.
    ground.expect_children(path, 3)
    second.release()
    with theirs.result() as turn:
        assert turn.token > second.token and not mine.is_over()
    with mine.result() as third:
        assert third.token > turn.token


@pytest.mark.parametrize("linger", [None, SOON])
def test_a_holder_learns_that_others_wait_however_it_listens(
    zk: zklock.Client, other: zklock.Client, path: str, linger: float | None
) -> None:
    lock, told = zk.mutex(path, linger=linger), queue.Queue[str]()
    hold = lock.hold(timeout=SOON)
    wanted = hold.wanted
    hold.on_wanted(lambda: told.put("first"))
    hold.on_wanted(lambda: told.put("second"))
    hold.on_lost(lambda reason: told.put("lost"))
    assert not wanted and not wanted.is_set() and not hold.wanted.wait(0.05) and not wanted.wait(-1)
    waits = Attempt(wanted.wait)
    theirs = Attempt(lambda: other.mutex(path).hold(timeout=SOON))
    assert waits.result() and wanted and hold.wanted.is_set() and hold.wanted.wait(0) and hold.wanted.wait()
    assert [told.get(timeout=SOON), told.get(timeout=SOON)] == ["first", "second"]
    # A program that asks later is told at once.
    hold.on_wanted(lambda: told.put("late"))
    assert told.get(timeout=SOON) == "late"
    hold.release()
    assert not wanted and not hold.wanted.wait() and not wanted.wait(SOON)
    with theirs.result() as next_one:
        # It waits for nobody, and nobody waits for it.
        assert not next_one.wanted.wait(0.05)
    with lock.hold(timeout=SOON) as again:
        assert not again.wanted.wait(0.05)
    assert told.empty()


def test_a_wait_for_others_ends_with_the_hold(zk: zklock.Client, ground: Ground, path: str) -> None:
    lock, told = zk.mutex(path, linger=SOON), queue.Queue[str]()
    for end in ("release", "loss"):
        hold = lock.hold(timeout=SOON)
        hold.on_wanted(lambda: told.put("wanted"))
        waits = Attempt(hold.wanted.wait)
        assert not waits.wait(0.05)
        if end == "release":
            # Its node lingers, and may be given to the next.
            hold.release()
        else:
            ground(f"delete {hold.node}")
        assert waits.result() is False and not hold.wanted
    raises(zklock.LockLost, hold.release)
    assert told.empty()


def test_a_task_learns_that_others_wait(path: str, hosts: str, ground: Ground, other: zklock.Client) -> None:
    async def main() -> None:
        async with zklock.Client(hosts, session_timeout=4) as zk:
            lock, loop, told = zk.mutex(path, linger=SOON), asyncio.get_running_loop(), asyncio.Event()
            async with lock as first:
                waits = asyncio.ensure_future(first.wanted)
                assert not (await asyncio.wait({waits}, timeout=0.05))[0]
            assert await soon(waits) is False
            async with lock as hold:
                assert hold.token == first.token
                waiters = [asyncio.ensure_future(hold.wanted) for _ in range(3)]
                hold.on_wanted(lambda: loop.call_soon_threadsafe(told.set))
                await asyncio.sleep(0)
                waiters.pop().cancel()
                theirs = asyncio.ensure_future(other.aio.mutex(path).hold())
                await queue_of(ground, path, 2)
                assert await soon(asyncio.gather(*waiters)) == [True, True] and hold.wanted.is_set()
                await soon(told.wait())
                assert not theirs.done()
            async with await soon(theirs) as next_one:
                assert next_one.token > first.token
            async with lock as last:
                assert last.token > next_one.token

    asyncio.run(main())


FORKED = """
import os, sys, zklock

hosts, path = sys.argv[1:]
with zklock.Client(hosts, session_timeout=4) as zk:
    lock = zk.mutex(path, linger=60)
    with lock as hold:
        token, wanted = hold.token, hold.wanted
        pid = os.fork()
        if not pid:
            calls = lock.acquire, lock.__enter__, wanted.wait, hold.wanted.wait, lambda: hold.on_wanted(print)
            refused = 0
            for call in calls:
                try:
                    call()
                except zklock.ForkedError:
                    refused += 1
            os._exit(0 if refused == len(calls) and not wanted and not hold.wanted else 1)
        assert os.waitpid(pid, 0)[1] == 0
    pid = os.fork()
    if not pid:
        # The node lingers there, and not here.
        try:
            lock.acquire(blocking=False)
        except zklock.ForkedError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    with lock as again:
        assert again.token == token
print("well")
"""


def test_a_forked_child_takes_nothing_that_lingers(start: Start, hosts: str, path: str) -> None:
    assert start(FORKED, hosts, path, options=FORKS).finish()[:3] == (0, "well", "")


def test_times_and_turns_that_make_no_sense_are_refused(zk: zklock.Client, path: str) -> None:
    for make in (zk.mutex, zk.read, zk.write, zk.aio.mutex):
        untyped: typing.Any = make
        for seconds in (-1, -0.001, math.nan, -math.inf):
            raises(zklock.InvalidInput, lambda: untyped(path, linger=seconds)).says("linger of", "not negative")
        for turns in (0, -1, 2**32):
            raises(zklock.InvalidInput, lambda: untyped(path, local_turns=turns)).says("local_turns")
        for wrong in ("5", [1]):
            with pytest.raises(TypeError):
                untyped(path, linger=wrong)
            with pytest.raises(TypeError):
                untyped(path, local_turns=wrong)
        # A time beyond the end of the clock means for ever.
        assert untyped(path, linger=math.inf, local_turns=2**32 - 1).path == path
    for kind, more in ((zk.election, ()), (zk.exclusive, ()), (zk.semaphore, (2,))):
        other: typing.Any = kind
        for option in ({"linger": 1}, {"local_turns": 2}):
            with pytest.raises(TypeError):
                other(path, *more, **option)
