"""Programs with greenlets, which are the same for gevent and for eventlet.

Each patches Python, so each runs in an interpreter of its own. They use ``spawn``, ``sleep``, ``join`` and ``Timeout``,
and for events those of the patched ``threading``. Time bounds nothing in them but a hang.
"""

from __future__ import annotations

import typing

GEVENT = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent
from gevent import Timeout, sleep, spawn

def join(*greenlets):
    gevent.joinall(greenlets, raise_error=True)
"""

EVENTLET = """
import eventlet
eventlet.monkey_patch()
from eventlet import Timeout, sleep, spawn

def join(*greenlets):
    for greenlet in greenlets:
        greenlet.wait()
"""

IMPORTS = """
import _thread, faulthandler, logging, os, sys, threading, time
faulthandler.dump_traceback_later(50, exit=True)
hosts, path = sys.argv[1:]
import zklock
"""

CLIENTS = """
zk = zklock.Client(hosts, session_timeout=4)
other = zklock.Client(hosts, session_timeout=4)

def until(is_so):
    while not is_so():
        sleep(0.01)

def refused(error, call):
    try:
        call()
    except error:
        return True
    return False
"""

# Both are greenlets of one thread, so a wait that stopped the thread would never end.
RELEASED_BY_ANOTHER = """
lock, ours = other.mutex(path), zk.mutex(path)
hold = ours.hold()
got = []

def wait():
    with lock as hold:
        got.append(hold.token)

waiting = spawn(wait)
until(lambda: len(ours.contenders()) == 2)
assert got == []
hold.release()
join(waiting)
assert got[0] > hold.token
"""

OWNERS = """
lock = zk.mutex(path, reentrant=True)
assert lock.acquire() and lock.acquire()

def another():
    assert lock.current is None
    assert refused(zklock.NotOwner, lock.release)
    assert lock.acquire(blocking=False) is False

join(spawn(another))
assert lock.current is not None
lock.release()
lock.release()
assert refused(zklock.NotHeld, lock.release)

held = []
join(spawn(lambda: held.append(lock.hold())))
assert refused(zklock.NotOwner, held[0].release)
assert lock.acquire(timeout=0.01) is False
"""

LINES = """
lines, arrived = [], threading.Event()

class Handler(logging.Handler):
    def emit(self, record):
        # Handlers may wait themselves, and so give way to others.
        time.sleep(0.001)
        lines.append((_thread.get_native_id(), record.getMessage()))
        arrived.set()

logger = logging.getLogger("zklock")
logger.setLevel(logging.INFO)
logger.addHandler(Handler())
"""

LOG = """
with other.mutex(path):
    for _ in range(3):
        assert zk.mutex(path).acquire(blocking=False) is False
until(lambda: sum("held by another" in line for _, line in lines) == 3)
# Reports about a session come from another real thread.
until(lambda: sum("session opened" in line for _, line in lines) == 2)
assert {thread for thread, _ in lines} == {os.getpid()}, lines
"""

ON_LOST = """
told, first = [], threading.Event()

def wait_for_the_second(reason):
    assert first.wait(40)
    told.append(("first", _thread.get_native_id(), reason.name))

def second(reason):
    told.append(("second", _thread.get_native_id(), reason.name))
    first.set()

holds = [zk.mutex(path + "-1").hold(), zk.mutex(path + "-2").hold()]
holds[0].on_lost(wait_for_the_second)
holds[0].on_lost(lambda reason: told.append(("after the first", 0, reason.name)))
holds[1].on_lost(second)
for number in "12":
    assert len(other.mutex(f"{path}-{number}").break_lock()) == 1
until(lambda: len(told) == 3)
here = os.getpid()
assert told == [
    ("second", here, "NODE_DELETED"), ("first", here, "NODE_DELETED"), ("after the first", 0, "NODE_DELETED")
], told
assert holds[0].lost.wait(40) and holds[1].lost.wait()
"""

# The main greenlet sleeps, and nothing but the loss happens in its loop.
ON_LOST_ALONE = """
told = threading.Event()
hold = zk.mutex(path).hold()
hold.on_lost(lambda reason: told.set())
print(hold.node, flush=True)
assert told.wait(40)
"""

KILLED = """
with other.mutex(path) as hold:
    lock = zk.mutex(path)
    waiting = spawn(lock.acquire)
    until(lambda: len(lock.contenders()) == 2)
    waiting.kill()
    until(lambda: len(lock.contenders()) == 1)
    assert not lock.locked()
with lock:
    pass
"""

TIMED_OUT = """
with other.mutex(path):
    lock = zk.mutex(path)
    for wait in (lock.acquire, lock.hold, lock.__enter__):
        try:
            with Timeout(0.05) as timeout:
                wait()
        except Timeout as error:
            assert error is timeout
        else:
            assert False, "no timeout"
        until(lambda: len(lock.contenders()) == 1)
    assert lock.acquire(timeout=0.05) is False
    assert refused(zklock.Timeout, lambda: lock.hold(timeout=0.05))
with lock:
    pass
"""

# Real threads, which the host keeps for calls that would block its greenlets.
REAL_THREADS = """
lock, tokens = zk.mutex(path, timeout=40), []

def work():
    assert _thread.get_native_id() != os.getpid()
    with lock as hold:
        tokens.append(hold.token)
        assert zk.mutex(path).acquire(blocking=False) is False

def start():
    {run_in_a_thread}(work)

with lock:
    waiting = [spawn(start) for _ in range(3)]
    sleep(0.05)
    assert tokens == []
join(*waiting)
assert len(tokens) == 3 and tokens == sorted(tokens)
"""

LEFT_AT_THE_END = """
lock = other.mutex(path)
hold = lock.hold()
hold.on_lost(print)
for _ in range(3):
    spawn(zk.mutex(path).acquire)
until(lambda: len(lock.contenders()) == 2)
"""

# The programs that must end well with either library.
AMONG: typing.Final = ("RELEASED_BY_ANOTHER", "OWNERS", "KILLED", "TIMED_OUT", "ON_LOST")
