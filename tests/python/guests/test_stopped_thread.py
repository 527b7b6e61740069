"""Deadlines hold while the I/O thread does nothing. A client of very many locks keeps it busy for a while, for example.

A signal stops the thread: of a fault, since it takes no others. The handler is ``sleep``, with the number of the signal as
seconds. Another signal ends the sleep.
"""

from __future__ import annotations

import importlib.util

import pytest
from ground import Ground
from guests.programs import BEGIN, OPTIONS, Run

import zklock

STOP = BEGIN + """
import ctypes

libc = ctypes.CDLL(None)
address = lambda function: ctypes.cast(function, ctypes.c_void_p)
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.signal(signal.SIGSYS, address(libc.sleep))
libc.signal(signal.SIGTRAP, address(libc.abs))
assert signal.SIGSYS > 30
zk = zklock.Client(hosts, session_timeout=60)
zk.connect()


def is_io(task):
    with open(f"/proc/self/task/{task}/comm") as name:
        return name.read() == "zklock-io\\n"


(io,) = filter(is_io, os.listdir("/proc/self/task"))


def is_stopped():
    with open(f"/proc/self/task/{io}/status") as status:
        blocked = next(line.split()[1] for line in status if line.startswith("SigBlk"))
    # A signal is blocked while its handler runs.
    return bool(int(blocked, 16) >> signal.SIGSYS - 1 & 1)


def stop(number):
    assert libc.tgkill(os.getpid(), int(io), number) == 0
    while is_stopped() == (number != signal.SIGSYS):
        time.sleep(0.001)


def queue(client):
    return len(client.mutex(path).contenders())
"""

BLOCKING = """
stop(signal.SIGSYS)
assert zk.mutex(path).acquire(timeout=0.3) is False
"""
FACES = {
    "threads": BLOCKING,
    "gevent": "import gevent.monkey\ngevent.monkey.patch_all()\n" + BLOCKING,
    "asyncio": """
async def main():
    lock = zk.aio.mutex(path)
    # One whose deadline comes while it waits in the queue, and one that has not even been sent.
    waits = asyncio.ensure_future(lock.acquire(timeout=2))
    while await asyncio.to_thread(queue, zk) < 2:
        await asyncio.sleep(0.001)
    stop(signal.SIGSYS)
    assert await lock.acquire(timeout=0.3) is False
    assert await waits is False
    try:
        await lock.hold(timeout=0.3)
    except zklock.Timeout:
        pass

asyncio.run(main())
""",
}
# All of that came while the thread did nothing.
END = """
assert is_stopped()
stop(signal.SIGTRAP)
until(lambda: not zk.stats().owed and queue(zk) == 1)
"""


@pytest.mark.parametrize("face", FACES)
def test_an_acquire_ends_at_its_deadline(run: Run, zk: zklock.Client, ground: Ground, path: str, face: str) -> None:
    if face == "gevent" and not importlib.util.find_spec("gevent"):
        pytest.skip("there is no gevent for this interpreter")
    with zk.mutex(path):
        run(STOP + FACES[face] + END, options=() if face == "gevent" else OPTIONS)
        ground.expect_children(path, 1)
