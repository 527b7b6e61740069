"""Blocks that are cancelled when a hold is lost, in asyncio and under trio. The native module loads this when it is first used."""

from __future__ import annotations

import asyncio
import collections.abc
import contextlib
import inspect
import sys
import types
import typing
import weakref

from ._errors import InvalidInput, LockLost, NotHeld
from ._values import HoldState

if typing.TYPE_CHECKING:
    from ._zklock import AsyncHold, AsyncLock, BaseHold

Result = typing.TypeVar("Result")
AnyHold = typing.TypeVar("AnyHold", bound="BaseHold")


class _Message(str):
    """The message of one cancellation. Before Python 3.11 nothing else tells whose a cancellation is."""


class _TaskScope:
    """Cancels the task that makes it, until it is left: a scope of asyncio."""

    def __init__(self, message: str) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("there is no task here that could be cancelled: use this within a task of asyncio or trio")
        self._task: asyncio.Task[typing.Any] | None = task
        self._loop = asyncio.get_running_loop()
        self._message = _Message(message)
        self._has_cancelled = False
        # Scopes of the same task whose holds were lost while this one cancels it.
        self._later: list[_TaskScope] = []
        if sys.version_info >= (3, 11):
            self._cancelled_before = task.cancelling()

    def wake(self) -> None:
        """Cancels the task soon. Any thread may call this."""
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        # A task that has left the block must not be cancelled any more.
        if self._task is None:
            return
        first = _FIRST.setdefault(self._task, weakref.ref(self))()
        if first is not None and first is not self:
            # A second cancellation would break into the clean-up that the first one has begun. If a session ends, several holds
            # are lost at once.
            first._later.append(self)
        else:
            self._has_cancelled = True
            if sys.version_info >= (3, 11):
                self._cancelled_until = self._task.cancelling()
            self._task.cancel(self._message)

    def leave(self, error: BaseException | None) -> bool:
        """Leaves the block, which this exception ends. Returns whether that is the cancellation by this scope."""
        task, self._task = self._task, None
        if task is None or not self._has_cancelled:
            return False
        _FIRST.pop(task, None)
        for scope in self._later:
            # Soon, and not at once: a block that is left together with this one must not be cancelled any more.
            scope.wake()
        has_message = isinstance(error, asyncio.CancelledError) and any(said is self._message for said in error.args)
        if sys.version_info < (3, 11):
            return has_message
        # If another has cancelled the task as well, that one wants the exception. Before Python 3.13, a task group that waits for its
        # children cancels the task if one fails, and never takes that back. So what came before us counts only if it has the message.
        others = self._cancelled_until if sys.version_info < (3, 13) and has_message else self._cancelled_before
        return task.uncancel() <= others and isinstance(error, asyncio.CancelledError)


# The scope that has cancelled a task first, until its block is left. It refers to the task, which must not live on for that.
_FIRST: weakref.WeakKeyDictionary[asyncio.Task[typing.Any], weakref.ref[_TaskScope]] = weakref.WeakKeyDictionary()


class _TrioScope:
    """The same for a task of trio."""

    def __init__(self, trio: typing.Any) -> None:
        self._finished = trio.RunFinishedError
        self._token = trio.lowlevel.current_trio_token()
        self._scope = trio.CancelScope()
        self._scope.__enter__()

    def wake(self) -> None:
        with contextlib.suppress(self._finished):
            self._token.run_sync_soon(self._scope.cancel)

    def leave(self, error: BaseException | None) -> bool:
        if error is None:
            self._scope.__exit__(None, None, None)
            return False
        # If it was not the only exception of a group, this raises what is left.
        return bool(self._scope.__exit__(type(error), error, error.__traceback__))


def running_trio() -> typing.Any:
    """The module ``trio``, if one of its tasks makes this call; otherwise ``None``. The program has imported it then."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        # If trio is a guest of asyncio, it has no task while asyncio runs one.
        trio.lowlevel.current_task()
    except (AttributeError, RuntimeError):  # Another thread may be importing it.
        return None
    return trio


async def _in_a_thread(trio: typing.Any, begin: typing.Callable[[], typing.Awaitable[Result]]) -> Result:
    """Awaits what only asyncio can, in a loop of its own on another thread. A cancellation by trio cancels it there, and waits for
    its end, so that nothing is left behind."""
    me, token = trio.lowlevel.current_task(), trio.lowlevel.current_trio_token()
    task: asyncio.Task[typing.Any] | None = None
    raise_cancelled: typing.Callable[[], typing.NoReturn] | None = None

    async def main() -> Result:
        nonlocal task
        task = asyncio.current_task()
        if raise_cancelled is not None:
            raise asyncio.CancelledError
        return await begin()

    def cancel(raise_it: typing.Callable[[], typing.NoReturn]) -> object:
        nonlocal raise_cancelled
        raise_cancelled = raise_it
        if task is not None:
            with contextlib.suppress(RuntimeError):  # It has ended.
                task.get_loop().call_soon_threadsafe(task.cancel)
        return trio.lowlevel.Abort.FAILED

    def deliver(outcome: object) -> None:
        token.run_sync_soon(trio.lowlevel.reschedule, me, outcome)

    trio.lowlevel.start_thread_soon(lambda: asyncio.run(main()), deliver)
    try:
        return typing.cast("Result", await trio.lowlevel.wait_task_rescheduled(cancel))
    except asyncio.CancelledError:
        if raise_cancelled is not None:
            raise_cancelled()
        raise


def _refuse_generator() -> None:
    """Refuses a block in an async generator: while it is suspended, a loss would cancel its consumer, where no block ends. With
    ``contextlib``, the consumer's block is inside of this one."""
    frame = sys._getframe(2)
    consumer = frame.f_back
    if frame.f_code.co_flags & inspect.CO_ASYNC_GENERATOR and (consumer is None or consumer.f_globals is not vars(contextlib)):
        raise InvalidInput(
            f"the block is in the async generator {frame.f_code.co_name}, and a loss would cancel its consumer: put the block around "
            "the loop, or use contextlib.asynccontextmanager"
        )


