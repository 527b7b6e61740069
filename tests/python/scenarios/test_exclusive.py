"""Promise 1: two holds of one mutex never both have ``valid_for() > 0``."""

from __future__ import annotations

import functools
import threading

from ground import Ground
from scenes import SOON, Attempt, Connect, ConnectFar, expire, raises, settled

import zklock


class Register:
    """The resource that the lock guards. It remembers all holds, including lost ones, and checks all of them at once."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._holds: list[zklock.Hold] = []
        self._last_token = 0
        self.entered = 0

    def _look(self) -> None:
        for at, one in enumerate(self._holds):
            for other in self._holds[at + 1 :]:
                # The first is checked twice, so it was valid when the second was.
                assert not (one.valid_for() > 0 and other.valid_for() > 0 and one.valid_for() > 0), (one, other)

    def enter(self, hold: zklock.Hold) -> None:
        with self._mutex:
            assert hold.token > self._last_token
            self._last_token = hold.token
            self._holds.append(hold)
            self.entered += 1
            self._look()

    def leave(self, hold: zklock.Hold) -> None:
        """Checks again, and forgets the hold, which is released next."""
        with self._mutex:
            self._look()
            self._holds.remove(hold)


def test_two_clients_never_hold_at_once(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    register = Register()

    def work(client: zklock.Client) -> None:
        for _ in range(50):
            with client.mutex(path, timeout=30) as hold:
                register.enter(hold)
                register.leave(hold)

    attempts = [Attempt(functools.partial(work, client)) for client in (zk, other) for _ in range(4)]
    for attempt in attempts:
        attempt.result(30)
    assert register.entered == 400


def test_sixty_four_clients_hold_one_after_the_other_in_the_order_of_their_nodes(connect: Connect, path: str) -> None:
    register, clients = Register(), [connect() for _ in range(64)]

    def work(client: zklock.Client) -> None:
        for _ in range(2):
            with client.mutex(path, timeout=30) as hold:
                # The order: each token is greater than the last.
                register.enter(hold)
                register.leave(hold)

    for attempt in [Attempt(functools.partial(work, client)) for client in clients]:
        attempt.result(40)
    assert register.entered == 128


def test_two_hundred_threads_hold_one_after_the_other(zk: zklock.Client, ground: Ground, path: str) -> None:
    register, lock = Register(), zk.mutex(path)
    most_nodes = 0

    def work() -> None:
        with lock as hold:
            register.enter(hold)
            register.leave(hold)

    with lock:
        attempts = [Attempt(work) for _ in range(200)]
        ground.expect_children(path, 2)
    for attempt in attempts:
        most_nodes = max(most_nodes, len(ground.children(path)))
        attempt.result(30)
    assert register.entered == 200 and zk.stats().grants == 201
    # However many threads wait, the ensemble only sees the holder and the next.
    assert most_nodes <= 2
    settled(zk)
    assert ground.children(path) == []


def test_connections_that_break_all_the_time_let_nobody_in_beside_the_holder(
    connect_far: ConnectFar, path: str
) -> None:
    register, contenders = Register(), [connect_far() for _ in range(8)]

    def work(number: int) -> None:
        lock = contenders[number].zk.mutex(path)
        for round in range(6):
            # Scattered, but the same in every run.
            strike = number * 31 + round
            contenders[(strike * 2654435761 >> 7) % 8].proxy("cut" if strike % 2 else "reset")
            hold = lock.hold(timeout=30)
            register.enter(hold)
            register.leave(hold)
            try:
                hold.release()
            except zklock.LockLost:
                # A hold may be lost to a fault, and must then report it.
                assert hold.state is zklock.HoldState.LOST

    for attempt in [Attempt(functools.partial(work, number)) for number in range(8)]:
        attempt.result(40)
    assert register.entered == 48
    for zk, _ in contenders:
        settled(zk)
        # A broken connection ends no session.
        assert zk.stats().sessions == 1


def test_a_holder_that_is_cut_off_stops_before_the_next_begins(
    connect_far: ConnectFar, zk: zklock.Client, ground: Ground, path: str
) -> None:
    register, (cut_off, proxy) = Register(), connect_far(session_timeout=1)
    first = cut_off.mutex(path).hold(timeout=SOON)
    register.enter(first)
    proxy("freeze", "both")
    second = zk.mutex(path).hold(timeout=SOON)
    register.enter(second)
    assert first.lost.wait(SOON) and first.lost.reason is zklock.LossReason.LEASE_LAPSED
    proxy("thaw")
    raises(zklock.LockLost, first.release)
    # When it is back in touch, it opens the next session and queues. Its old hold stays lost.
    again = Attempt(lambda: cut_off.mutex(path).hold(timeout=SOON))
    ground.expect_children(path, 2)
    register.leave(second)
    assert first.valid_for() == 0 and not again.is_over()
    second.release()
    third = again.result()
    register.enter(third)
    assert cut_off.stats().sessions == 2
    third.release()


def test_a_holder_whose_session_was_ended_is_not_held_beside(
    connect_far: ConnectFar, zk: zklock.Client, path: str
) -> None:
    register, (far, proxy) = Register(), connect_far()
    first = far.mutex(path).hold(timeout=SOON)
    register.enter(first)
    attempt = Attempt(lambda: zk.mutex(path).hold(timeout=SOON))
    # An operator declares it dead, so the servers free its lock before it can know.
    expire(proxy)
    assert first.lost.wait(SOON)
    second = attempt.result()
    register.enter(second)
    assert second.token > first.token
    raises(zklock.LockLost, first.release)
    second.release()


def test_a_contender_of_kazoo_is_named_and_not_held_beside(zk: zklock.Client, ground: Ground, path: str) -> None:
    kazoo = "0123456789abcdef0123456789abcdef__lock__0000000000"
    lock = zk.mutex(path, timeout=SOON)
    with lock:
        pass
    ground(f"create {path}/{kazoo}")
    for acquire in (
        lock.acquire,
        lambda: lock.acquire(blocking=False),
        lambda: lock.acquire(timeout=1),
        lock.hold,
        lambda: lock.hold(timeout=None),
        lambda: lock.hold(timeout=0),
        lock.__enter__,
    ):
        raises(zklock.ForeignContender, acquire).says(kazoo)
    # Only kazoo's is left.
    ground.expect_children(path, 1)
    assert [(contender.name, contender.dialect) for contender in lock.contenders()] == [(kazoo, "kazoo")]
    ground(f"delete {path}/{kazoo}")
    with lock:
        pass
