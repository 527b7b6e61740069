"""The end of the interpreter while daemon threads make every kind of call."""

from __future__ import annotations

import time

import pytest
from ground import Ground
from guests.endings import BEGIN, SLOWLY, WELL, ends
from guests.programs import Start
from punctual import not_later
from scenes import Attempt

import zklock

SESSION = 4.0


WAITS = {
    "thread": """
def wait():
    try:
        lock.acquire()
    finally:
        print("it went on")

threading.Thread(target=wait, daemon=True).start()
""",
    "loop": """
async def wait():
    await lock.aio.acquire()

threading.Thread(target=lambda: asyncio.run(wait()), daemon=True).start()
""",
}


@pytest.mark.parametrize("who", WAITS)
def test_while_a_daemon_thread_waits(
    start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, who: str
) -> None:
    with zk.mutex(path):
        program = start(BEGIN + WAITS[who] + "sys.stdin.readline()", hosts, path)
        ground.expect_children(path, 2)
        program.tell()
        ended = program.finish()
        assert len(ground.children(path)) == 1
    assert ended[:3] == WELL
    not_later(ended.seconds, 1.5)


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
    ended = program.finish()
    over = time.monotonic()
    assert ended[:3] == WELL
    not_later(ended.seconds, 1.5)
    # The last sign of life was at most a third of the session before the end.
    assert waiting.result() - over > SESSION / 2


@pytest.mark.parametrize("what", ["zk.connect()", "zk.mutex(path).acquire()", "zk.mutex(path).acquire(timeout=30)"])
def test_while_a_daemon_thread_connects(start: Start, ground: Ground, path: str, what: str) -> None:
    proxy = ground.proxy("1")
    proxy("freeze", "both")
    text = f"""
threading.Thread(target=lambda: {what}, daemon=True).start()
time.sleep(0.1)
"""
    ended = ends(start, text, proxy.hosts, path)
    proxy("cut")
    assert ended[:3] == WELL


GOES_ON = {
    "Lock.contenders": "lock.contenders()",
    "Lock.acquire": "lock.acquire(timeout=5) and lock.release()",
    "Lock.acquire, reentrant": "again.acquire(timeout=5) and again.release()",
    "Lock.hold": "lock.hold().release()",
    "Client.connect": "zk.connect()",
    "AsyncLock.contenders": "await lock.aio.contenders()",
    "AsyncLock.acquire": "await lock.aio.acquire(timeout=5) and await lock.aio.release()",
    "AsyncClient.connect": "await zk.aio.connect()",
}


@pytest.mark.parametrize("call", GOES_ON)
def test_while_a_daemon_thread_goes_on_as_clients_close(start: Start, ground: Ground, path: str, call: str) -> None:
    # As in any other wait, the thread stays where it is: an exception now would only confuse.
    proxy = ground.proxy("1")
    is_async = "await" in GOES_ON[call]
    text = f"""
again, ready = zk.mutex(path, reentrant=True), threading.Event()

{"async " if is_async else ""}def work():
    while True:
        {GOES_ON[call]}
        ready.set()
        time.sleep(0.02)

threading.Thread(target={"lambda: asyncio.run(work())" if is_async else "work"}, daemon=True).start()
ready.wait()
"""
    # This determines how long the closing takes.
    proxy("delay", "100")
    assert ends(start, text, proxy.hosts, path)[:3] == WELL


CROWD = """
from itertools import count

clients = [zk, zklock.Client(hosts, session_timeout=4)]
running = threading.Semaphore(0)

def work(number):
    lock = clients[number % 2].mutex(f"{path}-{number % 3}", reentrant=number % 4 == 0)
    for turn in count():
        if turn == 3:
            running.release()
        if number % 2:
            with lock as hold:
                hold.on_lost(lambda reason: None)
                hold.confirm()
        elif lock.acquire(timeout=0.002 if turn % 2 else 30):
            lock.release()

for number in range(8):
    threading.Thread(target=work, args=(number,), daemon=True).start()
for _ in range(8):
    running.acquire()
"""

RUNS = 30
AT_ONCE = 3


def test_while_a_crowd_of_daemon_threads_is_busy(start: Start, ground: Ground, hosts: str, path: str) -> None:
    # Each has its own paths, because a lock that is held at the end stays held until the session has timed out.
    text = BEGIN + CROWD + SLOWLY.format(seconds=0.1)
    for run in range(0, RUNS, AT_ONCE):
        programs = [start(text, hosts, f"{path}-{run + number}") for number in range(AT_ONCE)]
        for program in programs:
            ended = program.finish()
            assert ended[:3] == WELL
            not_later(ended.seconds, 3)
    for run in range(RUNS):
        for number in range(3):
            ground.expect_children(f"{path}-{run}-{number}", 0, within=15)


CALLS = {
    "stats": "zk.stats()",
    "repr": "repr(zk), repr(lock), lock.locked(), lock.current",
    "contenders": "lock.contenders()",
    "clients": "zklock.Client(hosts)",
    "mistakes": "try_to(lambda: lock.release()), try_to(lambda: zk.mutex('no path'))",
    "too late": "lock.acquire(timeout=0.001)",
    "losses": "try_to(lost.confirm)",
}


@pytest.mark.parametrize("call", CALLS)
def test_while_daemon_threads_call(
    start: Start, zk: zklock.Client, ground: Ground, hosts: str, path: str, call: str
) -> None:
    text = f"""
def try_to(act):
    try:
        act()
    except zklock.Error:
        pass

def work():
    lock = zk.mutex(path)
    while True:
        {CALLS[call]}

zk.connect()
lost = zk.mutex(path + "-" + str(os.getpid())).hold()
print(lost.node, flush=True)
sys.stdin.readline()
for number in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""
    with zk.mutex(path):
        programs = [start(BEGIN + text + SLOWLY.format(seconds=0.3), hosts, path) for _ in range(AT_ONCE)]
        for program in programs:
            ground("delete " + program.line())
            program.tell()
        for program in programs:
            assert program.finish()[:3] == WELL
