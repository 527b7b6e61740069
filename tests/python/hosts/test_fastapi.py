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


class Inside:
    """Counts the requests that come in, and how many were there at once."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self.begun = self.now = self.most = self.all = 0

    def __enter__(self) -> None:
        with self._mutex:
            self.now += 1
            self.all += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *exception: object) -> None:
        with self._mutex:
            self.now -= 1

    def begin(self) -> None:
        """Call this on the thread that is about to wait."""
        with self._mutex:
            self.begun += 1


def serve(app: fastapi.FastAPI, inside: Inside) -> list[int]:
    """The answers to many requests at once, of which the first is inside when the others come."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://host", timeout=PATIENCE) as client:
            first = asyncio.ensure_future(client.get("/"))
            while not inside.all and not first.done():
                await asyncio.sleep(0.001)
            return await asyncio.gather(first, *(client.get("/") for _ in range(REQUESTS - 1)))

    responses = asyncio.run(ask())
    assert collections.Counter(response.status_code for response in responses) == {200: REQUESTS}
    assert (inside.all, inside.most) == (REQUESTS, 1)
    return [int(response.text) for response in responses]


def test_a_dependency_acquires_on_one_thread_and_releases_on_another(
    zk: zklock.Client, ground: Ground, path: str
) -> None:
    app, inside, threads = fastapi.FastAPI(), Inside(), set()

    def held() -> typing.Iterator[zklock.Hold]:
        begun = threading.get_ident()
        inside.begin()
        with zk.mutex(path, timeout=PATIENCE) as hold:
            yield hold
        threads.add((begun, threading.get_ident()))

    @app.get("/")
    async def answer(hold: zklock.Hold = fastapi.Depends(held)) -> int:
        # Meanwhile its thread is lent to other requests.
        with inside:
            while inside.begun < REQUESTS:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.005)
            assert hold.valid_for() > 0
        return hold.token

    tokens = serve(app, inside)
    assert len(set(tokens)) == REQUESTS
    assert any(begun != ended for begun, ended in threads), "no hold went from thread to thread"
    ground.expect_children(path, 0)


def test_a_dependency_in_the_loop_is_a_task(zk: zklock.Client, ground: Ground, path: str) -> None:
    app, inside = fastapi.FastAPI(), Inside()

    async def held() -> typing.AsyncIterator[zklock.AsyncHold]:
        async with zk.aio.mutex(path, timeout=PATIENCE) as hold:
            yield hold

    @app.get("/")
    async def answer(hold: zklock.AsyncHold = fastapi.Depends(held)) -> int:
        with inside:
            await asyncio.sleep(0.005)
        return hold.token

    assert len(set(serve(app, inside))) == REQUESTS
    ground.expect_children(path, 0)
