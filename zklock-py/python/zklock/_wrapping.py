"""Functions that run while a lock is held, or only while a hold lasts. The native module loads this when it is first used."""

from __future__ import annotations

import functools
import inspect
import types
import typing

from ._errors import InvalidInput

if typing.TYPE_CHECKING:
    from ._zklock import AsyncLock, AsyncJob, BaseHold, Lock, Job


def _is(test: typing.Callable[[typing.Any], bool], function: typing.Any) -> bool:
    """Tests a function, or the method that makes an object callable."""
    return test(function) or test(getattr(function, "__call__", None))


def _check(function: typing.Any, what: str) -> None:
    """Refuses what is no function that has done its work when it returns, or is awaited."""
    if isinstance(function, (staticmethod, classmethod)):
        raise InvalidInput(f"{what} takes the function itself: put @{type(function).__name__} above it")
    if not callable(function) or inspect.isclass(function):
        raise InvalidInput(f"{what} takes a function or a coroutine function, and not {function!r}")
    if _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function):
        raise InvalidInput(f"{what} takes no generator, which runs only after it was returned: use a block in {function!r}")


# What a function returns before it runs.
_LATER: tuple[type, ...] = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)


def decorated(blocking: Lock | Job | None, aio: AsyncLock | AsyncJob, function: typing.Any) -> typing.Any:
    """The function with a block of a lock or a job around each call: an ``async with`` block if it is a coroutine function. A
    job's block gives something false if nothing is left to do."""
    _check(function, "a lock or a job as a decorator")
    if _is(inspect.iscoroutinefunction, function):

        @functools.wraps(function)
        async def decorated_coroutine(*arguments: typing.Any, **named: typing.Any) -> typing.Any:
            async with aio as given:
                return await function(*arguments, **named) if given else None

        return decorated_coroutine
    if blocking is None:
        raise InvalidInput(f"an {type(aio).__name__} decorates coroutine functions: for {function!r} take one of the Client")

    @functools.wraps(function)
    def decorated_function(*arguments: typing.Any, **named: typing.Any) -> typing.Any:
        with blocking as given:
            return _over(function, function(*arguments, **named)) if given else None

    return decorated_function


def _over(function: typing.Any, result: typing.Any) -> typing.Any:
    """What the function returned, unless that still has to run."""
    if isinstance(result, types.CoroutineType):
        # Nothing will await it.
        result.close()
    if isinstance(result, _LATER):
        raise InvalidInput(f"{function!r} returns {result!r}, which would only run later: take the coroutine function, or use a block")
    return result


class _Transport:
    """A transport of httpx, sync or async, that asks before each request."""

    def __init__(self, hold: BaseHold, inner: typing.Any, needs: float) -> None:
        self._hold, self._inner, self._needs = hold, inner, needs

    def handle_request(self, request: typing.Any) -> typing.Any:
        self._hold.ensure(self._needs)
        return self._inner.handle_request(request)

    async def handle_async_request(self, request: typing.Any) -> typing.Any:
        self._hold.ensure(self._needs)
        return await self._inner.handle_async_request(request)

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __enter__(self) -> _Transport:
        self._inner.__enter__()
        return self

    def __exit__(self, *raised: typing.Any) -> None:
        self._inner.__exit__(*raised)

    async def __aenter__(self) -> _Transport:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: typing.Any) -> None:
        await self._inner.__aexit__(*raised)


def gated(hold: BaseHold, target: typing.Any, needs: float) -> typing.Any:
    """The function or transport, which asks before each use whether the hold covers what the use needs."""
    is_class = inspect.isclass(target)
    if not is_class and (hasattr(target, "handle_request") or hasattr(target, "handle_async_request")):
        return _Transport(hold, target, needs)
    _check(target, "gate, which also takes an httpx transport,")
    if _is(inspect.iscoroutinefunction, target):

        @functools.wraps(target)
        async def gated_coroutine(*arguments: typing.Any, **named: typing.Any) -> typing.Any:
            hold.ensure(needs)
            return await target(*arguments, **named)

        return gated_coroutine

    @functools.wraps(target)
    def gated(*arguments: typing.Any, **named: typing.Any) -> typing.Any:
        hold.ensure(needs)
        return _over(target, target(*arguments, **named))

    return gated
