"""Promise 4: an acquire with a deadline returns in time, whatever the network does, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import socket
import time
import typing

import pytest
from aio.support import SOON, queue, settled
from ground import Ground, Proxy
from punctual import not_later

import zklock

TIMEOUT, GRACE = 0.3, 0.05


async def in_time(call: typing.Callable[[], typing.Awaitable[object]]) -> None:
    """Checks that a call ends at its deadline. A busy machine may delay it, but not every time."""
    lateness = []
    for _ in range(20):
        begun = time.monotonic()
        await call()
        lateness.append(time.monotonic() - begun - TIMEOUT)
        assert lateness[-1] > -0.001, "too early"
        if lateness[-1] < GRACE:
            return
    raise AssertionError(f"late: {lateness}")


async def times_out(lock: zklock.AsyncLock, *late: type[zklock.Error]) -> None:
    """Checks that each way to acquire is late, with one of these errors, usually a timeout."""
    late = late or (zklock.Timeout,)

    async def acquire() -> None:
        try:
            assert await lock.acquire(timeout=TIMEOUT) is False
        except zklock.Unreachable:
            assert zklock.Unreachable in late

    async def hold() -> None:
        with pytest.raises(late):
            await lock.hold(timeout=TIMEOUT)

    async def block() -> None:
        with pytest.raises(late):
            async with lock:
                raise AssertionError("it is held")

    async def wait_for() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(lock.acquire(timeout=-1), TIMEOUT)

    for call in (acquire, hold, block, wait_for):
        await in_time(call)
        assert not lock.locked()


def test_a_lock_that_is_held_delays_nobody(
    zk: zklock.Client, other: zklock.Client, path: str, ground: Ground
) -> None:
    async def main() -> None:
        async with other.mutex(path):
            await times_out(zk.aio.mutex(path, timeout=TIMEOUT))
            await settled(zk)
            assert len(ground.children(path)) == 1

    asyncio.run(main())


FAULTS: dict[str, typing.Callable[[Proxy], object]] = {
    "frozen to the server": lambda proxy: proxy("freeze", "to-server"),
    "frozen to the client": lambda proxy: proxy("freeze", "to-client"),
    "half open": lambda proxy: proxy("half-open"),
    "refused": lambda proxy: (proxy("refuse", "on"), proxy("reset")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_sick_network_delays_nobody(path: str, ground: Ground, fault: str) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=4) as zk:
            lock = zk.mutex(path, timeout=TIMEOUT)
            await lock.acquire()
            await lock.release()
            FAULTS[fault](proxy)
            await times_out(lock, zklock.Timeout, zklock.Unreachable)
            proxy("thaw")
            proxy("refuse", "off")
            assert await lock.acquire(timeout=SOON)
            await lock.release()
            await settled(zk)
            assert ground.children(path) == []

    asyncio.run(main())


def test_a_client_that_cannot_connect_delays_nobody(path: str) -> None:
    # This server listens, but never answers.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = f"127.0.0.1:{silent.getsockname()[1]}"

        async def main() -> None:
            client = zklock.Client(hosts, connect_timeout=SOON)
            await times_out(client.aio.mutex(path, timeout=TIMEOUT), zklock.Unreachable)

            async def connect() -> None:
                with pytest.raises(zklock.Unreachable):
                    await client.aio.connect(timeout=TIMEOUT)

            async def enter() -> None:
                with pytest.raises(zklock.Unreachable):
                    async with zklock.Client(hosts, connect_timeout=TIMEOUT):
                        raise AssertionError("it is connected")

            await in_time(connect)
            await in_time(enter)
            await client.aio.close()

        asyncio.run(main())


def test_the_loop_goes_on_while_tasks_wait(other: zklock.Client, path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=4) as zk:
            async with other.mutex(path):
                tasks = [asyncio.create_task(zk.mutex(path).acquire(timeout=0.5)) for _ in range(20)]
                await queue(ground, path, 2)
                proxy("freeze", "both")
                rounds, begun = 0, time.monotonic()
                while not all(task.done() for task in tasks):
                    rounds += 1
                    await asyncio.sleep(0.001)
                lasted = time.monotonic() - begun
                not_later(lasted / rounds, 0.02)
                assert [task.result() for task in tasks] == [False] * 20
                # Nor does a wait keep the loop busy.
                clock = time.process_time()
                assert await zk.mutex(path).acquire(timeout=0.5) is False
                not_later(time.process_time() - clock, 0.25)
                proxy("thaw")
                await settled(zk)

    asyncio.run(main())
