"""Promise 7: a grant is delivered only with a live lease, checked at the moment of delivery."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
import typing

import pytest
from ground import Ground
from scenes import SOON, Attempt, ConnectFar, Far, Stat, eventually, expire, hook, raises

import zklock

# The session timeout T of the waiters.
WAITER = 2.0
HEARTBEAT = WAITER / 10
# Longer than the lease that a write proves if only one write went before it (T/4), and shorter than the time for which
# the client library waits for a sign of life (2/5 T).
BEYOND_A_LEASE = WAITER * 3 / 10


class Granted(typing.NamedTuple):
    """The state of a hold at the moment of its delivery, before anything else can run."""

    hold: zklock.Hold
    state: zklock.HoldState
    valid_for: float


def acquire(zk: zklock.Client, path: str) -> Attempt[Granted]:
    def call() -> Granted:
        hold = zk.mutex(path).hold(timeout=2 * SOON)
        valid_for = hold.valid_for()
        return Granted(hold, hold.state, valid_for)

    return Attempt(call)


class Pair(typing.NamedTuple):
    """A holder, and a waiter behind a proxy, with its node."""

    ground: Ground
    path: str
    first: zklock.Hold
    waiter: Far
    attempt: Attempt[Granted]
    node: str

    def ends(self, same_node: bool, sessions: int) -> None:
        """Checks that the waiter is granted the lock, with its old node or a new one."""
        hold, state, valid_for = self.attempt.result(2 * SOON)
        assert state is zklock.HoldState.HELD and valid_for > 0
        stat = Stat.of(self.ground, hold.node)
        assert (hold.token, self.waiter.zk.session_id) == (stat.czxid, stat.owner)
        assert (hold.node == self.node) is same_node
        assert hold.token > self.first.token
        # No dead hold was delivered.
        stats = self.waiter.zk.stats()
        assert (stats.sessions, stats.grants, stats.losses) == (sessions, 1, 0)
        hold.release()


@pytest.fixture
def pair(zk: zklock.Client, connect_far: ConnectFar, ground: Ground, path: str) -> Pair:
    first = zk.mutex(path).hold(timeout=SOON)
    waiter = connect_far(session_timeout=WAITER)
    watched = hook(waiter.proxy, "see-reply", "get-data", path)
    attempt = acquire(waiter.zk, path)
    watched.wait()
    (node,) = {f"{path}/{name}" for name in ground.children(path)} - {first.node}
    return Pair(ground, path, first, waiter, attempt, node)


def test_a_watch_event_or_check_that_comes_after_the_lease_grants_no_dead_hold(pair: Pair) -> None:
    # After this the opening of the session proves nothing any more.
    assert not pair.attempt.wait(WAITER)
    proxy = pair.waiter.proxy
    # The checks are of its own node. After a long silence it also asks about the node ahead.
    late = (("event", pair.path, 1), ("multi", pair.node, 1), ("multi", pair.node, 2))
    gates = [hook(proxy, "hold-reply", kind, where, nth) for kind, where, nth in late]
    # Otherwise it might reconnect in the middle of a late answer.
    hook(proxy, "see-reply", "ping").wait()
    pair.first.release()
    for gate in gates:
        gate.wait()
        # Nothing proves that the session is alive.
        assert not pair.attempt.wait(BEYOND_A_LEASE)
        gate.open()
    pair.ends(same_node=True, sessions=1)


@pytest.mark.parametrize("kind", ["create", "get-children"])
def test_a_create_or_list_answered_after_the_lease_grants_no_dead_hold(
    connect_far: ConnectFar, ground: Ground, path: str, kind: str
) -> None:
    zk, proxy = connect_far(session_timeout=WAITER)
    with zk.mutex(path):
        pass
    gate = hook(proxy, "hold-reply", kind, path)
    hook(proxy, "see-reply", "ping").wait()
    attempt = acquire(zk, path)
    gate.wait()
    assert not attempt.wait(BEYOND_A_LEASE)
    gate.open()
    hold, state, valid_for = attempt.result()
    assert state is zklock.HoldState.HELD and valid_for > 0
    assert hold.token == Stat.of(ground, hold.node).czxid
    assert zk.stats().losses == 0
    hold.release()


def test_a_waiter_whose_node_was_deleted_long_ago_gets_no_hold_without_a_node(pair: Pair) -> None:
    pair.ground(f"delete {pair.node}")
    assert not pair.attempt.wait(HEARTBEAT + 0.05)
    pair.first.release()
    pair.ends(same_node=False, sessions=1)


def test_a_waiter_whose_node_was_deleted_just_now_gets_no_hold_that_lasts(pair: Pair) -> None:
    gate = hook(pair.waiter.proxy, "hold-reply", "event", pair.path)
    pair.ground(f"delete {pair.node}")
    pair.first.release()
    gate.wait()
    gate.open()
    hold, _, _ = pair.attempt.result(2 * SOON)
    if hold.node == pair.node:
        # It could not know of this at the grant, but learns of it within a heartbeat.
        assert hold.lost.wait(SOON) and hold.lost.reason is zklock.LossReason.NODE_DELETED
        with pytest.raises(zklock.LockLost):
            hold.release()
    else:
        assert hold.confirm() > 0
        hold.release()


def test_a_waiter_whose_session_expires_queues_again_in_the_next(pair: Pair) -> None:
    expire(pair.waiter.proxy)
    eventually(lambda: pair.ground(f"exists {pair.node}") == "false")
    pair.ground.expect_children(pair.path, 2)
    # It is back in the queue, and not granted before its turn.
    assert not pair.attempt.is_over()
    assert pair.first.state is zklock.HoldState.HELD
    pair.first.release()
    pair.ends(same_node=False, sessions=2)


def test_a_waiter_whose_session_expires_with_the_lock_free_meanwhile_gets_no_dead_hold(
    pair: Pair, other: zklock.Client
) -> None:
    # The event that makes it the next to hold reaches the client after the end of its session.
    gate = hook(pair.waiter.proxy, "hold-reply", "event", pair.path)
    pair.first.release()
    gate.wait()
    expire(pair.waiter.proxy)
    with other.mutex(pair.path, timeout=SOON) as second:
        assert not pair.attempt.wait(BEYOND_A_LEASE)
        gate.open()
        pair.ground.expect_children(pair.path, 2)
        assert not pair.attempt.is_over()
        assert second.state is zklock.HoldState.HELD
    pair.ends(same_node=False, sessions=2)


SLEEPER = """
import sys
import zklock

