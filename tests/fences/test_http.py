"""Stamps over HTTP, and servers behind a fence."""

from __future__ import annotations

import asyncio
import contextlib
import typing

import databases
import httpx
import pytest
from holds import AsyncHeld, Held

import zklock
from zklock import fence
from zklock.fence import Stamp

STAMP = Stamp("/locks/\u00e4 b%/,", 2**53 + 1, "one")
Handle = typing.Callable[[typing.Any, Stamp], int]


class Log:
    """A guard that writes down what becomes of a block."""

    def __init__(self, kind: str, commit: typing.Callable[[], object] = list) -> None:
        self.events: list[str] = []
        self._kind, self._commit = kind, commit

    def __call__(self, stamp: Stamp) -> typing.Any:
        return self._later(stamp) if self._kind == "asgi, asyncio" else self._now(stamp)

    @contextlib.contextmanager
    def _now(self, stamp: Stamp) -> typing.Iterator[str]:
        self.events.append(f"begin {stamp.token}")
        try:
            yield "given"
        except BaseException:
            self.events.append("roll back")
            raise
        self._commit()
        self.events.append("commit")

    @contextlib.asynccontextmanager
    async def _later(self, stamp: Stamp) -> typing.AsyncIterator[str]:
        with self._now(stamp) as given:
            await asyncio.sleep(0)
            yield given


def ask(kind: str, handle: Handle, guard: typing.Any, method: str = "POST", fields: typing.Any = ()) -> httpx.Response:
    """The answer of an application behind a fence."""

    def wsgi_app(environ: typing.Any, start_response: typing.Any) -> typing.Iterator[bytes]:
        status = handle(environ.get("zklock.fenced"), environ.get("zklock.stamp"))
        write = start_response(f"{status} Whatever", [("X-App", "yes")])
        write(b"bo")
        yield b"dy"

    async def asgi_app(scope: typing.Any, receive: typing.Any, send: typing.Any) -> None:
        status = handle(scope.get("zklock.fenced"), scope.get("zklock.stamp"))
        await send({"type": "http.response.start", "status": status, "headers": [(b"x-app", b"yes")]})
        for part in (b"bo", b"dy"):
            await send({"type": "http.response.body", "body": part, "more_body": part == b"bo"})

    async def later() -> httpx.Response:
        transport = httpx.ASGITransport(fence.asgi(asgi_app, guard))
        async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
            return await client.request(method, "/", headers=fields)

    if kind != "wsgi":
        return asyncio.run(later())
    with httpx.Client(transport=httpx.WSGITransport(fence.wsgi(wsgi_app, guard)), base_url="http://host") as client:
        return client.request(method, "/", headers=fields)


every_kind = pytest.mark.parametrize("kind", ["wsgi", "asgi", "asgi, asyncio"])


@every_kind
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_request_with_a_token_is_handled_in_the_block(kind: str, method: str) -> None:
    guard = Log(kind)

    def handle(given: typing.Any, stamp: Stamp) -> int:
        guard.events.append(f"handle {given}")
        assert stamp == STAMP
        return 201

    answer = ask(kind, handle, guard, method, fence.headers(STAMP))
    assert (answer.status_code, answer.text, answer.headers["x-app"]) == (201, "body", "yes")
    assert guard.events == [f"begin {2**53 + 1}", "handle given", "commit"]


@every_kind
@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("HEAD", 200), ("OPTIONS", 200), ("POST", 428), ("DELETE", 428)])
def test_a_request_without_a_token_passes_if_it_writes_nothing(kind: str, method: str, status: int) -> None:
    guard = Log(kind)
    answer = ask(kind, lambda given, stamp: 500 if given or stamp else 200, guard, method)
    assert answer.status_code == status and guard.events == []
    if status == 428:
        assert "Fencing-Token" in answer.json()["detail"]


def changed(**fields: str) -> dict[str, str]:
    return {**fence.headers(STAMP), **{f"Fencing-{name}": value for name, value in fields.items()}}


WRONG = [
    *(changed(Token=token) for token in ("", "5.0", "-5", "0x5", "5 5", "9" * 19, "1" * 20, "5, 5")),
    *(changed(Name=name) for name in ("", "%FF", "a%0Ab", "x" * 256)),
    changed(Ensemble=""),
    {"Fencing-Token": "5"},
    {"Fencing-Name": "/locks/a", "Fencing-Ensemble": "one"},
]


@every_kind
@pytest.mark.parametrize("fields", WRONG)
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_headers_that_are_wrong_are_answered_with_400(kind: str, fields: typing.Any, method: str) -> None:
    guard = Log(kind)
    answer = ask(kind, lambda given, stamp: 200, guard, method, fields)
    assert answer.status_code == 400 and answer.json()["error"] == "no stamp" and guard.events == []


