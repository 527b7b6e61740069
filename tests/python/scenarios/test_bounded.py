"""Promise 4: an acquire with a deadline returns by then, whatever the network does, and says what the trouble is."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import threading
import time
import typing

import pytest
from conftest import SESSION
from ground import Ground
from punctual import not_later
from scenes import (
    GRACE,
    SOON,
    Attempt,
    Connect,
    ConnectFar,
    Far,
    Lateness,
    Listener,
    Raised,
    elsewhere,
    eventually,
    expire,
    in_time,
    raises,
    settled,
)

import zklock

A_WHILE = 0.2
HOUR = 3600.0
DIRECTIONS = ["to-server", "to-client", "both"]


def times_out(lock: zklock.Lock, timeout: float, late: type[zklock.Error] = zklock.Timeout) -> Raised:
    """Checks that both calls time out in time, and not too early. One returns False, unless it is an outage; the other raises."""

    def acquire() -> None:
        begun = time.monotonic()
        if late is zklock.Timeout:
            assert lock.acquire(timeout=timeout) is False
        else:
            raises(late, lambda: lock.acquire(timeout=timeout))
        assert time.monotonic() - begun >= timeout - 0.001

    def hold() -> Raised:
        begun = time.monotonic()
        raised = raises(late, lambda: lock.hold(timeout=timeout))
        assert time.monotonic() - begun >= timeout - 0.001
        return raised

    in_time(acquire, timeout)
    return in_time(hold, timeout)


def works(lock: zklock.Lock, client: zklock.Client) -> None:
    """Checks that the lock works (again), and its client owes nothing."""
    assert lock.acquire(timeout=SOON)
    lock.release()
    settled(client)


def unreachable(hosts: str, timeout: float) -> Raised:
    """Checks that a connect fails in time."""
    client = zklock.Client(hosts, connect_timeout=timeout)
    return in_time(lambda: raises(zklock.Unreachable, client.connect), timeout)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_frozen_network_delays_nobody_whichever_way(far: Far, ground: Ground, path: str, direction: str) -> None:
    zk, proxy = far
    lock = zk.mutex(path)
    proxy("freeze", direction)
    times_out(lock, A_WHILE).says(path)
    unreachable(proxy.hosts, A_WHILE)
    proxy("thaw")
    works(lock, zk)
    ground.expect_children(path, 0)


def test_a_wait_in_the_queue_ends_in_time_when_the_network_freezes_under_it(
    zk: zklock.Client, far: Far, ground: Ground, path: str
) -> None:
    timeout = 3 * A_WHILE
    with zk.mutex(path), Lateness() as late:
        lock = far.zk.mutex(path)
        attempt = Attempt(lambda: lock.acquire(timeout=timeout))
        ground.expect_children(path, 2)
        far.proxy("freeze", "both")
        assert attempt.result() is False
        assert timeout - 0.001 <= attempt.took
        not_later(attempt.took, timeout + GRACE + late.allowance)
        far.proxy("thaw")
        ground.expect_children(path, 1)


def test_a_half_open_or_refused_connection_delays_nobody(far: Far, path: str) -> None:
    zk, proxy = far
    lock = zk.mutex(path)
    proxy("half-open")
    times_out(lock, A_WHILE)
    works(lock, zk)

    # In the middle of a reconnect, which cannot succeed as long as the proxy refuses.
    proxy("refuse", "on")
    proxy("reset")

    def is_cut() -> bool:
        with pytest.raises((zklock.Timeout, zklock.Unreachable)) as late:
            lock.hold(timeout=0.02)
        return late.type is zklock.Unreachable

    eventually(is_cut)
    times_out(lock, A_WHILE, zklock.Unreachable).says("no server answers", ": check hosts and network")
    unreachable(proxy.hosts, A_WHILE).says(proxy.hosts)
    proxy("refuse", "off")
    works(lock, zk)


def test_the_error_says_who_is_in_the_way(
    zk: zklock.Client, other: zklock.Client, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    says = "not acquired within 600ms: others are before us in the queue"
    with zk.mutex(path):
        times_out(other.mutex(path), 3 * A_WHILE).says(path, says)
        raised = raises(zklock.Timeout, other.mutex(path, timeout=3 * A_WHILE).__enter__).says(path, says)
        assert isinstance(raised.error, TimeoutError)
        # If the answer is only False, the log says why.
        with caplog.at_level(logging.INFO, "zklock"):
            assert not other.mutex(path).acquire(timeout=3 * A_WHILE)
            eventually(lambda: any(says in record.getMessage() for record in caplog.records))
        # A try names the holder. On a busy machine that may not be known in time.
        tried = other.mutex(path, timeout=0)
        eventually(lambda: " holds it (its node " in str(raises(zklock.Timeout, tried.__enter__).error))
        settled(other)


def test_the_error_does_not_blame_the_queue_for_a_silent_server(far: Far, path: str) -> None:
    zk, proxy = far
    lock = zk.mutex(path)
    proxy("freeze", "to-client")
    # Nobody is ahead in the queue.
    assert "others are before us" not in str(times_out(lock, A_WHILE).error)
    proxy("thaw")
    works(lock, zk)


def test_a_timeout_of_zero_tries_once(other: zklock.Client, connect_far: ConnectFar, ground: Ground, path: str) -> None:
    zk, proxy = connect_far(connect_timeout=HOUR)
    lock = zk.mutex(path)
    assert lock.acquire(timeout=0)
    raises(zklock.Timeout, lambda: other.mutex(path).hold(timeout=0)).says(path, "is held by another")
    raises(zklock.Timeout, other.mutex(path, timeout=0).__enter__).says(path, "is held by another")
    for acquired in (other.mutex(path).acquire(False), other.mutex(path).acquire(timeout=0), lock.acquire(False)):
        assert acquired is False
    ground.expect_children(path, 1)
    lock.release()
    assert lock.acquire(blocking=False)
    lock.release()

    # It waits for an answer, but only for the try timeout, a second. Without an answer it raises.
    proxy("freeze", "both")
    with Lateness() as late:
        begun = time.monotonic()
        raises(zklock.Unreachable, lambda: lock.acquire(blocking=False))
        not_later(time.monotonic() - begun, 1 + GRACE + late.allowance)
    raises(zklock.Unreachable, lambda: lock.hold(timeout=0))
    proxy("thaw")
    works(lock, zk)
    ground.expect_children(path, 0)


def test_a_try_is_bounded_by_its_own_timeout_where_nobody_answers(
    connect_far: ConnectFar, ground: Ground, path: str
) -> None:
    zk, proxy = connect_far(connect_timeout=HOUR, try_timeout=A_WHILE)
    lock, barrier, doors = zk.mutex(path), zk.barrier(f"{path}-barrier"), zk.double_barrier(f"{path}-doors", 1)
    member = doors.enter(timeout=SOON)
    proxy("freeze", "both")
    calls: list[typing.Callable[[], object]] = [
        lambda: lock.acquire(blocking=False),
        lambda: lock.hold(timeout=0),
        zk.mutex(path, timeout=0).__enter__,
        lambda: barrier.wait(timeout=0),
        lambda: doors.enter(timeout=0),
        lambda: member.leave(timeout=0),
    ]
    for call in calls:
        # The call must come back, although connecting may take an hour.
        elsewhere(functools.partial(raises, zklock.Unreachable, call))

    async def main() -> None:
        for refused in (lock.aio.acquire(blocking=False), lock.aio.hold(timeout=0), barrier.aio.wait(timeout=0)):
            with pytest.raises(zklock.Unreachable):
                await asyncio.wait_for(refused, SOON)

    asyncio.run(main())
    proxy("thaw")
    works(lock, zk)
    ground.expect_children(path, 0)


def test_a_timeout_of_a_millisecond_is_kept(zk: zklock.Client, other: zklock.Client, ground: Ground, path: str) -> None:
    with zk.mutex(path):
        lock = other.mutex(path)
        for _ in range(10):
            times_out(lock, 0.001)
        times_out(lock, 1e-9)
        ground.expect_children(path, 1)
    works(lock, other)


def test_a_timeout_beyond_the_end_of_time_waits_for_ever(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    lock = other.mutex(path)

    def acquire(timeout: float | None) -> None:
        assert lock.acquire(timeout=timeout)
        lock.release()

    def block() -> None:
        with lock:
            pass

    waits: list[typing.Callable[[], None]] = [
        lambda: lock.hold(timeout=None).release(),
        lambda: lock.hold(timeout=math.inf).release(),
        lambda: lock.hold(timeout=1e300).release(),
        lambda: lock.hold(timeout=threading.TIMEOUT_MAX).release(),
        lambda: other.mutex(path, timeout=math.inf).hold().release(),
        functools.partial(acquire, -1),
        functools.partial(acquire, None),
        functools.partial(acquire, threading.TIMEOUT_MAX),
        block,
    ]
    for wait in waits:
        with zk.mutex(path):
            attempt = Attempt(wait)
            ground.expect_children(path, 2)
            assert not attempt.is_over()
        attempt.result()
    with zk.mutex(path) as hold:
        attempts = [Attempt(functools.partial(hold.lost.wait, timeout)) for timeout in (None, math.inf, 1e300)]
        assert not any(attempt.is_over() for attempt in attempts)
    assert [attempt.result() for attempt in attempts] == [False, False, False]


def test_the_timeout_of_the_lock_is_for_calls_that_say_nothing_else(
    zk: zklock.Client, other: zklock.Client, path: str
) -> None:
    with zk.mutex(path):
        lock = other.mutex(path, timeout=A_WHILE)
        # This call has no result that a caller would check, so it raises.
        in_time(lambda: raises(zklock.Timeout, lock.acquire), A_WHILE)
        in_time(lambda: raises(zklock.Timeout, lock.hold), A_WHILE)
        in_time(lambda: raises(zklock.Timeout, lock.__enter__), A_WHILE)
        assert in_time(lambda: lock.acquire(timeout=2 * A_WHILE), 2 * A_WHILE) is False
        attempt = Attempt(lambda: lock.hold(timeout=None).release())
        # The call's own timeout overrides the lock's.
        assert not other.mutex(path).acquire(timeout=3 * A_WHILE)
        assert not attempt.is_over()
    attempt.result()


def test_a_new_session_and_a_new_place_in_the_queue_do_not_extend_the_deadline(
    zk: zklock.Client, far: Far, ground: Ground, path: str
) -> None:
    timeout = 10 * A_WHILE
    with zk.mutex(path) as hold, Lateness() as late:
        attempt = Attempt(lambda: far.zk.mutex(path).acquire(timeout=timeout))
        before = ground.expect_children(path, 2)
        expire(far.proxy)

        def is_back() -> bool:
            now = ground.children(path)
            return len(now) == 2 and set(now) != set(before)

        # It queues again, in the next session.
        eventually(is_back)
        assert not attempt.is_over()
        assert attempt.result() is False
        assert timeout - 0.001 <= attempt.took
        not_later(attempt.took, timeout + GRACE + late.allowance)
        assert far.zk.stats().sessions == 2
        settled(far.zk)
        assert hold.state is zklock.HoldState.HELD
        ground.expect_children(path, 1)


def test_a_queue_that_moves_does_not_extend_the_deadline(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    timeout = 6 * A_WHILE
    before = [f"{path}/_c_{number:08x}-89ab-4cde-8f01-23456789abcd-lock-{number:010d}" for number in range(2)]
    # This creates the lock's own node.
    with zk.mutex(path):
        pass
    for node in before:
        ground(f"create {node}")
    with Lateness() as late:
        attempt = Attempt(lambda: other.mutex(path).acquire(timeout=timeout))
        ground.expect_children(path, 3)
        time.sleep(timeout / 2)
        # This wakes the waiter, which then waits for the next contender.
        ground(f"delete {before[1]}")
        assert attempt.result() is False
        assert timeout - 0.001 <= attempt.took
        not_later(attempt.took, timeout + GRACE + late.allowance)
    ground(f"delete {before[0]}")


def test_a_release_is_bounded_by_the_session_timeout_and_goes_on_in_the_background(
    connect_far: ConnectFar, ground: Ground, path: str
) -> None:
    zk, proxy = connect_far(session_timeout=1)
    session = zk.session_timeout
    assert session is not None
    lock = zk.mutex(path)

    def acquired() -> typing.Callable[[], None]:
        assert lock.acquire(timeout=SOON)
        return lock.release

    for acquire in (acquired, lambda: lock.hold(timeout=SOON).release):
        release = acquire()
        proxy("freeze", "to-server")
        with Lateness() as late:
            begun = time.monotonic()
            raises(zklock.Timeout, release).says("goes on in the background")
            not_later(time.monotonic() - begun, session + GRACE + late.allowance)
        raises(zklock.NotHeld, release)
        assert zk.stats().owed == 1
        proxy("thaw")
        settled(zk)
        ground.expect_children(path, 0)


@pytest.mark.parametrize("direction", DIRECTIONS[:2])
def test_a_close_takes_a_second_at_most(far: Far, ground: Ground, path: str, direction: str) -> None:
    zk, proxy = far
    hold = zk.mutex(path).hold(timeout=SOON)
    proxy("freeze", direction)
    with Lateness() as late:
        begun = time.monotonic()
        zk.close()
        not_later(time.monotonic() - begun, 1 + GRACE + late.allowance)
    assert hold.valid_for() == 0
    proxy("thaw")
    # The session was closed after all, or has timed out.
    ground.expect_children(path, 0, within=SESSION + SOON)


def test_a_connect_is_bounded_where_something_else_listens_or_nobody_does() -> None:
    with Listener.mute(listens=True) as mute:
        unreachable(mute.hosts, 2 * A_WHILE).says("accepts connections but opens no session", mute.hosts)
    with Listener.mute(listens=False) as nobody:
        unreachable(nobody.hosts, A_WHILE).says(nobody.hosts, "refused")
    # A network that drops everything: addresses reserved for documentation, where nobody answers.
    hosts = "192.0.2.1:2181,192.0.2.2:2181,192.0.2.3:2181,192.0.2.4:2181"
    unreachable(hosts, A_WHILE).says("192.0.2.4")


def test_connecting_is_part_of_the_deadline_of_the_first_acquire(path: str) -> None:
    with Listener.mute(listens=True) as mute:
        # The connect timeout is longer, so it does not count.
        client = zklock.Client(mute.hosts, connect_timeout=SOON)
        lock = client.mutex(path)
        times_out(lock, A_WHILE, zklock.Unreachable).says(mute.hosts, "check hosts and network")
        in_time(lambda: raises(zklock.Unreachable, lambda: client.connect(A_WHILE)), A_WHILE)
        client.close()
        # The shorter of the two timeouts counts.
        hasty = zklock.Client(mute.hosts, connect_timeout=A_WHILE)
        in_time(lambda: raises(zklock.Unreachable, lambda: hasty.mutex(path).hold(timeout=SOON)), A_WHILE)
        in_time(lambda: raises(zklock.Unreachable, lambda: hasty.mutex(path).acquire()), A_WHILE)
        in_time(lambda: raises(zklock.Unreachable, lambda: hasty.mutex(path).acquire(False)), A_WHILE)


def test_what_remains_of_the_deadline_after_connecting_is_for_the_queue(
    zk: zklock.Client, connect: Connect, ground: Ground, hosts: str, path: str
) -> None:
    with zk.mutex(path):
        proxy = ground.proxy("1")
        proxy("delay", "100")
        client = zklock.Client(proxy.hosts, session_timeout=SESSION)
        lock = client.mutex(path)

        def acquire() -> None:
            assert lock.acquire(timeout=5 * A_WHILE) is False

        in_time(acquire, 5 * A_WHILE)
        client.close()
