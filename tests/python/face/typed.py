"""Programs that use zklock, for type checkers. This file does not run, but is checked: see test_stub.py.

It has the types that no test relies on: those are checked in the tests. Deliberate errors are marked. If a checker finds no error at a
mark, it reports the mark.
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


def client() -> None:
    zk = zklock.Client("127.0.0.1:2181", session_timeout=5, tls=zklock.Tls("ca.pem"), identity="here")
    assert_type(zk, zklock.Client)
    assert_type(zk.aio, zklock.AsyncClient)
    assert_type(zk.mutex("/locks/a", timeout=None, reentrant=True), zklock.Lock)
    assert_type(zk.stats().losses_by["node_deleted"], int)
    assert_type(zk.stats().acquire_wait, zklock.Histogram)
    assert_type(zklock.prometheus_text({"orders": zk, "billing": zk.aio}), str)
    zklock.prometheus_text(zk)  # type: ignore[arg-type]
    assert_type(zk.stats().locks["report"].oldest_hold, typing.Optional[float])
    zk.mutex("/locks/a", metrics_name=1)  # type: ignore[arg-type]
    zklock.prometheus.Collector(zk)
    zklock.prometheus.Collector({"orders": zk, "billing": zk.aio})
    zklock.prometheus.Collector([zk])  # type: ignore[arg-type]
    assert_type(zk.session_id, typing.Optional[int])
    assert_type(zk.session_timeout, typing.Optional[float])
    with zk as entered:
        assert_type(entered, zklock.Client)
    zklock.Client(["zk1:2181", "zk2:2181"], chroot="/app")
    zklock.Client(("zk1", port) for port in (2181, 2182))
    zklock.Client([("zk1", "2181")])  # type: ignore[list-item]
    zklock.Client("zk1:2181", tls=True)  # type: ignore[arg-type]
    zklock.Client("zk1:2181", auth=zklock.Digest("ann", "secret"), access="creator-all")
    zklock.Client("zk1:2181", auth=[zklock.Digest.from_file("f"), zklock.Digest.from_env("V")], access="read-open")
    zklock.Client("zk1:2181", auth=[zklock.Kerberos("zookeeper", host=None), zklock.Digest("ann", "secret")])
    zklock.Client("zk1:2181", auth="ann:secret")  # type: ignore[arg-type]
    zklock.Client("zk1:2181", auth=zklock.Digest("ann", "secret"), access=["auth::cdrwa", "world:anyone:r"])
    zklock.Tls("ca.pem", "client.pem")  # type: ignore[call-overload]
    zklock.Tls("ca.pem", "client.pem", "client.key", pass_phrase=zklock.PassPhrase.from_env("V"))
    assert_type(zklock.Tls.system(pass_phrase="secret"), zklock.Tls)


def kinds(zk: zklock.Client) -> None:
    assert_type(zk.mutex("/a", naming="kazoo", foreign="ignore-unknown", cancel=False), zklock.Lock)
    assert_type(zk.write_lock("/a", reentrant=True, timeout=5), zklock.Lock)
    assert_type(zk.semaphore("/a", 5, permits=2, limit_at="/limit"), zklock.Lock)
    assert_type(zk.all([zk.mutex("/a"), zk.aio.read_lock("/b")], timeout=5), zklock.Lock)
    assert_type(zk.any([zk.mutex("/a"), zk.aio.read_lock("/b")], timeout=5), zklock.Lock)
    assert_type(zk.aio.all(lock for lock in (zk.mutex("/a"), zk.read_lock("/b"))), zklock.AsyncLock)
    zk.set_limit("/limit", 5)
    zk.guard()
    zk.guard(pathlib.Path("/opt/zklock/bin/zklock"))
    for leader in zk.election("/a").observe():
        assert_type(leader, typing.Optional[zklock.Contender])
    assert_type(zk.election("/a").observe().next(timeout=5), typing.Optional[zklock.Contender])
    assert_type(zk.mutex("/a").evict("/a/node"), bool)
    assert_type(zk.mutex("/a").break_lock(), typing.List[zklock.Contender])
    assert_type(zk.mutex("/a").request_release(), typing.List[zklock.Contender])
    one = zk.mutex("/a").contenders()[0]
    assert_type((one.node, one.role, one.holds), typing.Tuple[str, str, bool])
    zk.mutex("/a", foreign="klingon")  # type: ignore[arg-type]
    zk.semaphore("/a", 1, reentrant=True)  # type: ignore[call-arg]
    zk.election("/a", naming="kazoo")  # type: ignore[call-arg]
    zk.all(["/a"])  # type: ignore[list-item]


async def decorators(zk: zklock.Client) -> None:
    @zk.mutex("/a", timeout=0)
    def report(first: int, *, second: str = "b") -> float:
        return first * 0.5

    @zk.aio.mutex("/a")
    async def send(first: int) -> str:
        return str(first)

    class Report:
        """An application's class."""

        @zk.mutex("/a")
        def write(self, page: int) -> str:
            return str(page)

    assert_type(report(1, second="c"), float)
    assert_type(await send(1), str)
    assert_type(Report().write(3), str)
    assert_type(zk.mutex("/a")(len)("abc"), int)
    report("1")  # type: ignore[arg-type]
    await send("1")  # type: ignore[arg-type]
    zk.aio.mutex("/a")(len)  # type: ignore[type-var]
    zk.mutex("/a")(5)  # type: ignore[type-var]


