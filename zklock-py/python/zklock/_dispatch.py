"""The thread that calls handlers: of the loss of a hold, and of log lines. It is to have no native frame beneath."""

from __future__ import annotations

import typing

Function = typing.Callable[..., object]


def run(
    next_call: typing.Callable[[], tuple[Function, tuple[object, ...]]],
    report: typing.Callable[[BaseException, Function], None],
) -> None:
    """Calls what is to be called, for ever. What it raises is reported, and ends nothing."""
    while True:
        function, arguments = next_call()
        try:
            function(*arguments)
        except BaseException as error:
            report(error, function)
        # Nothing is kept until the next call comes.
        del function, arguments
