"""A lock as a decorator: a block around each call of a function or of a coroutine function, whose loss is in ../aio/test_hosts.py."""

from __future__ import annotations

import asyncio
import functools
import inspect
import typing

from ground import Ground
from scenes import lose, raises

import zklock


def test_each_call_holds_the_lock(zk: zklock.Client, other: zklock.Client, path: str, ground: Ground) -> None:
    lock = zk.mutex(path)

    @lock
    def report(first: int, *, second: str = "b") -> tuple[int, str, int]:
        """Writes the report."""
        assert lock.current is not None and len(ground.children(path)) == 1
        raises(zklock.Timeout, lambda: other.mutex(path).hold(timeout=0))
        return first, second, lock.current.token

    first, second = report(1), report(2, second="c")
    assert (first[:2], second[:2]) == ((1, "b"), (2, "c")) and second[2] > first[2]
    assert report.__name__ == "report" and report.__doc__ == "Writes the report."
    assert str(inspect.signature(report)).startswith("(first: 'int', *, second: 'str' = 'b')")
    ground.expect_children(path, 0)


async def test_each_call_of_a_coroutine_function_holds_the_lock(zk: zklock.Client, path: str, ground: Ground) -> None:
    tokens: list[int] = []

    def decorated(lock: typing.Any) -> typing.Any:
        async def report(number: int) -> int:
            """Writes the report."""
            await asyncio.sleep(0.01)
            hold = zk.aio.mutex(path).current
            assert hold is not None
            tokens.append(hold.token)
            return number

        return lock(report)

    for lock in (zk.mutex(path), zk.aio.mutex(path)):
        report = decorated(lock)
        assert inspect.iscoroutinefunction(report) and report.__name__ == "report" and report.__doc__
        assert await asyncio.gather(*(report(number) for number in range(3))) == [0, 1, 2]
    # One at a time.
    assert tokens == sorted(set(tokens)) and len(tokens) == 6
    ground.expect_children(path, 0)


def test_a_method_is_one_afterwards(zk: zklock.Client, path: str) -> None:
    class Report:
        """An application's class."""

        def __init__(self, name: str) -> None:
            self.name = name

        @zk.mutex(path)
        def write(self, page: int) -> str:
            return f"{self.name} {page}"

        @zk.mutex(path)
        async def send(self) -> str:
            return self.name

        @staticmethod
        @zk.mutex(path)
        def count() -> int:
            return 3

        @classmethod
        @zk.mutex(path)
        def named(cls) -> str:
            return cls.__name__

    report = Report("sales")
    assert report.write(2) == "sales 2" and asyncio.run(report.send()) == "sales"
    assert (report.count(), Report.named()) == (3, "Report")


def test_a_loss_is_raised_after_a_function(zk: zklock.Client, path: str, ground: Ground) -> None:
    lock = zk.mutex(path)

    @lock
    def report() -> None:
        assert lock.current is not None
        lose(ground, lock.current)

    raises(zklock.LockLost, report)


def test_what_would_run_without_the_lock_is_refused(zk: zklock.Client, path: str, ground: Ground) -> None:
    def generator() -> typing.Iterator[int]:
        yield 1

    async def agenerator() -> typing.AsyncIterator[int]:
        yield 1

    class Callable:
        """Its instances are generator functions."""

        def __call__(self) -> typing.Iterator[int]:
            yield 1

    def plain() -> None:
        raise AssertionError("it was called")

    async def coroutine() -> None: ...

    for lock in (zk.mutex(path), zk.aio.mutex(path)):
        decorate = typing.cast("typing.Any", lock)
        for wrong in (generator, agenerator, Callable(), functools.partial(generator)):
            raises(zklock.InvalidInput, lambda: decorate(wrong)).says("generator")
        for other in (Callable, int, 5, None, "f", property(len)):
            raises(zklock.InvalidInput, lambda: decorate(other)).says("takes a function or a coroutine function")
        raises(zklock.InvalidInput, lambda: decorate(staticmethod(plain))).says("put @staticmethod above it")
        raises(zklock.InvalidInput, lambda: decorate(classmethod(typing.cast("typing.Any", plain)))).says("put @classmethod above it")
    aio = typing.cast("typing.Any", zk.aio.mutex(path))
    raises(zklock.InvalidInput, lambda: aio(plain)).says("coroutine functions")
    for later in (lambda: coroutine(), lambda: generator(), lambda: agenerator()):
        raises(zklock.InvalidInput, zk.mutex(path)(later)).says("would only run later")
    assert ground.children(path) == []


def test_what_behaves_like_a_function_is_decorated_as_one(zk: zklock.Client, path: str) -> None:
    class Callable:
        """Its instances are coroutine functions."""

        async def __call__(self, number: int) -> int:
            return number

    assert asyncio.run(zk.aio.mutex(path)(Callable())(7)) == 7
    assert zk.mutex(path)(functools.partial(max, 3))(2) == 3
    assert zk.mutex(path)(len)("abc") == 3
