"""Threads of a pool, where one thread serves many jobs: those of ``asyncio.to_thread``, and those of FastAPI.

There functions that are not ``async`` run in a pool, each part of a request on any free thread.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import threading
import typing

import fastapi
import httpx
from ground import Ground
from scenes import SOON

import zklock

REQUESTS = 30
# How long a wait may take on the busiest machine.
PATIENCE = 50.0


async def serve(app: fastapi.FastAPI) -> list[int]:
    """The answers to many requests at once."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://host", timeout=PATIENCE) as client:
        responses = await asyncio.gather(*(client.get("/") for _ in range(REQUESTS)))
    assert collections.Counter(response.status_code for response in responses) == {200: REQUESTS}
    return [int(response.text) for response in responses]


async def test_a_dependency_acquires_on_one_thread_and_releases_on_another(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    app, begun, threads = fastapi.FastAPI(), list[int](), set[typing.Tuple[int, int]]()

    def held() -> typing.Iterator[zklock.Hold]:
        thread = threading.get_ident()
        begun.append(thread)
        with zk.mutex(path, timeout=PATIENCE) as hold:
            yield hold
        threads.add((thread, threading.get_ident()))

    @app.get("/")
    async def answer(hold: zklock.Hold = fastapi.Depends(held)) -> int:
        # Meanwhile its thread is lent to other requests.
        while len(begun) < REQUESTS:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.005)
        assert hold.valid_for() > 0
        return hold.token

    assert len(set(await serve(app))) == REQUESTS
    assert any(begun != ended for begun, ended in threads), "no hold went from thread to thread"
    ground.expect_children(path, 0)


async def test_a_dependency_in_the_loop_is_a_task(zk: zklock.Client, ground: Ground, path: str) -> None:
    app = fastapi.FastAPI()

    async def held() -> typing.AsyncIterator[zklock.AsyncHold]:
        async with zk.aio.mutex(path, timeout=PATIENCE) as hold:
            yield hold

    @app.get("/")
    async def answer(hold: zklock.AsyncHold = fastapi.Depends(held)) -> int:
        return hold.token

    assert len(set(await serve(app))) == REQUESTS
    ground.expect_children(path, 0)


async def test_readers_of_one_thread_hold_together(zk: zklock.Client, ground: Ground, path: str) -> None:
    loop, one = asyncio.get_running_loop(), concurrent.futures.ThreadPoolExecutor(1)
    holds = [await loop.run_in_executor(one, zk.read_lock(path).hold) for _ in range(5)]
    assert len({hold.node for hold in holds}) == 5
    assert not await asyncio.to_thread(lambda: zk.write_lock(path).acquire(blocking=False))
    for hold in holds:
        await asyncio.to_thread(hold.release)
    one.shutdown()
    ground.expect_children(path, 0)


async def test_a_thread_does_not_read_beside_what_it_has_acquired_for_another_job(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    loop, one = asyncio.get_running_loop(), concurrent.futures.ThreadPoolExecutor(1)
    writing = await loop.run_in_executor(one, zk.write_lock(path).hold)
    read = zk.read_lock(path)
    assert not await loop.run_in_executor(one, lambda: read.acquire(blocking=False))
    waits = loop.run_in_executor(one, lambda: read.hold(timeout=SOON))
    await asyncio.to_thread(ground.expect_children, path, 2)
    assert not waits.done() and writing.valid_for() > 0
    await asyncio.to_thread(writing.release)
    reading = await waits
    assert reading.token > writing.token
    await asyncio.to_thread(reading.release)
    one.shutdown()
    ground.expect_children(path, 0)
