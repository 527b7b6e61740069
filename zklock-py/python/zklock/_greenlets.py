"""How a greenlet waits while other greenlets of its thread run.

This works if gevent or eventlet has patched Python. Otherwise a wait stops the thread with all of its greenlets, as every other
blocking call does.
"""

from __future__ import annotations

import importlib
import sys
import typing


class _Late(BaseException):
    """A wait has timed out."""


def _module(name: str) -> typing.Any:
    """A module of gevent or eventlet, which need not be installed when types are checked."""
    return importlib.import_module(name)


class _Gevent:
    def wait(self, descriptor: int, timeout: float | None) -> bool:
        """Waits until the descriptor is readable; ``False`` if the time is over."""
        late = _Late()
        try:
            _module("gevent.socket").wait_read(descriptor, timeout, late)
        except _Late as error:
            if error is not late:
                raise
            return False
        return True

    def watch(self, descriptor: int, is_in_background: bool) -> None:
        """Waits for ever until the descriptor is readable. In the background, it does not keep the loop from ending."""
        hub = _module("gevent").get_hub()
        watcher = hub.loop.io(descriptor, 1, ref=not is_in_background)
        try:
            hub.wait(watcher)
        finally:
            watcher.close()

    def spawn(self, function: typing.Callable[..., object], *arguments: object) -> object:
        return typing.cast(object, _module("gevent").spawn(function, *arguments))

    def is_loop(self) -> bool:
        """Whether the current greenlet is the one that runs the others. It cannot wait."""
        gevent = _module("gevent")
        return bool(gevent.getcurrent() is gevent.get_hub())

    def original(self, module: str, name: str) -> typing.Any:
        return _module("gevent.monkey").get_original(module, name)


class _Eventlet:
    def wait(self, descriptor: int, timeout: float | None) -> bool:
        late = _Late()
        try:
            _module("eventlet.hubs").trampoline(descriptor, read=True, timeout=timeout, timeout_exc=late)
        except _Late as error:
            if error is not late:
                raise
            return False
        return True

    def watch(self, descriptor: int, is_in_background: bool) -> None:
        self.wait(descriptor, None)

    def spawn(self, function: typing.Callable[..., object], *arguments: object) -> object:
        return typing.cast(object, _module("eventlet").spawn_n(function, *arguments))

    def is_loop(self) -> bool:
        return bool(_module("eventlet").getcurrent() is _module("eventlet.hubs").get_hub().greenlet)

    def original(self, module: str, name: str) -> typing.Any:
        return getattr(_module("eventlet.patcher").original(module), name)


# gevent or eventlet.
Library = typing.Union[_Gevent, _Eventlet]
_GEVENT, _EVENTLET = _Gevent(), _Eventlet()


def library() -> Library | None:
    """The library that has patched Python, or ``None``."""
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and getattr(gevent, "saved", None):
        return _GEVENT
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None and getattr(eventlet, "already_patched", None):
        return _EVENTLET
    return None


def waiter() -> typing.Callable[[int, float | None], bool] | None:
    """A function with which the current greenlet waits; ``None`` if the thread itself has to wait."""
    current = library()
    return None if current is None or current.is_loop() else current.wait


def original_thread_starter() -> typing.Callable[..., object] | None:
    """A function that starts a real thread, if Python is patched so that threads are greenlets; otherwise ``None``."""
    current = library()
    if current is None:
        return None
    starter: typing.Callable[..., object] = current.original("_thread", "start_new_thread")
    return starter
