"""The end of the interpreter, at any moment: no hang, no crash, no output, and locks are freed if possible."""

from __future__ import annotations

import time

import pytest
from ground import Ground
from guests.programs import BEGIN, Run, Start
from punctual import not_later
from scenes import Attempt

import zklock

# Makes the interpreter end slowly: a thread that comes back into it meanwhile finds it closed.
SLOWLY = """
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep({seconds})

slow = Slow()
"""

ASYNCIO = """
lock = zk.aio.mutex(path)

def begin():
    global task
    task = asyncio.ensure_future(lock.acquire())

async def main():
    {}

asyncio.run(main())
"""

# Python closes it when everything else is gone.
GENERATOR = """
def stream():
    {}

opened = stream()
next(opened)
"""

COROUTINE = """
loop = asyncio.new_event_loop()
loop.set_exception_handler(lambda loop, context: None)
lock = zk.aio.mutex(path)

async def never():
    loop.stop()
    await loop.create_future()

async def main():
    {}

task = loop.create_task(main())
loop.run_forever()
"""

DAEMON = """
inside = threading.Event()

def hold():
    with zk.mutex(path + "-of-the-thread"):
        inside.set()
        time.sleep(60)

threading.Thread(target=hold, daemon=True).start()
inside.wait()
zklock.Client(hosts, session_timeout=4).mutex(path).acquire()
"""

ENDS = {
    "the main thread holds": "assert lock.acquire()",
    # A hold that is left at the end of the program causes no warning.
    "it keeps a hold": "hold = lock.hold()",
    "within a block": "with lock: sys.exit(0)",
    "it never connected": "",
    "of a loop while it holds": ASYNCIO.format("assert await lock.acquire()"),
    "of a loop with a hold": ASYNCIO.format("global hold; hold = await lock.hold(); hold.on_lost(print)"),
    "of a loop with a task that waits": ASYNCIO.format("await lock.acquire(); begin(); await asyncio.sleep(0.05)"),
    "a lock in a generator": GENERATOR.format("with zk, zk.mutex(path, reentrant=True): yield"),
    "a hold in a generator": GENERATOR.format("with zk.mutex(path).hold(): yield"),
    "a release in a generator": GENERATOR.format("lock.acquire()\n    try: yield\n    finally: lock.release()"),
    "a lock in a coroutine": COROUTINE.format("async with lock: await never()"),
    "a release in a coroutine": COROUTINE.format("await lock.acquire()\n    try: await never()\n    finally: lock.release()"),
    "no release in a coroutine": COROUTINE.format("await lock.acquire()\n    await never()"),
    "a daemon thread holds by another client": DAEMON,
}


@pytest.mark.parametrize("how", ENDS)
def test_frees_the_lock(run: Run, ground: Ground, path: str, how: str) -> None:
    # Python's own warnings about a loop that is not closed do not matter here.
    options = ("-W", "ignore") if "coroutine" in how else ("-W", "error")
    run(BEGIN + ENDS[how], options=options)
    # It is free now, not just soon: the end waits for the ensemble's confirmation.
    assert ground.children(path) == []


def test_by_an_exception_that_nobody_handles(start: Start, ground: Ground, hosts: str, path: str) -> None:
    ended = start(BEGIN + "zk.mutex(path).acquire()\nraise KeyError('ours')", hosts, path).finish()
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("Traceback") and ended.err.endswith("KeyError: 'ours'\n")
    assert ended.err.count("Traceback") == 1
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
    start(text, hosts, path).ends_well("held\nheld again\nclosed")
    assert ground.children(path) == []


CALLBACK = """
begun = threading.Event()

def told(*_):
    begun.set()
    {body}

class Handler(logging.Handler):
    emit = told

if more:
    logging.getLogger("zklock").setLevel(logging.INFO)
    logging.getLogger("zklock").addHandler(Handler())
    zk = zklock.Client(hosts, session_timeout=4)
    zk.connect()
else:
    hold = zk.mutex(path).hold()
    hold.on_lost(told)
    lock.break_lock()
begun.wait()
"""


