"""Blocks that are cancelled when a hold is lost, in asyncio and under trio. The native module loads this when it is first used."""

from __future__ import annotations

import asyncio
import collections.abc
import contextlib
import functools
import inspect
import sys
import types
import typing
import weakref

from ._errors import InvalidInput, LockLost, NotHeld
from ._values import HoldState

if typing.TYPE_CHECKING:
    from ._values import LossReason
    from ._zklock import BaseHold

Result = typing.TypeVar("Result")
AnyHold = typing.TypeVar("AnyHold", bound="BaseHold")
Entering = typing.Coroutine[typing.Any, typing.Any, typing.Any]
Leaving = typing.Coroutine[typing.Any, typing.Any, bool]


class _Message(str):
    """The message of one cancellation. Before Python 3.11 nothing else tells whose a cancellation is."""


class _TaskScope:
    """Cancels the task that makes it, until it is left: a scope of asyncio. It refers to the task weakly, because the native module
    keeps it, out of sight of the garbage collector."""

    def __init__(self, path: str) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("there is no task here that could be cancelled: use this within a task of asyncio or trio")
        self._weak: weakref.ref[asyncio.Task[typing.Any]] | None = weakref.ref(task)
        self._message = _Message(f"the hold of {path} is lost")
        self._has_cancelled = False
        # Scopes of the same task whose holds were lost while this one cancels it.
        self._later: list[_TaskScope] = []
        if sys.version_info >= (3, 11):
            self._cancelled_before = task.cancelling()

    @property
    def _task(self) -> asyncio.Task[typing.Any] | None:
        return None if self._weak is None else self._weak()

    def wake(self) -> None:
        """Cancels the task soon. Any thread may call this."""
        task = self._task
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            if task is not None:
                task.get_loop().call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        task = self._task
        # A task that has left the block must not be cancelled any more.
        if task is None:
            return
        first = _FIRST.setdefault(task, weakref.ref(self))()
        if first is not None and first is not self:
            # A second cancellation would break into the clean-up that the first one has begun. If a session ends, several holds
            # are lost at once.
            first._later.append(self)
        else:
            self._has_cancelled = True
            if sys.version_info >= (3, 11):
                self._cancelled_until = task.cancelling()
            task.cancel(self._message)

    def entering(self, entering: Entering) -> Entering:
        """What ``__aenter__`` gives, if the native module would give this."""
        return entering

    def leaving(self, is_own: bool, leaving: Leaving, path: str, reason: LossReason | None, error: BaseException | None) -> Leaving:
        """What ``__aexit__`` gives, if the native module would give this."""
        return _lose(leaving, path, reason, error) if is_own else leaving

    def enter(self) -> None:
        pass

    def leave(self, error: BaseException | None) -> bool:
        """Leaves the block, which this exception ends. Returns whether that is the cancellation by this scope."""
        task, self._weak = self._task, None
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
        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()
        self._scope = trio.CancelScope()

    def wake(self) -> None:
        with contextlib.suppress(self._trio.RunFinishedError):
            self._token.run_sync_soon(self._scope.cancel)

    def entering(self, entering: Entering) -> Entering:
        async def enter() -> typing.Any:
            entered = await _in_a_thread(self._trio, entering)
            self.enter()
            return entered

        # Ctrl-C must not raise between the grant and the block.
        return typing.cast("Entering", self._trio.lowlevel.enable_ki_protection(enter)())

    def leaving(self, is_own: bool, leaving: Leaving, path: str, reason: LossReason | None, error: BaseException | None) -> Leaving:
        async def leave() -> bool:
            with self._trio.CancelScope(shield=True):
                return await _in_a_thread(self._trio, leaving)

        return _lose(leave(), path, reason, error) if is_own else leave()

    def enter(self) -> None:
        self._scope.__enter__()

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


async def _in_a_thread(trio: typing.Any, coroutine: typing.Coroutine[typing.Any, typing.Any, Result]) -> Result:
    """Awaits what only asyncio can, in a loop of its own on another thread. A cancellation by trio cancels it there, and waits for
    its end, so that nothing is left behind."""
    me, token = trio.lowlevel.current_task(), trio.lowlevel.current_trio_token()
    task: asyncio.Task[typing.Any] | None = None
    raise_cancelled: typing.Callable[[], typing.NoReturn] | None = None

    async def main() -> Result:
        nonlocal task
        task = asyncio.current_task()
        if raise_cancelled is not None:
            coroutine.close()
            raise asyncio.CancelledError
        return await coroutine

    def cancel(raise_it: typing.Callable[[], typing.NoReturn]) -> object:
        nonlocal raise_cancelled
        raise_cancelled = raise_it
        if task is not None:
            with contextlib.suppress(RuntimeError):  # It has ended.
                task.get_loop().call_soon_threadsafe(task.cancel)
        return trio.lowlevel.Abort.FAILED

    trio.lowlevel.start_thread_soon(lambda: asyncio.run(main()), functools.partial(token.run_sync_soon, trio.lowlevel.reschedule, me))
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
            "the loop, use contextlib.asynccontextmanager, or make the lock with cancel=False"
        )


def _lost(path: str, reason: LossReason | None) -> LockLost:
    why = "" if reason is None else f": {reason.value}"
    return LockLost(f"the hold of {path} is lost{why}; stop the work that it guarded, others may hold the lock", reason)


async def _lose(leaving: Leaving, path: str, reason: LossReason | None, error: BaseException | None) -> typing.NoReturn:
    """The end of a block that its own cancellation has ended. The release raises nothing of its own."""
    await leaving
    raise _lost(path, reason) from error


def scope(path: str, is_reentrant: bool) -> _TaskScope | _TrioScope | None:
    """What cancels the ``async with`` block that begins, of a lock or a job. ``None`` if no event loop runs."""
    _refuse_generator()
    trio = running_trio()
    if trio is None:
        return None if asyncio._get_running_loop() is None else _TaskScope(path)
    if is_reentrant:
        raise InvalidInput("a reentrant lock belongs to a task of asyncio or to a thread: under trio, use one that is not")
    return _TrioScope(trio)


class CancelOnLoss(typing.Generic[AnyHold]):
    """The block of ``hold.cancel_on_loss()``. It leaves the hold as it is."""

    def __init__(self, hold: AnyHold) -> None:
        self._hold = hold
        self._scope: _TaskScope | _TrioScope | None = None
        self._alarm: object = None

    async def __aenter__(self) -> AnyHold:
        if self._scope is not None:
            raise RuntimeError("this block has been entered before: call cancel_on_loss() for each")
        _refuse_generator()
        if self._hold.lost:
            raise _lost(self._hold.path, self._hold.lost.reason)
        if self._hold.state is HoldState.RELEASED:
            raise NotHeld(f"the hold of {self._hold.path} was released: there is no loss to come")
        trio = running_trio()
        self._scope = _TaskScope(self._hold.path) if trio is None else _TrioScope(trio)
        self._scope.enter()
        self._alarm = self._hold._alarm(self._scope)
        return self._hold

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> typing.Literal[False]:
        self._alarm = None
        is_own = self._scope is not None and self._scope.leave(error)
        if is_own or (error is None and self._hold.lost):
            raise _lost(self._hold.path, self._hold.lost.reason) from error
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
