"""What gevent alone has. For greenlets see test_greenlets.py."""

from __future__ import annotations

import signal

import pytest
from ground import Ground
from guests.programs import Run, Start
from hosts import greenlets
from hosts.greenlets import CLIENTS, GEVENT, IMPORTS

import zklock

pytest.importorskip("gevent", reason="there is no gevent for this interpreter", exc_type=ImportError)

BEGIN = GEVENT + IMPORTS + CLIENTS
# gevent's own warnings do not matter.
OPTIONS = ()


def test_a_client_that_connected_before_python_was_patched(run: Run) -> None:
    connected = CLIENTS + "zk.connect()\nother.connect()\nassert zk.mutex(path).acquire()\nzk.mutex(path).release()\n"
    run(IMPORTS + connected + GEVENT + greenlets.RELEASED_BY_ANOTHER + greenlets.ON_LOST + greenlets.OWNERS, options=OPTIONS)


def test_the_end_of_the_loop_is_not_waited_for(run: Run) -> None:
    run(BEGIN + "with zk.mutex(path):\n    other.connect()\nassert gevent.wait(timeout=50) is True\n", options=OPTIONS)


def test_without_patching_owners_are_greenlets_all_the_same(run: Run) -> None:
    begin = "import gevent\nfrom gevent import sleep, spawn\n\ndef join(*all):\n    gevent.joinall(all, raise_error=True)\n"
    run(begin + IMPORTS + CLIENTS + greenlets.OWNERS, options=OPTIONS)


def test_a_fork_does_not_hear_what_is_for_its_parent(run: Run) -> None:
    text = """
import signal
assert zk.mutex(path).acquire()
other.connect()
until(lambda: sum("session opened" in line for _, line in lines) == 2)
# A greenlet that is within a handler when its process forks is there twice.
logger.setLevel(logging.CRITICAL)
sleep(0.1)
child = os.fork()
if not child:
    while True:
        sleep(0.001)
logger.setLevel(logging.INFO)
for count in range(1, 41):
    assert other.mutex(path).acquire(blocking=False) is False
    until(lambda: sum("held by another" in line for _, line in lines) == count)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""
    run(GEVENT + IMPORTS + greenlets.LINES + CLIENTS + text, options=OPTIONS)


def test_in_the_greenlet_that_runs_the_loop(run: Run) -> None:
    # The hub cannot give way to greenlets, so it blocks its thread.
    text = """
lock, done = zk.mutex(path, reentrant=True), []

def call():
    with lock as hold, lock:
        done.append(hold.confirm() > 0)

gevent.get_hub().loop.run_callback(call)
until(lambda: done)
assert done == [True] and not lock.locked()
"""
    run(BEGIN + text, options=OPTIONS)


def test_ctrl_c_ends_a_wait(start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str) -> None:
    text = """
try:
    zk.mutex(path).acquire()
except KeyboardInterrupt:
    until(lambda: len(zk.mutex(path).contenders()) == 1)
    print("interrupted", flush=True)
"""
    with zk.mutex(path):
        program = start(BEGIN + text, hosts, path, options=OPTIONS)
        ground.expect_children(path, 2, within=50)
        program.signal(signal.SIGINT)
        program.expect("interrupted", within=50)
    # gevent also prints the exception.
    assert program.finish().status == 0
