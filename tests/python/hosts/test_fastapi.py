"""FastAPI: functions that are not ``async`` run on threads of a pool, each part of a request on any free thread."""

from __future__ import annotations

import asyncio
import collections
import threading
import typing

import fastapi
import httpx
from ground import Ground

import zklock

REQUESTS = 30
# How long a wait may take on the busiest machine.
PATIENCE = 50.0


def serve(app: fastapi.FastAPI) -> list[int]:
    """The answers to many requests at once."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://host", timeout=PATIENCE) as client:
            return await asyncio.gather(*(client.get("/") for _ in range(REQUESTS)))

    responses = asyncio.run(ask())
    assert collections.Counter(response.status_code for response in responses) == {200: REQUESTS}
    return [int(response.text) for response in responses]


def test_a_dependency_acquires_on_one_thread_and_releases_on_another(
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

    assert len(set(serve(app))) == REQUESTS
    assert any(begun != ended for begun, ended in threads), "no hold went from thread to thread"
    ground.expect_children(path, 0)


def test_a_dependency_in_the_loop_is_a_task(zk: zklock.Client, ground: Ground, path: str) -> None:
    app = fastapi.FastAPI()

    async def held() -> typing.AsyncIterator[zklock.AsyncHold]:
        async with zk.aio.mutex(path, timeout=PATIENCE) as hold:
            yield hold

    @app.get("/")
    async def answer(hold: zklock.AsyncHold = fastapi.Depends(held)) -> int:
        return hold.token

    assert len(set(serve(app))) == REQUESTS
    ground.expect_children(path, 0)
