"""Promise 3: grants follow the order of the nodes, and a release wakes the next two waiters, never a herd."""

from __future__ import annotations

import functools

from ground import Ground
from scenes import SOON, Attempt, Connect, ConnectFar, Far, Hook, heard, hook, sequence, settled

import zklock


def wait_in_line(zk: zklock.Client, path: str, place: int, grants: list[int]) -> Attempt[None]:
    def work() -> None:
        with zk.mutex(path):
            # The lock itself guards this.
            grants.append(place)

    return Attempt(work)


def test_sixty_four_clients_are_served_in_the_order_of_their_arrival(
    zk: zklock.Client, connect: Connect, ground: Ground, path: str
) -> None:
    grants: list[int] = []
    attempts = []
    with zk.mutex(path):
        for place in range(64):
            attempts.append(wait_in_line(connect(), path, place, grants))
            ground.expect_children(path, place + 2)
        assert grants == []
    for attempt in attempts:
        attempt.result()
    assert grants == list(range(64))


def watch(far: Far) -> Hook:
    """A hook that fires when the client has set its next watch."""
    return hook(far.proxy, "see-reply", "get-data")


def queue(waiters: list[Far], path: str, first: int, grants: list[int]) -> list[Attempt[None]]:
    """Adds waiters to the queue, in this order, each with its watch."""
    attempts = []
    for place, waiter in enumerate(waiters, first):
        watched = watch(waiter)
        attempts.append(wait_in_line(waiter.zk, path, place, grants))
        watched.wait()
        waiter.proxy("record")
    return attempts


def test_a_waiter_that_gives_up_wakes_the_one_behind_its_successor_only_and_the_order_stays(
    zk: zklock.Client, connect_far: ConnectFar, ground: Ground, path: str
) -> None:
    grants: list[int] = []
    before, behind, quitter = [connect_far(), connect_far()], [connect_far(), connect_far()], connect_far()
    with zk.mutex(path):
        attempts = queue(before, path, 0, grants)
        watched = watch(quitter)
        # Long enough for the others to queue up behind it.
        quits = Attempt(lambda: quitter.zk.mutex(path).acquire(timeout=3))
        watched.wait()
        attempts += queue(behind, path, 2, grants)
        assert not quits.is_over()
        again = hook(behind[1].proxy, "see-reply", "get-data", nth=2)
        assert quits.result() is False
        # It looks for the contender to wait for now. Nobody else was woken.
        again.wait()
        ground.expect_children(path, 5)
        for message, count in (("reply:event:", 1), ("request:getchildren:", 1), ("request:getdata:", 2)):
            assert heard(behind[1].proxy, message) == count
        for waiter in (*before, behind[0]):
            assert heard(waiter.proxy, "reply:event:") == 0
        assert grants == []
    for attempt in attempts:
        attempt.result()
    assert grants == [0, 1, 2, 3]


def test_a_release_is_heard_by_the_next_two_and_by_nobody_behind(
    zk: zklock.Client, connect_far: ConnectFar, path: str
) -> None:
    grants: list[int] = []
    following, waiters = connect_far(), [connect_far() for _ in range(4)]
    with zk.mutex(path):
        watched = watch(following)
        next_one = Attempt(following.zk.mutex(path).hold)
        watched.wait()
        attempts = queue(waiters, path, 0, grants)
        prepared = watch(waiters[0])
    second = next_one.result()
    prepared.wait()
    assert [heard(waiter.proxy, "reply:event:") for waiter in waiters] == [1, 0, 0, 0]
    second.release()
    for attempt in attempts:
        attempt.result()
    # Two events: for the second node ahead, and for the next, unless that was gone when it looked.
    assert all(1 <= heard(waiter.proxy, "reply:event:") <= 2 for waiter in waiters)
    assert [heard(waiter.proxy, "request:getchildren:") for waiter in waiters] == [1] * 4
    assert grants == [0, 1, 2, 3]


def test_threads_of_one_client_are_served_in_the_order_of_their_arrival(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    lock, nodes = zk.mutex(path), []

    def served() -> list[int]:
        grants, tokens, sequences, attempts = [], [], [], []

        def work(place: int) -> None:
            with lock as hold:
                grants.append(place)
                tokens.append(hold.token)
                sequences.append(sequence(hold))
                nodes.append(len(ground.children(path)))

        with lock as first:
            for place in range(30):
                attempts.append(Attempt(functools.partial(work, place)))
                # The queue inside a process is invisible, so give it time to get there.
                assert not attempts[-1].wait(0.02)
            ground.expect_children(path, 2)
        for attempt in attempts:
            attempt.result()
        assert tokens == sorted(tokens) and tokens[0] > first.token
        assert sequences == [sequence(first) + 1 + place for place in range(30)]
        return grants

    # On a busy machine one may be late by chance, but not every time.
    assert list(range(30)) in (served() for _ in range(3))
    # All waiters of this client have at most two nodes: the holder's and the next one's.
    assert max(nodes) <= 2
    settled(zk)
    assert ground.children(path) == []


def test_a_release_wakes_one_of_many_threads(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path)
    with lock:
        attempts = [Attempt(lambda: lock.hold(timeout=SOON)) for _ in range(10)]
    for left in range(10, 0, -1):
        held = [attempt for attempt in attempts if attempt.wait(0.0)]
        while not held:
            held = [attempt for attempt in attempts if attempt.wait(0.05)]
        assert len(held) == 1 and len(attempts) == left
        attempts.remove(held[0])
        # Nobody else gets in while it is held.
        assert not any(attempt.wait(0.005) for attempt in attempts)
        held[0].result().release()
