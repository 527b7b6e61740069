"""The thread that calls handlers: of the loss of a hold, and of log lines. See src/dispatch.rs for why."""

from __future__ import annotations

import sys
import types
import typing


class _Unraisable(typing.NamedTuple):
    """What ``sys.unraisablehook`` is given."""

    exc_type: type[BaseException]
    exc_value: BaseException
    exc_traceback: types.TracebackType | None
    err_msg: str | None
    object: object


def run(next_call: typing.Callable[[], tuple[typing.Callable[..., object], tuple[object, ...]]]) -> None:
    """Calls what is to be called, for ever. What it raises is told, and ends nothing."""
    while True:
        function, arguments = next_call()
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001
            sys.unraisablehook(_Unraisable(type(error), error, error.__traceback__, None, function))
            del error
        # Nothing is kept until the next call comes.
        del function, arguments
