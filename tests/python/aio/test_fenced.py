"""Promise 2: tokens grow with every grant, and a write guarded by a hold is refused once the hold is lost."""

from __future__ import annotations

import asyncio

import pytest
from ground import Ground
from scenes import expire

import zklock


def czxid(ground: Ground, node: str) -> int:
    fields = dict(field.split("=") for field in ground(f"stat {node}").split())
    return int(fields["czxid"], 16)


def test_tokens_grow_when_the_parent_is_deleted_and_the_numbers_begin_again(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        tokens = []
        for number in range(3):
            async with zk.aio.mutex(path) as hold:
                assert hold.node.endswith(f"{0:010d}")
                assert hold.token == czxid(ground, hold.node)
                tokens.append(hold.token)
            ground(f"delete-tree {path}")
        assert tokens == sorted(set(tokens))

    asyncio.run(main())


def test_tokens_grow_over_new_sessions_and_the_server_calls_them_the_same(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        tokens, sessions = [], set()
        async with zklock.Client(proxy.hosts, session_timeout=1) as zk:
            for _ in range(3):
                hold = await zk.mutex(path).hold(timeout=10)
                assert hold.token == czxid(ground, hold.node)
                tokens.append(hold.token)
                sessions.add(zk.session_id)
                expire(proxy)
                assert await hold.lost in (zklock.LossReason.SESSION_EXPIRED, zklock.LossReason.LEASE_LAPSED)
        assert tokens == sorted(set(tokens)) and len(sessions) == 3

    asyncio.run(main())


def test_a_guarded_write_is_done_while_the_lock_is_held(zk: zklock.Client, path: str, ground: Ground) -> None:
    state = f"{path}-state"

    async def main() -> None:
        async with zk.aio.mutex(path) as hold:
            await hold.guarded().create(state, b"one").commit()
            await hold.guarded().set_data(state, bytearray(b"two"), version=0).commit()
            assert ground(f"data {state}") == "two"
            with pytest.warns(RuntimeWarning, match="never committed"):
                hold.guarded().delete(state)
            assert ground(f"data {state}") == "two"
            await hold.guarded().delete(state).commit()
            assert ground(f"exists {state}") == "false"

    asyncio.run(main())


def test_a_guarded_write_is_done_whole_or_not_at_all(zk: zklock.Client, path: str, ground: Ground) -> None:
    state = f"{path}-state"
    ground(f"create {state} untouched")

    async def main() -> None:
        async with zk.aio.mutex(path) as hold:
            with pytest.raises(zklock.Conflict):
                await hold.guarded().set_data(state, b"touched").create(state).commit()
            with pytest.raises(zklock.Conflict):
                await hold.guarded().set_data(state, b"touched", version=7).commit()
            assert ground(f"data {state}") == "untouched"

    asyncio.run(main())


def test_a_guarded_write_is_refused_when_an_operator_has_deleted_the_node(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    state = f"{path}-state"
    ground(f"create {state} untouched")

    async def main() -> None:
        hold = await zk.aio.mutex(path).hold()
        ground(f"delete {hold.node}")
        with pytest.raises(zklock.LockLost) as caught:
            await hold.guarded().set_data(state, b"touched").commit()
        assert caught.value.reason is zklock.LossReason.NODE_DELETED
        assert ground(f"data {state}") == "untouched"

    asyncio.run(main())


def test_a_guarded_write_is_refused_when_the_session_has_expired(path: str, ground: Ground) -> None:
    proxy, state = ground.proxy("1"), f"{path}-state"
    ground(f"create {state} untouched")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=2) as zk:
            hold = await zk.mutex(path).hold()
            expire(proxy)
            with pytest.raises(zklock.LockLost):
                await hold.guarded().set_data(state, b"touched").commit()
            assert ground(f"data {state}") == "untouched"

    asyncio.run(main())


def test_a_hold_reads_and_is_told_what_it_has_written(zk: zklock.Client, path: str, ground: Ground) -> None:
    state = f"{path}-state"

    async def main() -> None:
        async with zk.aio.mutex(path) as hold:
            assert await hold.read(state) is None
            assert await hold.guarded().create(state, b"a").set_data(state, b"b").commit() == (0, 1)
            assert await hold.read(state) == zklock.NodeData(b"b", 1)
            with pytest.raises(zklock.Conflict) as caught:
                await hold.guarded().set_data(state, b"c", 1).create(state).commit()
            assert (caught.value.index, caught.value.path) == (1, state)
            with pytest.raises(zklock.InvalidInput):
                await hold.read("relative")
        assert await hold.read(state) == (b"b", 1)
        assert ground(f"data {state}") == "b"

    asyncio.run(main())


def test_a_guarded_write_after_the_release_is_refused(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        async with zk.aio.mutex(path) as hold:
            late = hold.guarded().create(f"{path}-state")
        with pytest.raises(zklock.NotHeld):
            await late.commit()
        with pytest.raises(zklock.NotHeld):
            await hold.confirm()
        assert ground(f"exists {path}-state") == "false"

    asyncio.run(main())


def test_a_guarded_write_whose_reply_is_lost_is_uncertain(path: str, ground: Ground) -> None:
    proxy, state = ground.proxy("1"), f"{path}-state"

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=4) as zk, zk.mutex(path) as hold:
            hook = proxy("drop-reply", "multi", "1", state)
            with pytest.raises(zklock.Uncertain):
                await hold.guarded().create(state).commit()
            assert ground(f"fired {hook}") == "true"
            assert ground(f"exists {state}") == "true"
            assert await hold.confirm() > 0

    asyncio.run(main())
