"""One text for blocking and for asynchronous libraries: a coroutine that awaits only what must be awaited."""

from __future__ import annotations

import contextlib
import inspect
import typing

Result = typing.TypeVar("Result")


async def settled(value: typing.Any) -> typing.Any:
    """The value, or what it becomes if it must be awaited."""
    return await value if inspect.isawaitable(value) else value


def now(coroutine: typing.Coroutine[typing.Any, typing.Any, Result]) -> Result:
    """The result of a coroutine that has nothing to await."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return typing.cast("Result", end.value)
    coroutine.close()
    raise RuntimeError("a blocking library has returned what must be awaited")


@contextlib.asynccontextmanager
async def entered(manager: typing.Any) -> typing.AsyncIterator[typing.Any]:
    """The block of a context manager, of asyncio or not."""
    if hasattr(manager, "__aenter__"):
        async with manager as given:
            yield given
    else:
        with manager as given:
            yield given
