"""A storm of interrupts at random moments of ``with``: no hold leaks, no node is left."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import typing

import pytest
from ground import Ground
from guests.programs import BEGIN, Start
from punctual import not_later
from scenes import Attempt

import zklock

# Interrupts at random moments of `with`: each is aimed at one block, and lands before, in or after it. The storm makes this
# number of them, and more until each phase was hit, but not for ever.
STORM = BEGIN + """
import json, random

kind, count = more
zk = zklock.Client(hosts, session_timeout=10)
lock = {
    "write": lambda: zk.write_lock(path),
    "semaphore": lambda: zk.semaphore(path, 1),
    "exclusive": lambda: zk.single_node(path),
    "all": lambda: zk.all([zk.election(path), zk.read_lock(path + "-2"), zk.semaphore(path + "-3", 2)]),
}.get(kind, lambda: zk.mutex(path, reentrant=kind == "reentrant"))()
phase, landed, is_armed = "outside", {"outside": 0, "enter": 0, "body": 0, "exit": 0}, False
count, working = int(count), 0.0


def strike(number, frame):
    global is_armed
    # One for each aim: another might come while this one is dealt with.
    if is_armed:
        is_armed = False
        landed[phase] += 1
        raise KeyboardInterrupt


signal.signal(signal.SIGALRM, strike)


def work():
    # In byte codes, between which a signal lands.
    until = time.perf_counter() + working
    while time.perf_counter() < until:
        pass


def is_over():
    has_all = landed["enter"] > count / 20 and landed["body"] and landed["exit"]
    return sum(landed.values()) >= count and has_all or time.perf_counter() > begun + 100


def block(inner=kind == "reentrant"):
    global phase
    phase = "enter"
    with lock.hold() if kind == "value" else lock as hold:
        if inner:
            block(inner=False)
        else:
            phase = "body"
            assert hold.valid_for() > 0
            work()
        phase = "exit"
    del hold
    phase = "outside"


zk.connect()


def gauge():
    global working, usual
    working, took = 0.0, []
    for _ in range(20):
        start = time.perf_counter()
        block()
        took.append(time.perf_counter() - start)
    # A tenth of a turn is work: less would be missed.
    working = sorted(took)[10] / 9
    usual = 10 * working


begun = time.perf_counter()
while not is_over():
    # Again and again, for the machine has other things to do as well.
    if sum(landed.values()) % 100 == 0:
        gauge()
    try:
        while True:
            is_armed = True
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 1.1 * usual))
            block()
    except KeyboardInterrupt:
        phase = "outside"
is_armed = False
left = lock.locked(), lock.current is not None
until(lambda: not zk.stats().owed)
say(json.dumps([landed, left, zk.stats().losses]))
sys.stdin.readline()
with lock:
    pass
"""

# An older interpreter may raise between the end of a block and its __exit__ (bpo-29988), one from 3.14 on between
# __enter__ and the block: so it is with threading.Lock, too. A hold as a value is safe from the latter.
IS_LEFT: typing.Final = sys.version_info >= (3, 10)
IS_ENTERED: typing.Final = sys.version_info < (3, 14)

MANY: typing.Final = 3000 if os.environ.get("ZKLOCK_LONG") else 1000
# Of a mutex.
WAYS: typing.Final = ("contended", "reentrant", "value")


@pytest.mark.skipif(not IS_LEFT, reason="this interpreter does not always call __exit__")
@pytest.mark.parametrize(
    ("kind", "count"),
    [("free", MANY), *((kind, 600) for kind in WAYS), *((kind, 400) for kind in ("write", "semaphore", "exclusive", "all"))],
    ids=str,
)
def test_a_storm_of_interrupts_leaves_nothing(
    start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, kind: str, count: int
) -> None:
    if kind != "value" and not IS_ENTERED:
        pytest.skip("this interpreter does not always enter the block after __enter__")
    is_over, at = threading.Event(), f"{path}-{kind}"

    def contend() -> None:
        while not is_over.is_set():
            with zk.mutex(at):
                pass

    contenders = [Attempt(contend) for _ in range(2 if kind == "contended" else 0)]
    # If an interrupt hits a hold as a value on its way to `with`, the collector releases it, with a warning.
    options = ("-W", "error", *(("-W", "ignore::ResourceWarning") if kind in ("free", *WAYS) else ()))
    try:
        program = start(STORM, hosts, at, kind, str(count), options=options)
        landed, left, losses = json.loads(program.line(within=150))
    finally:
        is_over.set()
        for contender in contenders:
            contender.result()
    assert (left, losses) == ([False, False], 0)
    # Its session lives on, so nodes that are in the queues now would stay.
    for queue in (at, f"{at}-2", f"{at}-3"):
        ground.expect_free(queue)
    if kind in ("free", *WAYS):
        begun = time.monotonic()
        with zk.mutex(at, timeout=10):
            not_later(time.monotonic() - begun, 0.5)
    program.tell()
    program.ends_well()
    # Interrupts hit every phase. In a crowd most of the time is spent on the way in.
    assert landed["enter"] > count / 20, landed
    assert min(landed["body"], landed["exit"]) > 0, landed