def _lost(hold: BaseHold) -> LockLost:
    reason = hold.lost.reason
    why = "" if reason is None else f": {reason.value}"
    return LockLost(f"the hold of {hold.path} is lost{why}; stop the work that it guarded, others may hold the lock", reason)


class _Block:
    """A block that is cancelled when a hold is lost."""

    def __init__(self) -> None:
        self._scope: _TaskScope | _TrioScope | None = None
        self._alarm: object = None

    def _begin(self, hold: BaseHold) -> None:
        trio = running_trio()
        self._scope = _TaskScope(f"the hold of {hold.path} is lost") if trio is None else _TrioScope(trio)
        self._alarm = hold._alarm(self._scope)

    def _end(self, error: BaseException | None) -> bool:
        """Returns whether the block was ended by its own cancellation."""
        self._alarm = None
        return self._scope is not None and self._scope.leave(error)


class CancelOnLoss(_Block, typing.Generic[AnyHold]):
    """The block of ``hold.cancel_on_loss()``. It leaves the hold as it is."""

    def __init__(self, hold: AnyHold) -> None:
        super().__init__()
        self._hold = hold

    async def __aenter__(self) -> AnyHold:
        if self._scope is not None:
            raise RuntimeError("this block has been entered before: call cancel_on_loss() for each")
        _refuse_generator()
        if self._hold.lost:
            raise _lost(self._hold)
        if self._hold.state is HoldState.RELEASED:
            raise NotHeld(f"the hold of {self._hold.path} was released: there is no loss to come")
        self._begin(self._hold)
        return self._hold

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> typing.Literal[False]:
        is_own = self._end(error)
        if is_own or (error is None and self._hold.lost):
            raise _lost(self._hold) from error
        return False


class Cancelling(_Block):
    """The block of ``lock.cancelling()``. The hold is a value, which is released even if a signal handler raises between two steps
    of this class."""

    def __init__(self, lock: AsyncLock, timeout: float | None, is_reentrant: bool) -> None:
        super().__init__()
        self._lock, self._timeout, self._is_reentrant = lock, timeout, is_reentrant
        self._hold: AsyncHold | None = None

    async def __aenter__(self) -> AsyncHold:
        if self._scope is not None:
            raise RuntimeError("this block has been entered before: call cancelling() for each")
        _refuse_generator()
        trio = running_trio()
        if trio is None:
            self._hold = hold = await self._lock.hold(self._timeout)
        elif self._is_reentrant:
            raise InvalidInput("a reentrant lock belongs to a task of asyncio or to a thread: under trio, use one that is not")
        else:
            self._hold = hold = await _in_a_thread(trio, lambda: self._lock.hold(self._timeout))
        try:
            self._begin(hold)
        except BaseException:
            hold.release()
            raise
        return hold

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> typing.Literal[False]:
        assert self._hold is not None
        trio, hold, self._hold = running_trio(), self._hold, None
        is_own = self._end(error)
        # If the block has failed, the release raises nothing of its own.
        leaving = hold.__aexit__(kind, error, traceback)
        if trio is None:
            await leaving
        else:
            with trio.CancelScope(shield=True):
                await _in_a_thread(trio, lambda: leaving)
        if is_own:
            raise _lost(hold) from error
        return False


class _Closing(typing.Generic[Result]):
    """Closes a coroutine when it is dropped itself: with a frame that has ended, or never began because its task was cancelled before."""

    def __init__(self, work: typing.Coroutine[typing.Any, typing.Any, Result]) -> None:
        self.work = work

    def __del__(self) -> None:
        self.work.close()


async def _run(hold: BaseHold, closing: _Closing[Result]) -> Result:
    async with CancelOnLoss(hold):
        return await closing.work


def run(
    hold: BaseHold, work: typing.Coroutine[typing.Any, typing.Any, Result]
) -> typing.Coroutine[typing.Any, typing.Any, Result]:
    """``hold.run()``."""
    if not isinstance(work, collections.abc.Coroutine):
        raise InvalidInput(f"run takes a coroutine, as in hold.run(work()), and not {work!r}")
    return _run(hold, _Closing(work))
