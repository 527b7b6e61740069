"""The end of the interpreter, at any moment: no hang, no crash, no output, and locks are freed if possible."""

from __future__ import annotations

import signal

import pytest
from ground import Ground
from guests.endings import BEGIN, SLOWLY, WELL, ends
from guests.programs import Start
from punctual import not_later

import zklock


ASYNCIO = """
lock = zk.aio.mutex(path)

def begin():
    global task
    task = asyncio.ensure_future(lock.acquire())

async def main():
    {}

asyncio.run(main())
"""

ENDS = {
    "the main thread holds": ("assert lock.acquire()", 0),
    # A hold that is left at the end of the program causes no warning.
    "it keeps a hold": ("hold = lock.hold()", 0),
    "within a block": ("with lock: sys.exit(3)", 3),
    "by sys.exit while holding": ("lock.acquire(); sys.exit(3)", 3),
    "it never connected": ("", 0),
    "of a loop while it holds": (ASYNCIO.format("assert await lock.acquire()"), 0),
    "of a loop with a hold": (ASYNCIO.format("global hold; hold = await lock.hold(); hold.on_lost(print)"), 0),
    "of a loop with a task that waits": (ASYNCIO.format("await lock.acquire(); begin(); await asyncio.sleep(0.05)"), 0),
}


@pytest.mark.parametrize("how", ENDS)
def test_frees_the_lock(start: Start, ground: Ground, hosts: str, path: str, how: str) -> None:
    text, status = ENDS[how]
    assert ends(start, text, hosts, path)[:3] == (status, "", "")
    # It is free now, not just soon: the end waits for the ensemble's confirmation.
    assert ground.children(path) == []


@pytest.mark.parametrize(
    "body",
    [
        "with zk.mutex(path): yield",
        "with zk.mutex(path).hold(): yield",
        "with zk.mutex(path, reentrant=True), zk.read_lock(path + '/a'), zk.double_barrier(path + '/b', 1): yield",
        "with zk, zk.mutex(path): yield",
        "lock.acquire()\n    try: yield\n    finally: lock.release()",
        "hold = lock.hold()\n    try: yield\n    finally: hold.release()",
    ],
    ids=["a lock", "a hold", "several", "a client", "a release", "a release of a hold"],
)
def test_within_the_block_of_a_generator(start: Start, ground: Ground, hosts: str, path: str, body: str) -> None:
    text = f"""
lock = zk.mutex(path)

def stream():
    {body}

opened = stream()
next(opened)
"""
    # Python closes it when everything else is gone.
    assert ends(start, text, hosts, path)[:3] == WELL
    assert [ground.children(f"{path}{below}") for below in ("/a", "/b")] in ([[], []], [[], ["ready"]])
    ground(f"delete-tree {path}")


@pytest.mark.parametrize(
    "body",
    [
        "async with lock: await never()",
        "hold = await lock.hold()\n    try: await never()\n    finally: await hold.release()",
        "await lock.acquire()\n    try: await never()\n    finally: lock.release()",
        "await lock.acquire()\n    await never()",
    ],
    ids=["a block", "a release of a hold", "a release", "no release"],
)
def test_within_the_block_of_a_coroutine(start: Start, ground: Ground, hosts: str, path: str, body: str) -> None:
    text = f"""
loop = asyncio.new_event_loop()
loop.set_exception_handler(lambda loop, context: None)
lock = zk.aio.mutex(path)

async def never():
    loop.stop()
    await loop.create_future()

async def main():
    {body}

task = loop.create_task(main())
loop.run_forever()
"""
    # Python's own warnings about a loop that is not closed do not matter here.
    assert ends(start, text, hosts, path, options=("-W", "ignore"))[:3] == WELL
    assert ground.children(path) == []


