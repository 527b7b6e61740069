"""Promise 1: two holds of one mutex never both have ``valid_for() > 0``."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aio.support import SOON, queue, settled, true
from ground import Ground

import zklock


def test_two_clients_never_hold_at_once(zk: zklock.Client, other: zklock.Client, path: str, ground: Ground) -> None:
    inside: list[zklock.AsyncHold] = []
    seen = []

    async def work(client: zklock.AsyncClient) -> None:
        for _ in range(25):
            async with client.mutex(path, timeout=30) as hold:
                inside.append(hold)
                await asyncio.sleep(0)
                seen.append([held.valid_for() > 0 for held in inside])
                inside.remove(hold)

    async def main() -> None:
        await asyncio.gather(*(work(client.aio) for client in (zk, other) for _ in range(4)))
        assert seen == [[True]] * 200
        assert ground.children(path) == []

    asyncio.run(main())


def test_sixty_four_clients_hold_one_after_the_other_in_the_order_of_their_nodes(hosts: str, path: str) -> None:
    tokens: list[int] = []

    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            clients = [zklock.Client(hosts) for _ in range(64)]
            clients_here = await asyncio.gather(*map(stack.enter_async_context, clients))

            async def work(client: zklock.AsyncClient) -> None:
                for _ in range(3):
                    async with client.mutex(path, timeout=50) as hold:
                        tokens.append(hold.token)

            await asyncio.gather(*map(work, clients_here))

    asyncio.run(main())
    # The token is the number of the transaction that created the node.
    assert len(set(tokens)) == 192 and tokens == sorted(tokens)


def test_a_holder_that_is_cut_off_stops_before_the_next_begins(other: zklock.Client, path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=1) as zk:
            lock = zk.mutex(path)
            first = await lock.hold()
            proxy("freeze", "both")
            second = await other.aio.mutex(path).hold(timeout=SOON)
            assert first.valid_for() == 0 < second.valid_for()
            assert await asyncio.wait_for(first.lost, SOON) is zklock.LossReason.LEASE_LAPSED
            proxy("thaw")
            # When it is back in touch, it opens the next session and queues. Its old hold stays lost.
            with pytest.raises(zklock.LockLost):
                await first.release()
            third = asyncio.create_task(lock.hold())
            await queue(ground, path, 2)
            assert not third.done()
            await second.release()
            hold = await asyncio.wait_for(third, SOON)
            assert first.token < second.token < hold.token
            await hold.release()
            await settled(zk)

    asyncio.run(main())


def test_a_contender_of_kazoo_is_named_and_not_held_beside(zk: zklock.Client, path: str, ground: Ground) -> None:
    kazoo = "0123456789abcdef0123456789abcdef__lock__0000000000"

    async def main() -> None:
        lock = zk.aio.mutex(path, timeout=SOON)
        await lock.acquire()
        await lock.release()
        ground(f"create {path}/{kazoo}")
        for call in (lock.acquire(), lock.acquire(timeout=SOON), lock.acquire(blocking=False), lock.hold()):
            with pytest.raises(zklock.ForeignContender, match=kazoo):
                await call
        with pytest.raises(zklock.ForeignContender, match=kazoo):
            async with lock:
                raise AssertionError("it is held beside another")
        # Only kazoo's is left.
        assert await queue(ground, path, 1) == [kazoo]
        [contender] = await lock.contenders()
        assert (contender.name, contender.dialect) == (kazoo, "kazoo")
        ground(f"delete {path}/{kazoo}")
        async with lock:
            pass
        assert await true(lambda: ground.children(path) == [])

    asyncio.run(main())