@pytest.mark.parametrize(
    ("what", "body", "slowly"),
    [
        # It outlasts our patience, and comes back into an interpreter that is ending.
        ("on_lost", "time.sleep(1.2)", 0.6),
        ("on_lost", "while True: time.sleep(0.001)", 0.3),
        ("on_lost", "while True: pass", 0.3),
        ("a handler of logging", "time.sleep(1.2)", 0.6),
    ],
)
def test_while_something_of_the_users_runs(run: Run, what: str, body: str, slowly: float) -> None:
    text = BEGIN + CALLBACK.format(body=body) + SLOWLY.format(seconds=slowly)
    not_later(run(text, *([what] if what != "on_lost" else [])), 3.0 + slowly)


def test_while_the_servers_are_out_of_reach(start: Start, ground: Ground, path: str) -> None:
    proxy = ground.proxy("1")
    # The patience is for all clients together, not for each.
    text = """
clients = [zklock.Client(hosts, session_timeout=4) for _ in range(5)]
for number, client in enumerate(clients):
    client.mutex(f"{path}-{number}").acquire()
say("held")
sys.stdin.readline()
"""
    program = start(BEGIN + text, proxy.hosts, path)
    program.expect("held")
    proxy("freeze", "both")
    program.tell()
    took = program.ends_well()
    proxy("cut")
    not_later(took, 2.0)


def test_while_a_daemon_thread_holds(start: Start, other: zklock.Client, ground: Ground, hosts: str, path: str) -> None:
    # The thread may use the guarded resource until the process is gone.
    text = """
def hold():
    with zk.mutex(path) as hold:
        print(hold.token, flush=True)
        while True:
            time.sleep(0.01)

threading.Thread(target=hold, daemon=True).start()
sys.stdin.readline()
"""
    program = start(BEGIN + text, hosts, path)
    program.line()

    def wait() -> float:
        with other.mutex(path, timeout=30):
            return time.monotonic()

    waiting = Attempt(wait)
    ground.expect_children(path, 2)
    program.tell()
    took = program.ends_well()
    over = time.monotonic()
    not_later(took, 1.5)
    # The last sign of life was at most a third of the session, which is 4 s, before the end.
    assert waiting.result() - over > 2


# What three daemon threads do again and again, where another has the lock at `path`, and `{path}-free` is theirs.
CALLS = {
    "waits": "lock.acquire()",
    "comes too late": "lock.acquire(timeout=0.001)",
    "holds in a block": "with free as held: held.on_lost(id); held.confirm()",
    "cannot connect": "zklock.Client('127.0.0.1:1', connect_timeout=0.3).connect()",
    "looks": "zk.stats(), repr(zk), repr(lock), lock.locked(), lock.current",
    "makes mistakes": "lock.release() if lock.locked() else zk.mutex('no path')",
    "waits in asyncio": "await lock.aio.acquire()",
    "holds in asyncio": "await free.aio.acquire(timeout=5) and await free.aio.release()",
}


@pytest.mark.parametrize("call", CALLS)
def test_while_daemon_threads_go_on(start: Start, zk: zklock.Client, ground: Ground, path: str, call: str) -> None:
    # As in any other wait, a thread stays where it is: an exception now would only confuse.
    proxy = ground.proxy("1")
    is_async = "await" in CALLS[call]
    text = f"""
free, ready = zk.mutex(path + "-free"), threading.Event()

{"async " if is_async else ""}def work():
    while True:
        ready.set()
        try:
            {CALLS[call]}
        except (zklock.InvalidInput, zklock.Unreachable):
            pass

zk.connect()
for number in range(3):
    threading.Thread(target={"lambda: asyncio.run(work())" if is_async else "work"}, daemon=True).start()
ready.wait()
time.sleep(0.1)
"""
    with zk.mutex(path):
        # This determines how long the closing takes.
        proxy("delay", "30")
        program = start(BEGIN + text + SLOWLY.format(seconds=0.3), proxy.hosts, path)
        not_later(program.ends_well(within=55), 30)