def barriers(zk: zklock.Client) -> None:
    assert_type(zk.barrier("/a"), zklock.Barrier)
    assert_type(zk.barrier("/a").set(), bool)
    assert_type(zk.barrier("/a").wait(timeout=5), bool)
    assert_type(zk.aio.barrier("/a"), zklock.AsyncBarrier)
    assert_type(zk.barrier("/a").aio, zklock.AsyncBarrier)
    meeting = zk.double_barrier("/a", 5, timeout=5)
    assert_type(meeting, zklock.DoubleBarrier)
    assert_type(meeting.enter(timeout=None), zklock.Member)
    with meeting as member:
        assert_type(member, zklock.Member)
        assert_type(member.loss, typing.Optional[zklock.LossReason])


def jobs(zk: zklock.Client) -> None:
    job = zk.job("/a", every="1d", offset=3600, after_failure="next", timeout=None)
    assert_type(job, zklock.Job)
    assert_type(job.aio, zklock.AsyncJob)
    assert_type(job.last(), typing.Optional[zklock.Record])
    with job as run:
        if run:
            assert_type(run.hold, typing.Optional[zklock.Hold])

    @job
    def report(number: int) -> str:
        return str(number)

    assert_type(report(1), typing.Optional[str])
    report("1")  # type: ignore[arg-type]
    zk.job("/a", 5, after_failure="never")  # type: ignore[arg-type]


def lock(lock: zklock.Lock) -> None:
    assert_type(lock.try_acquire(), typing.Optional[zklock.Hold])
    assert_type(lock.acquire(blocking=True, timeout=-1), bool)
    assert_type(lock.current, typing.Optional[zklock.Hold])
    assert_type(lock.aio, zklock.AsyncLock)
    with lock as hold:
        assert_type(hold, zklock.Hold)
    lock.hold(timeout="5")  # type: ignore[arg-type]


def hold(hold: zklock.Hold) -> None:
    assert_type(hold.lost.reason, typing.Optional[zklock.LossReason])
    assert_type(bool(hold.lost), bool)
    hold.on_lost(print)
    hold.on_lost(lambda reason: reason.value)
    hold.on_lost(lambda: None)  # type: ignore[misc,arg-type]
    hold.on_wanted(print)
    with hold as same:
        assert_type(same, zklock.Hold)
    writes = hold.guarded().create("/a").create("/b", b"1").set_data("/a", bytearray(), 3).delete("/a", version=4)
    assert_type(writes, zklock.Guarded)
    writes.commit()
    hold.guarded().set_data("/a", "text")  # type: ignore[arg-type]
    assert_type(hold.gate(either, needs=3)(hold), int)
    hold.gate(either)(3)  # type: ignore[arg-type]


