"""Servers of HTTP, behind any fence."""

from __future__ import annotations

import typing

from .._errors import OtherEnsemble, StaleToken
from ._http import Answer, arrived, refused
from ._settle import entered
from ._stamp import Stamp

# The types of WSGI and ASGI are not in the standard library of all versions.
App = typing.Callable[..., typing.Any]
Guard = typing.Callable[[Stamp], typing.Any]
Fields = typing.List[typing.Tuple[str, str]]


class _Failed(Exception):
    """The application has answered with an error of its own, so nothing may be committed."""


def wsgi(app: App, guard: Guard) -> App:
    """Middleware for WSGI: each request is handled within a fence.

    ``application = zklock.fence.wsgi(application, lambda stamp: zklock.fence.transaction(database, stamp))``

    ``guard`` takes a ``Stamp`` and returns a context manager; the request is handled in its block. The value of the block is
    ``environ["zklock.fenced"]``, and the stamp is ``environ["zklock.stamp"]``. The middleware keeps the answer in memory, and sends
    it when the block has ended. If the application raises, or answers with a status of 500 or more, the block ends with an
    exception, and a transaction is rolled back.

    The answer to a refused request is 412, with the error in JSON, in which ``token`` and ``written`` are texts. If the headers of
    ``headers`` are missing, the answer is 428, except for GET, HEAD and OPTIONS, which then pass without a fence. If the headers
    are wrong, it is 400. The middleware does not check which clients may send tokens.
    """

    def fenced(environ: dict[str, typing.Any], start_response: App) -> typing.Any:
        def answered(answer: Answer) -> list[bytes]:
            start_response(f"{answer.status} {answer.reason.title()}", answer.fields)
            return [answer.body]

        stamp = arrived(environ["REQUEST_METHOD"], lambda field: environ.get("HTTP_" + field.upper().replace("-", "_")))
        if stamp is None:
            return app(environ, start_response)
        if isinstance(stamp, Answer):
            return answered(stamp)
        begun: list[typing.Any] = []
        body: list[bytes] = []

        def begin(*words: typing.Any) -> typing.Any:
            begun[:] = words
            return body.append

        try:
            with guard(stamp) as given:
                environ["zklock.stamp"], environ["zklock.fenced"] = stamp, given
                chunks = app(environ, begin)
                try:
                    body.extend(chunks)
                finally:
                    getattr(chunks, "close", lambda: None)()
                if not begun or begun[0] >= "500":
                    raise _Failed
        except (StaleToken, OtherEnsemble) as error:
            return answered(refused(error))
        except _Failed:
            pass
        start_response(*begun)
        return body

    return fenced


def asgi(app: App, guard: Guard) -> App:
    """Middleware for ASGI: each request is handled within a fence. See ``wsgi``.

    ``app = zklock.fence.asgi(app, guard)``

    ``guard`` may return a context manager of either kind. One that is not for asyncio blocks the event loop. The value of the
    block is ``scope["zklock.fenced"]``, and the stamp is ``scope["zklock.stamp"]``.
    """

    async def fenced(scope: dict[str, typing.Any], receive: App, send: App) -> None:
        async def answered(answer: Answer) -> None:
            fields = [(name.lower().encode(), value.encode()) for name, value in answer.fields]
            await send({"type": "http.response.start", "status": answer.status, "headers": fields})
            await send({"type": "http.response.body", "body": answer.body})

        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        def field(name: str) -> str | None:
            found = [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name.lower().encode()]
            return ", ".join(found) if found else None

        stamp = arrived(scope["method"], field)
        if stamp is None:
            await app(scope, receive, send)
            return
        if isinstance(stamp, Answer):
            return await answered(stamp)
        messages: list[dict[str, typing.Any]] = []

        async def keep(message: dict[str, typing.Any]) -> None:
            messages.append(message)

        try:
            async with entered(guard(stamp)) as given:
                await app({**scope, "zklock.stamp": stamp, "zklock.fenced": given}, receive, keep)
                statuses = [message["status"] for message in messages if message["type"] == "http.response.start"]
                if not statuses or statuses[0] >= 500:
                    raise _Failed
        except (StaleToken, OtherEnsemble) as error:
            return await answered(refused(error))
        except _Failed:
            pass
        for message in messages:
            await send(message)

    return fenced
