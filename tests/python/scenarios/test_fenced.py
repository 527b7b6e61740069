"""Promise 2: tokens of one path grow with every grant. For guarded writes see test_guarded.py."""

from __future__ import annotations

import contextlib
import functools
import os
import typing

import pytest
from conftest import SESSION
from ground import Ground
from scenes import SOON, Attempt, ConnectFar, Stat, expire, lose, raises, sequence

import zklock


def growing(tokens: list[int]) -> bool:
    return all(one < other for one, other in zip(tokens, tokens[1:]))


def test_tokens_grow_when_the_parent_is_deleted_and_the_numbers_begin_again(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    lock, tokens = zk.mutex(path), []
    for _ in range(3):
        for round in range(3):
            with lock as hold:
                tokens.append(hold.token)
                assert sequence(hold) == round
        ground(f"delete-tree {path}")
    # The same while somebody holds the lock.
    stale = lock.hold(timeout=SOON)
    tokens.append(stale.token)
    ground(f"delete-tree {path}")
    assert stale.lost.wait(SOON) and stale.lost.reason is zklock.LossReason.NODE_DELETED
    raises(zklock.LockLost, stale.release)
    with lock as hold:
        tokens.append(hold.token)
    assert growing(tokens)


def test_tokens_grow_over_new_sessions_and_the_server_calls_them_the_same(
    connect_far: ConnectFar, ground: Ground, path: str
) -> None:
    tokens = []
    for _ in range(2):
        zk, proxy = connect_far()
        lock = zk.mutex(path)
        hold = lock.hold(timeout=SOON)
        stat = Stat.of(ground, hold.node)
        assert hold.path == path and hold.node.rpartition("/")[0] == path
        assert hold.token == stat.czxid and zk.session_id == stat.owner
        (contender,) = lock.contenders()
        assert contender.token == stat.czxid and contender.session == stat.owner
        assert contender.name == hold.node.rpartition("/")[2] and contender.dialect == "curator"
        assert contender.identity == ground(f"data {hold.node}")
        assert contender.identity.endswith(f"/{os.getpid()}")
        assert contender.since > 1_600_000_000
        tokens.append(hold.token)

        expire(proxy)
        assert hold.lost.wait(SOON) and hold.lost.reason is zklock.LossReason.SESSION_EXPIRED
        raises(zklock.LockLost, hold.release)
        with lock as hold:
            tokens.append(hold.token)
        assert zk.stats().sessions == 2
        zk.close()
    assert growing(tokens)


def test_tokens_grow_from_one_client_to_the_next_and_within_a_queue(
    zk: zklock.Client, other: zklock.Client, path: str
) -> None:
    # A writer's token is greater than all before it.
    tokens: list[int] = []

    def work(client: zklock.Client) -> None:
        for _ in range(10):
            with client.mutex(path, timeout=30) as hold:
                tokens.append(hold.token)

    for attempt in [Attempt(functools.partial(work, client)) for client in (zk, other, zk, other)]:
        attempt.result(30)
    assert len(tokens) == 40 and growing(tokens)


def test_a_token_stays_what_it_was_when_the_hold_is_over(zk: zklock.Client, ground: Ground, path: str) -> None:
    lock = zk.mutex(path)
    released, lost = lock.hold(timeout=SOON), None
    token = released.token
    released.release()
    lost = lock.hold(timeout=SOON)
    lose(ground, lost)
    raises(zklock.LockLost, lost.release)
    assert released.token == token < lost.token


@pytest.fixture
def three() -> typing.Iterator[Ground]:
    """A separate ensemble, whose servers are killed."""
    with contextlib.closing(Ground()) as ground:
        ground("start three tick=200")
        # Other traffic, without which this version of the server may keep a lone client waiting.
        ground("talk on")
        yield ground


def test_tokens_grow_when_another_server_leads(three: Ground) -> None:
    with zklock.Client(three("servers"), session_timeout=SESSION) as zk:
        lock, tokens = zk.mutex("/locks/leader"), []
        for _ in range(2):
            with lock as hold:
                tokens.append(hold.token)
        hold = lock.hold(timeout=SOON)
        tokens.append(hold.token)
        leader = three("leader")
        three(f"kill {leader}")
        assert three("leader") != leader
        # The hold may have outlived the change or not. In either case the next token is greater.
        with contextlib.suppress(zklock.LockLost, zklock.Timeout):
            hold.release()
        with zk.mutex("/locks/leader", timeout=2 * SOON) as hold:
            tokens.append(hold.token)
        assert growing(tokens)
        # The upper half counts the leaders.
        assert tokens[-1] >> 32 > tokens[-2] >> 32
