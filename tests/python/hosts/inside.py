"""Counts the callers that use a guarded resource."""

from __future__ import annotations

import threading
import typing

import zklock

# How long a wait may take on the busiest machine.
PATIENCE = 50.0


class Inside:
    """Counts the callers that come in, and how many were there at once."""

    def __init__(self, count: int) -> None:
        self._mutex = threading.Lock()
        self._count = count
        self._begun = 0
        self._now = 0
        self.most = 0
        self.all = 0

    def __enter__(self) -> None:
        with self._mutex:
            self._now += 1
            self.all += 1
            self.most = max(self.most, self._now)

    def __exit__(self, *exception: object) -> None:
        with self._mutex:
            self._now -= 1

    def begin(self) -> None:
        """Call this on the thread that is about to wait."""
        with self._mutex:
            self._begun += 1

    async def stay(self, sleep: typing.Callable[[float], typing.Awaitable[object]]) -> None:
        """Stays until all the others wait, so that the acquirer's thread is lent to one of them."""
        while self._begun < self._count:
            await sleep(0.001)
        await sleep(0.005)

    async def come(
        self,
        acquire: typing.Callable[[], typing.Callable[[], None]],
        in_a_thread: typing.Callable[..., typing.Awaitable[typing.Any]],
        sleep: typing.Callable[[float], typing.Awaitable[object]],
    ) -> None:
        """Acquires on a thread of the host, stays, and releases on another. ``acquire`` returns what releases."""

        def begin() -> typing.Callable[[], None]:
            self.begin()
            return acquire()

        release = await in_a_thread(begin)
        with self:
            # Its thread is lent to others meanwhile.
            await self.stay(sleep)
        await in_a_thread(release)

    def expect_turns(self) -> None:
        """Checks that all have been there, one after the other."""
        assert (self.all, self.most) == (self._count, 1)


WORKERS: typing.Final = 20


def acquired(lock: zklock.Lock) -> typing.Callable[[], None]:
    assert lock.acquire(timeout=PATIENCE)
    return lock.release
