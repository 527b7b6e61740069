"""Promise 3: grants follow the order of arrival, and a release wakes the next two waiters."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aio.support import queue, soon, steps
from ground import Ground

import zklock


async def line(lock: zklock.AsyncLock, name: int, order: list[int]) -> None:
    async with lock:
        order.append(name)
        await asyncio.sleep(0)


def test_the_tasks_of_a_client_are_served_in_the_order_of_their_arrival(
    zk: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        order: list[int] = []
        lock = zk.aio.mutex(path)
        async with lock:
            tasks = []
            for name in range(20):
                tasks.append(asyncio.create_task(line(lock, name, order)))
                await steps(1)
            # There is the holder's node, and one for the next.
            await queue(ground, path, 2)
            assert order == []
        await soon(asyncio.gather(*tasks))
        assert order == list(range(20))
        assert ground.children(path) == []

    asyncio.run(main())


@pytest.mark.parametrize("connected", [True, False])
def test_the_first_tasks_at_a_new_lock_are_served_in_the_order_of_their_arrival(
    hosts: str, path: str, connected: bool
) -> None:
    async def main() -> None:
        zk = zklock.Client(hosts).aio
        if connected:
            await zk.connect()
        for number in range(5 if connected else 1):
            order: list[int] = []
            # In every other round each has its own lock object, as in most programs.
            lock = zk.mutex(path)
            locks = [lock if number % 2 else zk.mutex(path) for _ in range(10)]
            await soon(asyncio.gather(*(line(lock, name, order) for name, lock in enumerate(locks))))
            assert order == list(range(10))
        await zk.close()

    asyncio.run(main())


def test_clients_are_served_in_the_order_of_their_arrival(hosts: str, path: str, ground: Ground) -> None:
    async def main() -> None:
        order: list[int] = []
        begin = asyncio.Event()

        async def wait(lock: zklock.AsyncLock, name: int) -> None:
            async with lock:
                order.append(name)
                await begin.wait()

        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(zklock.Client(hosts)) for _ in range(10)]
            tasks = []
            for name, client in enumerate(clients):
                tasks.append(asyncio.create_task(wait(client.mutex(path), name)))
                await queue(ground, path, name + 1)
            assert order == [0]
            begin.set()
            await soon(asyncio.gather(*tasks))
        assert order == list(range(10))

    asyncio.run(main())


def test_a_waiter_that_gives_up_wakes_one_and_the_order_stays(hosts: str, path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        order: list[int] = []
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(zklock.Client(hosts)) for _ in range(4)]
            last = await stack.enter_async_context(zklock.Client(proxy.hosts))
            tasks = []
            async with clients[0].mutex(path):
                for name, client in enumerate([*clients[1:], last], start=1):
                    tasks.append(asyncio.create_task(line(client.mutex(path), name, order)))
                    await queue(ground, path, name + 1)
                woken = proxy("see-reply", "event", "1", path)
                tasks[0].cancel()
                await queue(ground, path, 4)
                # The second waiter behind it is woken, and the one after that is not.
                assert ground(f"wait {woken} 100") == "false"
                assert order == []
            await soon(asyncio.wait(tasks))
        assert order == [2, 3, 4]

    asyncio.run(main())


def test_a_waiter_of_the_same_client_that_gives_up_is_left_out(zk: zklock.Client, path: str, ground: Ground) -> None:
    async def main() -> None:
        order: list[int] = []
        lock = zk.aio.mutex(path)
        async with lock:
            tasks = []
            for name in range(6):
                tasks.append(asyncio.create_task(line(lock, name, order)))
                await steps(1)
            await queue(ground, path, 2)
            # A waiter with a node, and one without.
            tasks[0].cancel()
            tasks[3].cancel()
        await soon(asyncio.wait(tasks))
        assert order == [1, 2, 4, 5]
        assert await queue(ground, path, 0) == [] and zk.stats().owed == 0

    asyncio.run(main())