def test_by_an_exception_that_nobody_handles(start: Start, ground: Ground, hosts: str, path: str) -> None:
    ended = ends(start, "zk.mutex(path).acquire()\nraise KeyError('ours')", hosts, path)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("Traceback") and ended.err.endswith("KeyError: 'ours'\n")
    assert ended.err.count("Traceback") == 1
    assert ground.children(path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_by_a_signal_in_a_wait(
    start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, number: signal.Signals
) -> None:
    with zk.mutex(path):
        program = start(BEGIN + "lock.acquire()", hosts, path)
        ground.expect_children(path, 2)
        program.await_sleep()
        program.signal(number)
        ended = program.finish()
        assert ended.status == -number and ended.out == ""
        if number == signal.SIGINT:
            assert len(ground.children(path)) == 1 and ended.err.endswith("\nKeyboardInterrupt\n")
        else:
            assert ended.err == ""


@pytest.mark.parametrize("how", ["os._exit(0)", "signal.raise_signal(signal.SIGTERM)"])
def test_without_a_word(start: Start, ground: Ground, hosts: str, path: str, how: str) -> None:
    ended = ends(start, f"zk.mutex(path).acquire(); {how}", hosts, path)
    assert ended.status == (0 if "_exit" in how else -signal.SIGTERM)
    assert (ended.out, ended.err) == ("", "")
    # The session was not closed: the servers free the lock when it has timed out.
    assert len(ground.children(path)) == 1


def test_another_client_is_closed_all_the_same(start: Start, ground: Ground, hosts: str, path: str) -> None:
    text = """
inside = threading.Event()

def hold():
    with zk.mutex(path + "-of-the-thread"):
        inside.set()
        time.sleep(60)

threading.Thread(target=hold, daemon=True).start()
inside.wait()
zklock.Client(hosts, session_timeout=4).mutex(path).acquire()
"""
    assert ends(start, text, hosts, path)[:3] == WELL
    assert ground.children(path) == []


def test_what_atexit_does_before_and_after(start: Start, ground: Ground, hosts: str, path: str) -> None:
    text = """
import atexit, sys
hosts, path = sys.argv[1:]

def after():
    try:
        zk.mutex(path).acquire()
    except zklock.Closed:
        print("closed")

atexit.register(after)
import zklock

zk = zklock.Client(hosts, session_timeout=4)
lock = zk.mutex(path)

def before():
    print("held" if lock.locked() else "not held")
    lock.release()
    with lock as hold:
        print("held again" if hold.valid_for() else "dead")

atexit.register(before)
lock.acquire()
"""
    assert start(text, hosts, path).finish()[:3] == (0, "held\nheld again\nclosed", "")
    assert ground.children(path) == []


CALLBACK = """
hold = zk.mutex(path).hold()
begun = threading.Event()

def told(reason):
    begun.set()
    {body}

hold.on_lost(told)
print(hold.node, flush=True)
begun.wait()
"""


@pytest.mark.parametrize(
    ("body", "slowly"),
    [
        ("time.sleep(0.3)", 0),
        # The callback outlasts our patience, and comes back into an interpreter that is ending.
        ("time.sleep(1.2)", 0.6),
        ("time.sleep(60)", 0),
        ("while True: time.sleep(0.001)", 0.3),
        ("while True: pass", 0.3),
    ],
    ids=["shortly", "longer", "for ever", "for ever in short steps", "for ever without a pause"],
)
def test_while_on_lost_runs(start: Start, ground: Ground, hosts: str, path: str, body: str, slowly: float) -> None:
    program = start(BEGIN + CALLBACK.format(body=body) + SLOWLY.format(seconds=slowly), hosts, path)
    ground("delete " + program.line())
    ended = program.finish()
    assert ended[:3] == WELL
    not_later(ended.seconds, 2.0 + slowly)


def test_while_a_handler_of_logging_runs(start: Start, hosts: str, path: str) -> None:
    text = """
begun = threading.Event()

class Handler(logging.Handler):
    def emit(self, record):
        begun.set()
        time.sleep(1.2)

logging.getLogger("zklock").setLevel(logging.INFO)
logging.getLogger("zklock").addHandler(Handler())
zk = zklock.Client(hosts, session_timeout=4)
zk.connect()
begun.wait()
"""
    ended = ends(start, text + SLOWLY.format(seconds=0.6), hosts, path)
    assert ended[:3] == WELL
    not_later(ended.seconds, 3)


# The patience is for all clients together, not for each.
@pytest.mark.parametrize("count", [1, 5])
def test_while_the_servers_are_out_of_reach(start: Start, ground: Ground, path: str, count: int) -> None:
    proxy = ground.proxy("1")
    text = """
clients = [zklock.Client(hosts, session_timeout=4) for _ in range(int(*more))]
for number, client in enumerate(clients):
    client.mutex(f"{path}-{number}").acquire()
say("held")
sys.stdin.readline()
"""
    program = start(BEGIN + text, proxy.hosts, path, str(count))
    program.expect("held")
    proxy("freeze", "both")
    program.tell()
    ended = program.finish()
    proxy("cut")
    assert ended[:3] == WELL
    not_later(ended.seconds, 2.0)