async def in_asyncio(hosts: str) -> None:
    async with zklock.Client(hosts) as zk:
        assert_type(zk, zklock.AsyncClient)
        alock = zk.mutex("/locks/a")
        assert_type(alock, zklock.AsyncLock)
        assert_type(await alock.try_acquire(), typing.Optional[zklock.AsyncHold])
        assert_type(await asyncio.wait_for(alock.acquire(timeout=3), 5), bool)
        assert_type(alock.current, typing.Optional[zklock.AsyncHold])
        async with alock as hold:
            assert_type(hold, zklock.AsyncHold)
            assert_type(await hold.lost, typing.Optional[zklock.LossReason])
            assert_type(await hold.wanted, bool)
            writes = hold.guarded().create("/a")
            assert_type(writes, zklock.AsyncGuarded)
            await writes.commit()
        async with await alock.hold(timeout=5) as hold:
            assert_type(hold, zklock.AsyncHold)
        async with alock as hold, hold.cancel_on_loss() as same:
            assert_type((hold, same), typing.Tuple[zklock.AsyncHold, zklock.AsyncHold])
            assert_type(await hold.run(asyncio.sleep(1, "done")), str)
            await hold.run(alock.acquire)  # type: ignore[arg-type]
            hold.run(asyncio.sleep(1))  # type: ignore[unused-coroutine]
    assert_type(asyncio.create_task(alock.acquire()), "asyncio.Task[bool]")
    assert_type(asyncio.ensure_future(hold.lost), "asyncio.Task[typing.Optional[zklock.LossReason]]")
    asyncio.ensure_future(alock.release())
    # These begin at once.
    alock.release()
    hold.release()
    zk.close()
    await alock.release()
    # These do nothing unless they are awaited.
    alock.acquire()  # type: ignore[unused-coroutine]
    hold.confirm()  # type: ignore[unused-coroutine]
    if alock.acquire():  # pyright: ignore[reportUnnecessaryComparison]
        pass
    with alock:  # type: ignore[attr-defined]
        pass


async def both_faces(lock: zklock.Lock, zk: zklock.Client) -> None:
    async with lock as hold:
        assert_type(hold, zklock.AsyncHold)
    async with zk as entered:
        assert_type(entered, zklock.AsyncClient)
        await entered.guard("zklock")
        async for leader in entered.election("/a").observe():
            assert_type(leader, typing.Optional[zklock.Contender])
        async with entered.job("/a", 5) as run:
            assert_type(run, zklock.AsyncRun)
        member = await entered.double_barrier("/a", 5).enter(timeout=5)
        assert_type(member, zklock.AsyncMember)
        # This begins at once.
        member.leave()


def after_a_block(lock: zklock.Lock) -> int:
    """Blocks swallow no exception, so that this function always returns."""
    with zklock.Client("zk1:2181"), lock, lock.hold():
        return 1


async def after_an_async_block(lock: zklock.AsyncLock) -> int:
    async with zklock.Client("zk1:2181"), lock, await lock.hold(), lock as hold, hold.cancel_on_loss():
        return 1


def either(hold: zklock.BaseHold) -> int:
    """A function that takes holds of both faces."""
    return hold.token


def exceptions() -> None:
    try:
        pass
    except zklock.LockLost as loss:
        assert_type(loss.reason, typing.Optional[zklock.LossReason])
    except zklock.Timeout as late:
        timeout: TimeoutError = late
        assert isinstance(timeout, zklock.Error)


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


async def interchangeable_in_asyncio(ours: zklock.AsyncLock, theirs: asyncio.Lock, hosts: str) -> None:
    locks: list[AsyncLockLike] = [ours, theirs]
    blocks: list[contextlib.AbstractAsyncContextManager[object]] = [ours, theirs]
    assert len(locks) == len(blocks)
    async with contextlib.AsyncExitStack() as stack:
        zk = await stack.enter_async_context(zklock.Client(hosts))
        assert_type(zk, zklock.AsyncClient)
        assert_type(await stack.enter_async_context(zk.mutex("/locks/a")), zklock.AsyncHold)
        stack.push_async_exit(await ours.hold())


def interchangeable(ours: zklock.Lock, theirs: threading.Lock) -> None:
    locks: list[LockLike] = [ours, theirs]
    blocks: list[contextlib.AbstractContextManager[object]] = [ours, theirs]
    assert len(locks) == len(blocks)
