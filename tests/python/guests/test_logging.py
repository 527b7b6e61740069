"""The library's log only goes to ``logging``, under the name ``zklock``."""

from __future__ import annotations

import logging
import pathlib
import queue
import re
import typing

import pytest
from ground import Ground
from guests.programs import Start, logged
from scenes import eventually, in_asyncio, lose

import zklock

ROOT = pathlib.Path(__file__).parents[3]


class Lines:
    """Keeps the records, and can wait for the next one that has a pattern."""

    def __init__(self) -> None:
        self.records: list[logging.LogRecord] = []
        self._read = 0

    def wait_for(self, pattern: str) -> logging.LogRecord:
        while True:
            eventually(lambda: len(self.records) > self._read, within=10)
            self._read += 1
            record = self.records[self._read - 1]
            if re.search(pattern, record.getMessage()):
                return record


@pytest.fixture
def lines() -> typing.Iterator[Lines]:
    """Collects everything that is logged. Clients that are made from now on log everything."""
    lines = Lines()
    with logged(lines.records.append, logging.DEBUG):
        yield lines


def test_lines_arrive(lines: Lines, ground: Ground, path: str) -> None:
    proxy = ground.proxy("1")
    with zklock.Client(proxy.hosts, session_timeout=4) as zk:
        opened = lines.wait_for("session opened")
        assert zk.session_id is not None
        assert (opened.name, opened.levelno) == ("zklock", logging.INFO)
        assert f"{zk.session_id:#x}" in opened.getMessage()
        # A percent sign is no format.
        hold = zk.mutex(f"{path}-100%s").hold()
        lose(ground, hold)
        lost = lines.wait_for("hold lost")
        assert (lost.name, lost.levelno) == ("zklock", logging.WARNING)
        assert hold.node in lost.getMessage() and "its node was deleted" in lost.getMessage()
        proxy("cut")
        assert lines.wait_for("connection lost").levelno == logging.INFO
        proxy("expire")
        assert lines.wait_for("session over").levelno == logging.INFO
        lines.wait_for("session opened")


def set_of_the_root(level: int) -> None:
    logging.getLogger("zklock").setLevel(logging.NOTSET)
    logging.getLogger().setLevel(level)


LEVELS: dict[str, typing.Callable[[int], object]] = {
    "of the logger": lambda level: logging.getLogger("zklock").setLevel(level),
    "of the root": set_of_the_root,
    "disabled": lambda level: logging.disable(level - 1),
}


@pytest.mark.parametrize("way", LEVELS)
def test_a_level_counts_from_when_it_is_set(lines: Lines, ground: Ground, path: str, way: str) -> None:
    set_level, root, proxy = LEVELS[way], logging.getLogger().level, ground.proxy("1")
    try:
        set_level(logging.WARNING)
        with zklock.Client(proxy.hosts, session_timeout=4) as zk:
            # Nothing calls the library between this and the line.
            set_level(logging.INFO)
            proxy("cut")
            lost = lines.wait_for(f"connection lost.*{zk.session_id:#x}")
            set_level(logging.CRITICAL)
            lose(ground, zk.mutex(f"{path}-2").hold())
            # Its line comes just after the holder is told, and so before any later answer.
            zk.mutex(path).contenders()
            set_level(logging.WARNING)
            hold = zk.mutex(path).hold()
            assert not zk.mutex(path).acquire(blocking=False)
            lose(ground, hold)
            lines.wait_for("hold lost")
    finally:
        logging.disable(logging.NOTSET)
        logging.getLogger().setLevel(root)
    # Lines come in order. The client may be connected again before the level is set back.
    before = lines.records[: lines.records.index(lost)]
    assert not any("session opened" in record.getMessage() for record in before)
    assert not any("held by" in record.getMessage() for record in lines.records)
    assert not any(f"{path}-2" in record.getMessage() for record in lines.records if record.levelno < logging.CRITICAL)


