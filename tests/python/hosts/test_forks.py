"""Forks of processes that have connected: a child makes its own clients."""

from __future__ import annotations

from ground import Ground
from guests.programs import Run, Start
from guests.test_processes import FORKED

BEFORE = FORKED + """
def fresh():
    with zklock.Client(hosts, session_timeout=4) as own, own.mutex(path + "-own", timeout=50) as hold:
        return hold.token
"""


def test_a_fork_in_the_middle_of_everything_does_not_hang(run: Run) -> None:
    text = """
logging.getLogger("zklock").setLevel(logging.DEBUG)
is_over = threading.Event()


def work(number):
    mine = zk.mutex(f"{path}-{number % 2}")
    while not is_over.is_set():
        with mine as hold:
            hold.on_lost(lambda reason: None)
            hold.confirm()
        zklock.Client(hosts).close()


held = lock.hold()
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
try:
    for number in range(40):
        time.sleep(0.001 * (number % 7))
        pid = os.fork()
        if not pid:
            for name, call in (("acquire", lock.acquire), ("connect", zk.connect)):
                refused(name, call)
            repr(zk), repr(lock), lock.locked(), zk.stats()
            gc.collect()
            fresh()
            # Not by sys.exit: threading would wait for threads that are not here (in old versions of Python).
            os._exit(0)
        assert ends(pid) == 0
finally:
    # Or the threads would keep what is wrong from being told.
    is_over.set()
for thread in threads:
    thread.join()
assert held.confirm() > 0
held.release()
assert zk.stats()[2:4] == (0, 0), zk.stats()
"""
    run(BEFORE + text)


def test_a_child_has_all_that_its_parent_had(run: Run) -> None:
    # Threads report losses and log lines, and the child has to start them again. asyncio does this in its own way.
    text = """
class Lines(logging.Handler):
    def emit(self, record):
        lines.append(os.getpid())


lines = []
logging.getLogger("zklock").addHandler(Lines())
logging.getLogger("zklock").setLevel(logging.DEBUG)


def all_of_it(name):
    with zklock.Client(hosts, session_timeout=4) as own:
        lock, reasons = own.mutex(path + name), []
        hold, is_told = lock.hold(), threading.Event()
        hold.on_lost(lambda reason: (reasons.append(reason), is_told.set()))
        lock.break_lock()
        assert is_told.wait(50) and reasons == [zklock.LossReason.NODE_DELETED]

        async def aio():
            async with own.aio.mutex(path + name + "-aio") as hold:
                return hold.token

        assert asyncio.run(aio()) > 0
    until(lambda: os.getpid() in lines)


all_of_it("-parent")
pid = os.fork()
if not pid:
    all_of_it("-child")
    grandchild = os.fork()
    if not grandchild:
        all_of_it("-grandchild")
        os._exit(0)
    assert ends(grandchild) == 0
    os._exit(0)
assert ends(pid) == 0
"""
    run(BEFORE + text)


def test_a_child_that_ends_frees_what_is_its_own(start: Start, ground: Ground, hosts: str, path: str) -> None:
    # The child frees its lock at once by closing its session, which would last for a minute. The parent's session stays.
    text = """
with zklock.Client(hosts, session_timeout=60) as parents, parents.mutex(path + "-parents") as hold:
    pid = os.fork()
    if not pid:
        own = zklock.Client(hosts, session_timeout=60)
        own.mutex(path).acquire()
        print("held", flush=True)
        sys.stdin.readline()
        sys.exit(0)
    assert ends(pid) == 0
    print("ended", flush=True)
    sys.stdin.readline()
    assert hold.confirm() > 0
"""
    started = start(BEFORE + text, hosts, path)
    started.expect("held")
    ground.expect_children(path, 1)
    started.tell()
    started.expect("ended")
    ground.expect_free(path)
    started.tell()
    started.ends_well()


def test_a_handler_of_a_signal_that_forks_in_a_wait(run: Run) -> None:
    # The handler returns in both. The wait only goes on in the parent, although the child has a copy of its descriptor.
    text = """
other = zklock.Client(hosts, session_timeout=4)
held = other.mutex(path).hold()
hears, says = os.pipe()


def interrupt():
    while len(other.mutex(path).contenders()) < 2:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGUSR1)
    assert os.read(hears, 7) == b"refused"
    held.release()


signal.signal(signal.SIGUSR1, lambda number, frame: children.append(os.fork()))
children = []
thread = threading.Thread(target=interrupt)
thread.start()
try:
    hold = zk.mutex(path).hold(timeout=50)
except zklock.Forked:
    os.write(says, b"refused")
    os._exit(0)
hold.release()
thread.join()
assert ends(*children) == 0
"""
    run(BEFORE + text)


def test_a_client_that_connects_after_the_fork_is_one_of_each_process(run: Run) -> None:
    text = """
import queue

states = queue.Queue()
zk.on_connection(states.put)
pid = os.fork()
with lock as hold:
    assert states.get(timeout=50) is zklock.ConnectionState.CONNECTED
    assert hold.confirm() > 0
    shown = [contender.identity for contender in lock.contenders() if contender.token == hold.token]
    assert [name.rpartition("/")[2] for name in shown] == [str(os.getpid())], shown
another = os.fork() if pid else None
if another == 0:
    # It is told nothing of its parent's connection.
    assert zk.connection_state is None
    refused("on_connection", lambda: zk.on_connection(print))
    os._exit(0 if states.empty() else 1)
assert not another or ends(another) == 0
zk.close()
assert states.get(timeout=50) is zklock.ConnectionState.CLOSED and states.empty()
if pid:
    assert ends(pid) == 0
"""
    run(BEFORE + text)
