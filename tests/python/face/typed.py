"""Programs that use zklock, for type checkers. This file does not run, but is checked: see test_stub.py.

It has the types that no test relies on, and the errors that none makes: the tests are checked, too. Deliberate errors are marked. If a
checker finds no error at a mark, it reports the mark.
"""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import threading
import typing

import zklock
import zklock.prometheus

if typing.TYPE_CHECKING:
    from typing_extensions import assert_type


def client(zk: zklock.Client) -> None:
    assert_type(zk.session_id, typing.Optional[int])
    assert_type(zk.session_timeout, typing.Optional[float])
    assert_type(zk.stats().locks["report"].oldest_hold, typing.Optional[float])
    zklock.prometheus_text(zk)  # type: ignore[arg-type]
    zklock.prometheus.Collector([zk])  # type: ignore[arg-type]
    zklock.Client(["zk1:2181", "zk2:2181"], chroot="/app", identity="here")
    zklock.Client(("zk1", port) for port in (2181, 2182))
    zklock.Client([("zk1", "2181")])  # type: ignore[list-item]
    zklock.Client("zk1:2181", auth=[zklock.Kerberos("zookeeper", host=None), zklock.Digest.from_env("V")])
    zklock.Client("zk1:2181", tls=True)  # type: ignore[arg-type]
    zklock.Tls("ca.pem", "client.pem")  # type: ignore[call-overload]
    assert_type(zklock.Tls.system(pass_phrase="secret"), zklock.Tls)
    zk.guard(pathlib.Path("/opt/zklock/bin/zklock"))


def lock(zk: zklock.Client, lock: zklock.Lock) -> None:
    assert_type(lock.try_acquire(), typing.Optional[zklock.Hold])
    assert_type(lock.evict("/a/node"), bool)
    assert_type(lock.break_lock(), typing.List[zklock.Contender])
    assert_type(lock.request_release(), typing.List[zklock.Contender])
    lock.hold(timeout="5")  # type: ignore[arg-type]
    zk.mutex("/a", foreign="ignore-unknown")
    zk.mutex("/a", foreign="klingon")  # type: ignore[arg-type]
    zk.mutex("/a", metrics_name=1)  # type: ignore[arg-type]
    zk.all(["/a"])  # type: ignore[list-item]
    for leader in zk.election("/a").observe():
        assert_type(leader, typing.Optional[zklock.Contender])


def hold(hold: zklock.Hold) -> None:
    hold.on_wanted(print)
    hold.on_lost(lambda: None)  # type: ignore[misc,arg-type]
    writes = hold.guarded().create("/a").create("/b", b"1").set_data("/a", bytearray(), 3).delete("/a", version=4)
    assert_type(writes, zklock.Guarded)
    hold.guarded().set_data("/a", "text")  # type: ignore[arg-type]
    hold.gate(len)(3)  # type: ignore[arg-type]


async def decorators(zk: zklock.Client) -> None:
    @zk.mutex("/a", timeout=0)
    def report(first: int, *, second: str = "b") -> float:
        return first * 0.5

    @zk.aio.mutex("/a")
    async def send(first: int) -> str:
        return str(first)

    assert_type(report(1, second="c"), float)
    assert_type(await send(1), str)
    report("1")  # type: ignore[arg-type]
    await send("1")  # type: ignore[arg-type]
    zk.aio.mutex("/a")(len)  # type: ignore[type-var]
    zk.mutex("/a")(5)  # type: ignore[type-var]


def others(zk: zklock.Client) -> None:
    assert_type(zk.barrier("/a").set(), bool)
    assert_type(zk.barrier("/a").wait(timeout=5), bool)
    with zk.double_barrier("/a", 5, timeout=5) as member:
        assert_type(member.loss, typing.Optional[zklock.LossReason])
    job = zk.job("/a", every="1d", offset=3600, after_failure="next", timeout=None)
    assert_type(job.last(), typing.Optional[zklock.Record])
    with job as run:
        assert_type(run.hold, typing.Optional[zklock.Hold])
    job(len)(5)  # type: ignore[arg-type]
    zk.job("/a", 5, after_failure="never")  # type: ignore[arg-type]


async def in_asyncio(zk: zklock.AsyncClient, lock: zklock.AsyncLock, hold: zklock.AsyncHold) -> None:
    assert_type(await lock.try_acquire(), typing.Optional[zklock.AsyncHold])
    assert_type(await hold.wanted, bool)
    await hold.run(lock.acquire)  # type: ignore[arg-type]
    await zk.guard("zklock")
    async for leader in zk.election("/a").observe():
        assert_type(leader, typing.Optional[zklock.Contender])
    member = await zk.double_barrier("/a", 5).enter(timeout=5)
    # These begin at once.
    member.leave()
    lock.release()
    hold.release()
    zk.close()
    # These do nothing unless they are awaited.
    lock.acquire()  # type: ignore[unused-coroutine]
    hold.confirm()  # type: ignore[unused-coroutine]
    if lock.acquire():  # pyright: ignore[reportUnnecessaryComparison]
        pass
    with lock:  # type: ignore[attr-defined]
        pass


def after_a_block(lock: zklock.Lock) -> int:
    """Blocks swallow no exception, so that this function always returns."""
    with zklock.Client("zk1:2181"), lock, lock.hold():
        return 1


async def after_an_async_block(lock: zklock.AsyncLock) -> int:
    async with zklock.Client("zk1:2181"), lock, await lock.hold(), lock as hold, hold.cancel_on_loss():
        return 1


class LockLike(typing.Protocol):
    """The protocol of a function that takes a ``threading.Lock`` or one of ours."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool: ...
    def release(self) -> None: ...
    def locked(self) -> bool: ...


class AsyncLockLike(typing.Protocol):
    """The protocol of a function that takes an ``asyncio.Lock`` or one of ours."""

    async def acquire(self) -> bool: ...
    def release(self) -> object: ...
    def locked(self) -> bool: ...


async def interchangeable_in_asyncio(ours: zklock.AsyncLock, theirs: asyncio.Lock) -> None:
    locks: list[AsyncLockLike] = [ours, theirs]
    blocks: list[contextlib.AbstractAsyncContextManager[object]] = [ours, theirs]
    assert len(locks) == len(blocks)
    async with contextlib.AsyncExitStack() as stack:
        assert_type(await stack.enter_async_context(zklock.Client("zk1:2181")), zklock.AsyncClient)
        assert_type(await stack.enter_async_context(ours), zklock.AsyncHold)
        stack.push_async_exit(await ours.hold())


def interchangeable(ours: zklock.Lock, theirs: threading.Lock) -> None:
    locks: list[LockLike] = [ours, theirs]
    blocks: list[contextlib.AbstractContextManager[object]] = [ours, theirs]
    assert len(locks) == len(blocks)
