"""The threads and greenlets that call the user's functions: callbacks of `on_lost` and `on_connection`, and log handlers. They
start in Python, so that there is no native frame beneath the user's function."""

from __future__ import annotations

import logging
import threading
import typing

from . import _greenlets

Function = typing.Callable[..., object]


class Hand(typing.Protocol):
    """A queue of calls."""

    def listen(self) -> int: ...
    def hear(self) -> bool: ...
    def stop(self) -> None: ...
    def begin(self) -> int | None: ...
    def next(self, lane: int) -> tuple[Function, tuple[object, ...]] | None: ...
    def take(self) -> int | None: ...
    def report(self, error: BaseException, function: Function) -> None: ...


def start(hand: Hand, name: str, lane: int) -> None:
    """Starts a thread that makes the calls."""
    start_original = _greenlets.original_thread_starter()
    if start_original is None:
        threading.Thread(target=run, args=(hand, lane), name=name, daemon=True).start()
    else:
        start_original(run, (hand, lane))


def run(hand: Hand, begun: int | None) -> None:
    """Makes the calls, as long as there are any. An exception from a call is reported, and the next call is made."""
    lane = begun
    while lane is not None:
        while (call := hand.next(lane)) is not None:
            function, arguments = call
            try:
                function(*arguments)
            except BaseException as error:
                hand.report(error, function)
            # Keep nothing alive until the next call comes.
            del call, function, arguments
        lane = hand.take()


def start_in_a_greenlet(hand: Hand, is_in_background: bool) -> None:
    """Makes the calls in greenlets from now on. Python is patched, and this is its main thread."""
    library = _greenlets.library()
    if library is not None:
        library.spawn(_begin, hand, hand.listen(), library, is_in_background)


def _begin(hand: Hand, descriptor: int, library: _greenlets.Library, is_in_background: bool) -> None:
    try:
        while hand.hear():
            while (lane := hand.begin()) is not None:
                library.spawn(run, hand, lane)
            library.watch(descriptor, is_in_background)
    finally:
        # Any greenlet may be killed. The next call starts another.
        hand.stop()


def say(logger: logging.Logger, level: int, message: str, path: str, line: int, module: str) -> None:
    """Passes a line to the handlers if its level is enabled, with the place in the source that it came from."""
    if logger.isEnabledFor(level):
        logger.handle(logger.makeRecord(logger.name, level, path, line, "%s", (message,), None, module))


class _Levels(typing.Dict[int, bool]):
    """The logger's cache of enabled levels. `logging` clears it when any level changes."""

    def __init__(self, told: typing.Callable[[], None]) -> None:
        super().__init__()
        self._told = told

    def clear(self) -> None:
        super().clear()
        self._told()


def hear_of_levels(logger: logging.Logger, told: typing.Callable[[], None]) -> None:
    """Calls ``told`` whenever a level changes: that of this logger, that of the root logger, or what ``logging.disable`` sets."""
    if isinstance(getattr(logger, "_cache", None), dict):
        logger._cache = _Levels(told)  # type: ignore[attr-defined]