def test_a_header_that_is_there_twice_is_wrong() -> None:
    # Servers of WSGI join them with a comma.
    fields = [*fence.headers(STAMP).items(), ("Fencing-Token", "6")]
    assert ask("asgi", lambda given, stamp: 200, Log("asgi"), fields=fields).status_code == 400


@every_kind
@pytest.mark.parametrize("is_raised_by_the_application", [False, True])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (zklock.StaleToken("late", "/a", 5, 2**53 + 1), {"error": "stale token", "name": "/a", "token": "5", "written": f"{2**53 + 1}"}),
        (
            zklock.OtherEnsemble("late", "/a", "one", "two"),
            {"error": "other ensemble", "name": "/a", "ensemble": "one", "kept": "two"},
        ),
    ],
)
def test_a_refusal_is_answered_with_412_and_says_what_has_written(
    kind: str, is_raised_by_the_application: bool, error: zklock.Error, said: dict[str, str]
) -> None:
    def fail(*_: object) -> int:
        raise error

    guard, handled = Log(kind, list if is_raised_by_the_application else fail), []
    handle: Handle = fail if is_raised_by_the_application else lambda given, stamp: handled.append(stamp) or 200
    answer = ask(kind, handle, guard, fields=fence.headers(STAMP))
    assert answer.status_code == 412 and answer.json() == {**said, "detail": "late"}
    assert answer.headers["content-type"] == "application/json" and "x-app" not in answer.headers
    assert "commit" not in guard.events


@every_kind
@pytest.mark.parametrize(("status", "end"), [(200, "commit"), (404, "commit"), (500, "roll back"), (503, "roll back")])
def test_an_error_of_the_application_rolls_back(kind: str, status: int, end: str) -> None:
    guard = Log(kind)
    answer = ask(kind, lambda given, stamp: status, guard, fields=fence.headers(STAMP))
    assert (answer.status_code, answer.text) == (status, "body") and guard.events[-1] == end


@every_kind
def test_an_exception_of_the_application_rolls_back_and_comes_out(kind: str) -> None:
    guard = Log(kind)
    with pytest.raises(ZeroDivisionError):
        ask(kind, lambda given, stamp: 1 // 0, guard, fields=fence.headers(STAMP))
    assert guard.events[-1] == "roll back"


@every_kind
def test_nothing_is_answered_if_the_commit_fails(kind: str) -> None:
    # httpx would return what was sent before.
    with pytest.raises(ZeroDivisionError):
        ask(kind, lambda given, stamp: 200, Log(kind, lambda: 1 // 0), fields=fence.headers(STAMP))


@pytest.mark.parametrize(("kind", "library"), [("wsgi", "sqlite3"), ("asgi, asyncio", "aiosqlite")])
def test_a_transaction_is_a_guard(kind: str, library: str, sqlite: databases.Address) -> None:
    database = databases.Database(databases.BY_NAME[library], sqlite)

    @contextlib.contextmanager
    def transaction(stamp: Stamp) -> typing.Iterator[None]:
        with database.library.connect(sqlite) as connection, fence.transaction(connection, stamp):
            yield

    guard, statuses = transaction if kind == "wsgi" else database.transaction, []
    for token, status in ((5, 200), (9, 500), (6, 200), (4, 200)):
        fields = fence.headers(Held("/locks/a", token))
        handle: Handle = lambda things, stamp, status=status: status  # type: ignore[misc]
        statuses.append(ask(kind, handle, guard, fields=fields).status_code)
    assert statuses == [200, 500, 200, 412]
    assert database.rows("zklock_fences") == [("/locks/a", "one", 6)]


def test_what_is_not_http_passes() -> None:
    seen = []

    async def app(scope: typing.Any, receive: typing.Any, send: typing.Any) -> None:
        seen.append(scope)

    asyncio.run(fence.asgi(app, Log("asgi"))({"type": "lifespan"}, list, list))
    assert seen == [{"type": "lifespan"}]


def test_an_application_that_answers_nothing_rolls_back() -> None:
    async def app(scope: typing.Any, receive: typing.Any, send: typing.Any) -> None: ...

    guard = Log("asgi")
    fields = [(name.lower().encode(), value.encode()) for name, value in fence.headers(STAMP).items()]
    asyncio.run(fence.asgi(app, guard)({"type": "http", "method": "POST", "headers": fields}, list, list))
    assert guard.events[-1] == "roll back"


def test_the_headers_of_an_asynchronous_hold_are_awaited() -> None:
    async def main() -> dict[str, str]:
        return await fence.headers(AsyncHeld("/locks/a", 5), "a part")

    assert asyncio.run(main()) == {"Fencing-Token": "5", "Fencing-Name": "a%20part", "Fencing-Ensemble": "one"}