def test_a_record_names_the_place_in_the_source(lines: Lines, zk: zklock.Client, ground: Ground, path: str) -> None:
    hold = zk.mutex(path).hold()
    with zklock.Client(ground("servers")) as another:
        assert not another.mutex(path).acquire(blocking=False)
    by_the_face = lines.wait_for("held by another")
    lose(ground, hold)
    by_the_core = lines.wait_for("hold lost")
    for record, crate, said in [(by_the_face, "zklock-py", "log::inform"), (by_the_core, "zklock-core", "hold lost")]:
        assert record.pathname.startswith(f"{crate}/src/") and record.filename.endswith(".rs")
        # The call may span several lines.
        place = (ROOT / record.pathname).read_text().splitlines()[record.lineno - 1 : record.lineno + 5]
        assert said in "\n".join(place), record.__dict__
    assert (by_the_face.funcName, str(by_the_core.funcName).split("::")[0]) == ("zklock", "zklock")
    assert by_the_core.threadName == "zklock-log"


def test_nothing_is_printed_without_a_configuration(start: Start, ground: Ground, path: str) -> None:
    proxy = ground.proxy("1")
    text = """
import sys, threading
hosts, path = sys.argv[1:]
import zklock

with zklock.Client(hosts, session_timeout=4) as zk:
    hold = zk.mutex(path).hold()
    told = threading.Event()
    hold.on_lost(lambda reason: told.set())
    print(hold.node, flush=True)
    assert told.wait(10)
    sys.stdin.readline()
    with zk.mutex(path, timeout=20):
        assert not zk.mutex(path).acquire(blocking=False)
    try:
        with zk.mutex(path) as hold:
            print(hold.node, flush=True)
            hold.lost.wait()
            raise KeyError
    except KeyError:
        pass
    left = zk.mutex(path).hold()
assert left.state is zklock.HoldState.LOST
"""
    program = start(text, proxy.hosts, path, options=("-W", "error", "-X", "dev"))
    ground(f"delete {program.line()}")
    # It must not reconnect meanwhile.
    proxy("refuse", "on")
    proxy("cut")
    proxy("expire")
    proxy("refuse", "off")
    program.tell()
    ground(f"delete {program.line()}")
    program.ends_well()


def test_false_is_explained(lines: Lines, zk: zklock.Client, other: zklock.Client, path: str) -> None:
    lock = other.mutex(path)

    def reason(call: typing.Callable[[], bool]) -> logging.LogRecord:
        # On a busy machine a call may be so late that it cannot say why, but not every time.
        for _ in range(20):
            assert call() is False
            # Lines come a moment later.
            record = lines.wait_for(f"^(the lock {path} |the time is up$)")
            if path in record.getMessage():
                return record
        raise AssertionError("no reason")

    with zk.mutex(path):
        other.connect()
        reasons = [
            reason(lambda: lock.acquire(timeout=0.05)),
            reason(lambda: lock.acquire(blocking=False)),
            reason(lambda: in_asyncio(lock.aio.acquire, timeout=0.05)),
        ]
    assert {(record.name, record.levelno) for record in reasons} == {("zklock", logging.INFO)}
    late, refused, late_there = [record.getMessage() for record in reasons]
    assert "not acquired within" in late and "before us in the queue" in late
    assert "held by another" in refused
    assert "not acquired within" in late_there


def test_a_handler_that_raises_does_no_harm(
    lines: Lines, ground: Ground, hosts: str, path: str, unraisable: list[typing.Any]
) -> None:
    def fail(record: logging.LogRecord) -> None:
        raise KeyError("a mistake of the handler")

    with logged(fail), zklock.Client(hosts, session_timeout=4) as zk:
        lines.wait_for("session opened")
        hold = zk.mutex(path).hold()
        with zklock.Client(hosts, session_timeout=4) as another:
            assert another.mutex(path).acquire(timeout=0.01) is False
        lose(ground, hold)
        lines.wait_for("hold lost")
        with zk.mutex(path) as hold:
            assert hold.valid_for() > 0
    assert {type(one.exc_value) for one in unraisable} == {KeyError}


def test_a_handler_may_use_the_library(zk: zklock.Client, ground: Ground, path: str) -> None:
    held: queue.Queue[str] = queue.Queue()

    def use(record: logging.LogRecord) -> None:
        if "hold lost" not in record.getMessage():
            return
        repr(zk), zk.stats(), zk.mutex(path).locked()
        with zk.mutex(path) as hold:
            got = hold.path
        held.put(got)

    with logged(use, logging.DEBUG):
        lost = zk.mutex(path).hold()
        ground(f"delete {lost.node}")
        assert held.get(timeout=10) == path
