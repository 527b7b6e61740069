"""Many threads share one client and one lock, and the library's own threads."""

from __future__ import annotations

import concurrent.futures
import threading

from guests.programs import BEGIN, Run

import zklock


def test_two_threads_and_one_for_the_log(run: Run) -> None:
    text = """
def threads():
    found = {}
    for number in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{number}/comm") as file:
                found[int(number)] = file.read().strip()
        except OSError:
            pass
    found.pop(os.getpid())
    return sorted(found.values())

def expect(*names):
    # Threads that resolve names come and go.
    until(lambda: threads() == sorted(names))

def log():
    # A thread that has reported a loss ends when it is done.
    until(lambda: [thread.name for thread in threading.enumerate()] == ["MainThread", "zklock-log"])
    # Python names its threads for the system from 3.14 on.
    with open("/proc/self/comm") as file:
        return "zklock-log" if sys.version_info >= (3, 14) else file.read().strip()

repr(zk), repr(lock), zk.stats(), zk.session_id
expect()
others = [zklock.Client(hosts, session_timeout=4) for _ in range(5)]
for client in [zk, *others]:
    client.connect()
expect("zklock-io")
with lock as hold:
    # A failure is reported in the log, by a Python thread.
    for _ in range(20):
        assert not others[0].mutex(path).acquire(timeout=0.001)
    hold.on_lost(print)
    expect("zklock-io", log())
    hold.release()
hold = lock.hold()
told = threading.Event()
hold.on_lost(lambda reason: told.set())
zk.close()
assert told.wait(5)
expect("zklock-io", "zklock-calls", log())
for client in others:
    client.close()
expect("zklock-io", "zklock-calls", log())
"""
    run(BEGIN + text)


def test_a_small_stack_is_enough(zk: zklock.Client, path: str) -> None:
    def use(_: int) -> None:
        lock = zk.mutex(path, reentrant=True)
        with lock as hold, lock:
            hold.confirm()
            lock.contenders()
            repr(zk)

    before = threading.stack_size(128 << 10)
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(use, range(8)))
    finally:
        threading.stack_size(before)
