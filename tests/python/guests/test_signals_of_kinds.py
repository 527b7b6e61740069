"""Ctrl-C ends the waits of all kinds of lock, too, and leaves nothing behind."""

from __future__ import annotations

import statistics
import typing

import pytest
from ground import Ground
from guests.programs import Program, Start, until
from guests.test_signals import ROUNDS, SOON, latencies
from punctual import not_later

import zklock

WAITS = """
import sys, time
import zklock

case, hosts, path, rounds = sys.argv[1:]
zk = zklock.Client(hosts, session_timeout=4, connect_timeout=60)
zk.connect()
at = f"{path}-{case.replace(' ', '-')}"


def block(lock):
    with lock:
        pass


def look():
    for leader in zk.election(path).observe():
        pass


wait = {
    "read": lambda: block(zk.read(at)),
    "write": lambda: zk.write(at).acquire(),
    "semaphore": lambda: block(zk.semaphore(at, 2, permits=2)),
    "election": lambda: zk.election(at).hold(),
    "exclusive": lambda: block(zk.exclusive(at)),
    "all": lambda: block(zk.all([zk.mutex(at), zk.semaphore(f"{at}-permits", 1)])),
    "barrier": lambda: zk.barrier(path + "-barrier").wait(),
    "double barrier": lambda: block(zk.double_barrier(path + "-meeting", 2)),
    "enter": lambda: zk.double_barrier(path + "-meeting", 2).enter(timeout=60),
    "leave": lambda: zk.double_barrier(path + "-meeting", 1).enter().leave(timeout=60),
    "set": lambda: zk.barrier(path + "-barrier").set(),
    "observe": look,
    "observe with a timeout": lambda: (o := zk.election(path).observe(), o.next(), o.next(timeout=60)),
    "evict": lambda: zk.mutex(path).evict(f"{path}/_c_8d8cd5a2-9a1c-4b1a-8d8c-d5a29a1c4b1a-lock-0000000000"),
    "break_lock": lambda: zk.mutex(path).break_lock(),
    "set_limit": lambda: zk.set_limit(f"{path}-limit", 1),
}[case]
for _ in range(int(rounds)):
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print("waiting", flush=True)
        wait()
        print("it was no wait", flush=True)
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
    sys.stdin.readline()
until = time.monotonic() + 30
while zk.stats().owed and time.monotonic() < until:
    time.sleep(0.005)
print("done" if not zk.stats().owed else zk.stats(), flush=True)
sys.stdin.readline()
"""


def interrupts(program: Program, before: typing.Callable[[], object], after: typing.Callable[[], object]) -> None:
    """Interrupts each of the program's waits, after which it must go on at once."""
    not_later(statistics.median(latencies(program, before, after)), SOON)


@pytest.mark.parametrize("kind", ["read", "write", "semaphore", "election", "exclusive", "all"])
def test_ctrl_c_ends_a_wait_for_a_lock_of_any_kind(
    start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, kind: str
) -> None:
    at = f"{path}-{kind}"
    blockers = {
        "read": lambda: zk.write(at),
        "write": lambda: zk.read(at),
        "semaphore": lambda: zk.semaphore(at, 2),
        "election": lambda: zk.election(at),
        "exclusive": lambda: zk.exclusive(at),
        "all": lambda: zk.semaphore(f"{at}-permits", 1),
    }
    queues = {
        "semaphore": [(f"{at}/locks", 0), (f"{at}/leases", 1)],
        "all": [(at, 0), (f"{at}-permits/locks", 0)],
        # The holder's node and its companion.
        "exclusive": [(at, 2)],
    }

    def is_free() -> None:
        for queue, count in queues.get(kind, [(at, 1)]):
            ground.expect_children(queue, count)

    with blockers[kind]():
        program = start(WAITS, kind, hosts, path, str(ROUNDS))
        interrupts(program, lambda: None, is_free)
        is_free()
    with blockers[kind]():
        pass
    program.tell()
    assert program.finish()[:3] == (0, "", "")


@pytest.mark.parametrize("case", ["observe", "observe with a timeout"])
def test_ctrl_c_ends_a_wait_for_another_leader(
    start: Start, zk: zklock.Client, hosts: str, path: str, case: str
) -> None:
    with zk.election(path):
        program = start(WAITS, case, hosts, path, str(ROUNDS))
        interrupts(program, lambda: None, lambda: None)
        program.tell()
        assert program.finish()[:3] == (0, "", "")


@pytest.mark.parametrize("case", ["barrier", "double barrier", "enter", "leave"])
def test_ctrl_c_ends_a_wait_at_a_barrier(
    start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, case: str
) -> None:
    zk.barrier(f"{path}-barrier").set()
    at, stays = f"{path}-meeting", {"leave": 1}.get(case, 0)
    other = zk.double_barrier(at, 1).enter() if stays else None
    program = start(WAITS, case, hosts, path, str(ROUNDS))

    def is_free() -> None:
        until(lambda: len(set(ground.children(at)) - {"ready"}) == stays)

    interrupts(program, lambda: None, is_free)
    is_free()
    if other is not None:
        other.leave(timeout=20)
    program.tell()
    assert program.finish()[:3] == (0, "", "")


@pytest.mark.parametrize("case", ["set", "evict", "break_lock", "set_limit", "observe"])
def test_ctrl_c_ends_a_wait_for_the_servers(start: Start, ground: Ground, path: str, case: str) -> None:
    proxy = ground.proxy("1")
    program = start(WAITS, case, proxy.hosts, path, str(ROUNDS))
    interrupts(program, lambda: proxy("freeze", "both"), lambda: proxy("thaw"))
    program.tell()
    assert program.finish()[:3] == (0, "", "")
