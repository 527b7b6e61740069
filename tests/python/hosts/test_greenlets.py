"""gevent and eventlet: each greenlet is an owner, a wait lets the others run, and callbacks run in greenlets.

Each of them patches Python, so each program runs in an interpreter of its own. The programs are the same for both: they use ``spawn``,
``sleep``, ``join`` and ``Timeout``, and for events those of the patched ``threading``. Time bounds nothing in them but a hang.
"""

from __future__ import annotations

import signal
import typing

import pytest
from ground import Ground
from guests.programs import Run, Start

import zklock

IMPORTS = """
import _thread, faulthandler, logging, os, signal, sys, threading, time
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


class Host(typing.NamedTuple):
    """A library of greenlets."""

    patch: str
    run_in_a_thread: str
    options: tuple[str, ...]

    @property
    def begin(self) -> str:
        return self.patch + IMPORTS + CLIENTS


USE_GEVENT = """
import gevent
from gevent import Timeout, sleep, spawn

def join(*greenlets):
    gevent.joinall(greenlets, raise_error=True)
"""
GEVENT = "import gevent.monkey\ngevent.monkey.patch_all()\n" + USE_GEVENT
EVENTLET = """
import eventlet
eventlet.monkey_patch()
import eventlet.tpool
from eventlet import Timeout, sleep, spawn

def join(*greenlets):
    for greenlet in greenlets:
        greenlet.wait()
"""
HOSTS = {
    # gevent's own warnings do not matter, and eventlet warns that it is deprecated.
    "gevent": Host(GEVENT, "gevent.get_hub().threadpool.apply", ()),
    "eventlet": Host(EVENTLET, "eventlet.tpool.execute", ("-W", "ignore")),
}
of_gevent_alone = pytest.mark.parametrize("host", ["gevent"], indirect=True)


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Host:
    pytest.importorskip(request.param, reason="it is not there for this interpreter", exc_type=ImportError)
    return HOSTS[request.param]


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

PROGRAMS = {
    "released by another": RELEASED_BY_ANOTHER,
    "owners": OWNERS,
    "on_lost": ON_LOST,
    "killed": """
with other.mutex(path) as hold:
    lock = zk.mutex(path)
    waiting = spawn(lock.acquire)
    until(lambda: len(lock.contenders()) == 2)
    waiting.kill()
    until(lambda: len(lock.contenders()) == 1)
    assert not lock.locked()
with lock:
    pass
""",
    "timed out": """
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
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_among_greenlets(run: Run, host: Host, program: str) -> None:
    run(host.begin + PROGRAMS[program], options=host.options)


def test_who_sleeps_until_a_loss_is_woken(host: Host, start: Start, ground: Ground, hosts: str, path: str) -> None:
    # The main greenlet sleeps, and nothing but the loss happens in its loop. gevent ends a sleep with an error if nothing could end it.
    text = """
told = threading.Event()
hold = zk.mutex(path).hold()
hold.on_lost(lambda reason: told.set())
print(hold.node, flush=True)
assert told.wait(40)
"""
    program = start(host.begin + text, hosts, path, options=host.options)
    ground("delete " + program.line())
    program.ends_well()


LINES = """
lines = []

class Handler(logging.Handler):
    def emit(self, record):
        # Handlers may wait themselves, and so give way to others.
        time.sleep(0.001)
        lines.append((_thread.get_native_id(), record.getMessage()))

logger = logging.getLogger("zklock")
logger.setLevel(logging.INFO)
logger.addHandler(Handler())
"""


@pytest.mark.parametrize(
    "begin", ["{patch}" + IMPORTS + LINES, IMPORTS + LINES + "{patch}"], ids=["patched before", "patched after logging was set up"]
)
def test_log_lines_arrive(run: Run, host: Host, begin: str) -> None:
    text = """
with other.mutex(path):
    for _ in range(3):
        assert zk.mutex(path).acquire(blocking=False) is False
until(lambda: sum("held by another" in line for _, line in lines) == 3)
# Reports about a session come from another real thread.
until(lambda: sum("session opened" in line for _, line in lines) == 2)
assert {thread for thread, _ in lines} == {os.getpid()}, lines
"""
    run(begin.replace("{patch}", host.patch) + CLIENTS + text, options=host.options)


def test_threads_of_the_system(run: Run, host: Host) -> None:
    # Real threads, which the host keeps for calls that would block its greenlets.
    text = """
lock, tokens = zk.mutex(path, timeout=40), []

def work():
    assert _thread.get_native_id() != os.getpid()
    with lock as hold:
        tokens.append(hold.token)
        assert zk.mutex(path).acquire(blocking=False) is False

with lock:
    waiting = [spawn({run_in_a_thread}, work) for _ in range(3)]
    sleep(0.05)
    assert tokens == []
join(*waiting)
assert len(tokens) == 3 and tokens == sorted(tokens)
"""
    text = text.replace("{run_in_a_thread}", host.run_in_a_thread)
    run(host.begin + text + RELEASED_BY_ANOTHER, options=host.options)


@pytest.mark.parametrize("end", ["", "other.close()\nzk.close()\n"], ids=["left", "closed"])
def test_the_end_of_the_interpreter(host: Host, start: Start, ground: Ground, hosts: str, path: str, end: str) -> None:
    text = """
lock = other.mutex(path)
hold = lock.hold()
hold.on_lost(print)
for _ in range(3):
    spawn(zk.mutex(path).acquire)
until(lambda: len(lock.contenders()) == 2)
"""
    ended = start(host.begin + text + end, hosts, path, options=host.options).finish(within=55)
    # A closed client loses its holds, and waiters are told, in greenlets which the end of the program may interrupt.
    assert ended[:3] == (0, "", "") or (end and ended.status == 0)
    assert ground.children(path) == []


@of_gevent_alone
def test_a_client_that_connected_before_python_was_patched(run: Run, host: Host) -> None:
    connected = CLIENTS + "zk.connect()\nother.connect()\nassert zk.mutex(path).acquire()\nzk.mutex(path).release()\n"
    run(IMPORTS + connected + host.patch + RELEASED_BY_ANOTHER + ON_LOST + OWNERS, options=host.options)


@of_gevent_alone
def test_the_end_of_the_loop_is_not_waited_for(run: Run, host: Host) -> None:
    run(host.begin + "with zk.mutex(path):\n    other.connect()\nassert gevent.wait(timeout=50) is True\n", options=host.options)


@of_gevent_alone
def test_without_patching_owners_are_greenlets_all_the_same(run: Run, host: Host) -> None:
    run(USE_GEVENT + IMPORTS + CLIENTS + OWNERS, options=host.options)


@of_gevent_alone
def test_a_fork_does_not_hear_what_is_for_its_parent(run: Run, host: Host) -> None:
    text = """
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
    run(host.patch + IMPORTS + LINES + CLIENTS + text, options=host.options)


@of_gevent_alone
def test_in_the_greenlet_that_runs_the_loop(run: Run, host: Host) -> None:
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
    run(host.begin + text, options=host.options)


@of_gevent_alone
def test_ctrl_c_ends_a_wait(
    start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, host: Host
) -> None:
    text = """
try:
    zk.mutex(path).acquire()
except KeyboardInterrupt:
    until(lambda: len(zk.mutex(path).contenders()) == 1)
    print("interrupted", flush=True)
"""
    with zk.mutex(path):
        program = start(host.begin + text, hosts, path, options=host.options)
        ground.expect_children(path, 2, within=50)
        program.process.send_signal(signal.SIGINT)
        program.expect("interrupted", within=50)
    # gevent also prints the exception.
    assert program.finish().status == 0
