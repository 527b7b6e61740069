"""A job as a block and as a decorator, in both faces."""

from __future__ import annotations

import asyncio
import datetime
import typing

import pytest
from ground import Ground
from scenes import SOON, Face, lose, raises

import zklock

# No such period ends during a test.
LONG = datetime.timedelta(days=300_000)


@pytest.fixture
def at(path: str) -> str:
    return path.replace("/locks/", "/jobs/")


async def test_the_block_of_one_host_runs_and_that_of_another_sees_the_record(
    zk: zklock.Client, other: zklock.Client, at: str, face: Face
) -> None:
    job, its = face.of(zk).job(at, LONG), face.of(other).job(at, LONG)
    assert job.path == at and await face.make(job.last) is None
    async with face.block(job) as run:
        assert run and run.hold.token > 0 and run.record is None
        running = await face.make(its.last)
        assert (running.outcome, running.ended, running.token) == ("running", None, run.hold.token)
        await face.fails(zklock.Timeout, face.enter(face.of(other).job(at, LONG, timeout=0)))
    async with face.block(its) as again:
        assert not again and again.hold is None
    record = await face.make(its.last)
    assert again.record == record and record == running._replace(outcome="done", ended=record.ended)
    assert record.ended >= record.began and record.period == 0 and record.next == LONG.total_seconds()


async def test_a_block_that_raises_has_failed_and_says_why(zk: zklock.Client, at: str, face: Face) -> None:
    with pytest.raises(LookupError, match="no report"):
        async with face.block(face.of(zk).job(at, LONG)) as run:
            assert run
            raise LookupError("no report")
    async with face.block(face.of(zk).job(at, LONG, after_failure="next")) as run:
        assert not run
    assert (run.record.outcome, run.record.failure) == ("failed", "LookupError: no report")
    async with face.block(face.of(zk).job(at, LONG)) as run:
        assert run
    assert (await face.make(face.of(zk).job(at, LONG).last)).failure is None


async def test_a_block_that_loses_its_hold_raises_and_stays_recorded_as_running(
    zk: zklock.Client, ground: Ground, at: str, face: Face
) -> None:
    job = face.of(zk).job(at, LONG)
    with pytest.raises(zklock.LockLost, match="stays recorded as running"):
        async with face.block(job) as run:
            lose(ground, run.hold)
    with pytest.raises(LookupError) as failed:
        async with face.block(job) as run:
            lose(ground, run.hold)
            raise LookupError
    assert any("stays recorded as running" in note for note in typing.cast(typing.Any, failed.value).__notes__)
    assert (await face.make(job.last)).outcome == "running"


async def test_a_hold_that_is_released_within_the_block_is_an_error(zk: zklock.Client, at: str, face: Face) -> None:
    with pytest.raises(zklock.NotHeld, match="not recorded as done"):
        async with face.block(face.of(zk).job(at, LONG)) as run:
            await face.make(run.hold.release)


def test_a_function_is_called_once_in_a_period(zk: zklock.Client, at: str) -> None:
    calls: list[int] = []

    @zk.job(at, every="300000d", offset="12h", timeout=SOON)
    def report(number: int) -> str:
        """Writes the report."""
        calls.append(number)
        if number == 1:
            raise LookupError
        return "written"

    with pytest.raises(LookupError):
        report(1)
    assert (report(2), report(3)) == ("written", None)
    assert calls == [1, 2] and report.__doc__ == "Writes the report."


def test_a_coroutine_function_is_called_once_in_a_period_and_cancelled_by_a_loss(
    zk: zklock.Client, ground: Ground, at: str
) -> None:
    calls: list[str] = []

    async def report(name: str, loses: bool) -> str:
        calls.append(name)
        if loses:
            (holder,) = await zk.aio.mutex(name).contenders()
            ground(f"delete {holder.node}")
            await asyncio.sleep(SOON)
        return "written"

    for number, client in enumerate((zk, zk.aio)):
        name = f"{at}-{number}"
        job = typing.cast(typing.Any, client).job(name, LONG)(report)
        with pytest.raises(zklock.LockLost):
            asyncio.run(job(name, True))
        assert [asyncio.run(job(name, False)) for _ in range(2)] == ["written", None]
        assert calls.count(name) == 2


def test_what_no_block_or_decorator_takes_is_refused(zk: zklock.Client, at: str) -> None:
    with pytest.raises(ValueError):
        zk.job(at, datetime.timedelta(days=-1))
    raises(zklock.InvalidInput, lambda: zk.aio.job(at, "1d")(typing.cast(typing.Any, len)))
    raises(zklock.NotHeld, lambda: zk.job(at, "1d").__exit__(None, None, None))