hosts, path = sys.argv[1:]
with zklock.Client(hosts, session_timeout=1) as zk:
    print("ready", flush=True)
    hold = zk.mutex(path).hold(timeout=10)
    valid_for, state = hold.valid_for(), hold.state
    confirmed = hold.confirm()
    print(state.name, valid_for > 0, confirmed > 0, hold.node, flush=True)
    hold.release()
"""


# Past the lease, and past the session.
@pytest.mark.parametrize("stop", [0.69, 1.75])
def test_a_grant_that_the_process_slept_through_is_not_delivered(
    zk: zklock.Client, ground: Ground, hosts: str, path: str, stop: float
) -> None:
    with zk.mutex(path) as first:
        sleeper = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SLEEPER, hosts, path], stdout=subprocess.PIPE, text=True
        )
        try:
            assert sleeper.stdout is not None and sleeper.stdout.readline() == "ready\n"
            ground.expect_children(path, 2)
            sleeper.send_signal(signal.SIGSTOP)
            first.release()
            # The process is stopped for this time.
            time.sleep(stop)
            sleeper.send_signal(signal.SIGCONT)
            state, was_valid, was_confirmed, node = sleeper.stdout.readline().split()
            assert (state, was_valid, was_confirmed) == ("HELD", "True", "True")
            assert node.startswith(path) and node != first.node
            assert sleeper.wait(SOON) == 0
        finally:
            sleeper.kill()
            sleeper.communicate()



def test_a_wait_longer_than_several_leases_ends_in_a_live_hold(
    zk: zklock.Client, connect_far: ConnectFar, path: str
) -> None:
    waiter = connect_far(session_timeout=1)
    with zk.mutex(path) as first:
        attempt = acquire(waiter.zk, path)
        assert not attempt.wait(3)
    hold, state, valid_for = attempt.result()
    assert state is zklock.HoldState.HELD and valid_for > 0 and hold.confirm() > 0
    assert hold.token > first.token
    hold.release()


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="nothing keeps this interpreter")
def test_a_hold_that_died_while_the_interpreter_was_busy_is_not_delivered(
    zk: zklock.Client, other: zklock.Client, ground: Ground, path: str
) -> None:
    """An extension may keep the interpreter so long that the hold dies between its grant and its block."""
    before = other.mutex(path).hold(timeout=SOON)
    delivered: list[tuple[float, int]] = []

    def work() -> None:
        with zk.mutex(path, timeout=SOON) as hold:
            delivered.append((hold.valid_for(), hold.token))

    attempt = Attempt(work)
    first, second = sorted(ground.expect_children(path, 2), key=lambda name: name[-10:])
    # The second gets the lock, and its node is deleted before it could be told. The wait for five nodes just takes time.
    answers = ground.tell(f"delete {path}/{first}", f"wait-children {path} 5 400", f"delete {path}/{second}")
    ctypes.PyDLL(None).poll(None, 0, 2000)
    assert [answer.split()[0] for answer in answers()] == ["ok", "error", "ok"]
    attempt.result()
    ((valid_for, token),) = delivered
    assert valid_for > 0 and token > before.token
    assert zk.stats()[:4] == (1, 2, 1, 0)
    raises(zklock.LockLost, before.release)
