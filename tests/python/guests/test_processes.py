"""Other processes: forked objects raise an error, pickling is refused, and objects stay with their process."""

from __future__ import annotations

import pytest
from guests.programs import BEGIN, Run

# Calls in a child of a process that has connected, on the parent's objects: those that differ in how they begin. (The test of C makes
# every call of the core. For the child's own objects see hosts/test_forks.py.)
FORKED = BEGIN + """
import gc, pathlib

again = zk.mutex(path + "-again", reentrant=True)
untouched, lingering = zk.mutex(path + "-untouched"), zk.mutex(path + "-lingering", linger=60)


def refused(name, call):
    begun = time.monotonic()
    try:
        answer = call()
    except zklock.Forked as error:
        assert "fork" in str(error), error
    else:
        raise AssertionError(f"{name}: {answer}")
    assert time.monotonic() - begun < 30, name


def awaited(make):
    async def run():
        return await make()

    return lambda: asyncio.run(run())


def check(hold, guarded, loss, of_asyncio):
    calls = {
        "connect": zk.connect,
        "enter": zk.__enter__,
        "close": zk.close,
        "acquire": lock.acquire,
        "acquire untouched": untouched.acquire,
        "acquire again": again.acquire,
        "try": lambda: lock.acquire(blocking=False),
        "with": lock.__enter__,
        "hold": lock.hold,
        "release": hold.release,
        "release of the lock": again.release,
        "confirm": hold.confirm,
        "commit": guarded.commit,
        "wait": loss.wait,
        "on_wanted": lambda: hold.on_wanted(print),
        # The node lingers in the parent, and not here.
        "acquire what lingers": lingering.acquire,
        "try what lingers": lambda: lingering.acquire(blocking=False),
        "with what lingers": lingering.__enter__,
        "on_lost": lambda: hold.on_lost(print),
        "guard": zk.guard,
        "leave": member.leave,
        "observe before": lambda: next(observer),
        "aio acquire": awaited(lambda: zk.aio.mutex(path).acquire()),
        **{f"aio {name}": awaited(getattr(zk.aio, name)) for name in ("guard", "connect", "close")},
        **{f"aio {name}": awaited(getattr(of_asyncio, name)) for name in ("release", "confirm")},
        "await loss": awaited(lambda: loss),
    }
    for name, call in calls.items():
        refused(name, call)
    # A refused call starts nothing: the child may close all descriptors, without which our thread could not work.
    names = [(task / "comm").read_text().strip() for task in pathlib.Path("/proc/self/task").iterdir()]
    assert "zklock-io" not in names, names
    # Calls that send no request are answered.
    assert hold.state is zklock.HoldState.LOST and hold.valid_for() == 0
    assert loss.is_set() and loss.reason is zklock.LossReason.FORKED
    assert not lock.locked() and not again.locked() and not hold.wanted
    assert zk.session_id is None and zk.session_timeout is None and zk.stats().grants == 0
    assert "fork" in repr(zk) and "fork" in repr(zk.aio) and "fork" in repr(hold) and "fork" in repr(loss)
    assert "not held" in repr(again)


def ends(pid):
    return os.waitpid(pid, 0)[1]
"""


PARENT = """
hold = lock.hold()
assert again.acquire()
of_asyncio = awaited(zk.aio.mutex(path + "-aio").hold)()
told = []
hold.on_lost(told.append)
member = zk.double_barrier(path + "-all", 1).enter()
observer = lock.observe()
assert observer.next(timeout=20).token == hold.token
guarded, loss = hold.guarded().set_data("/", b""), hold.lost
session, token = zk.session_id, hold.token
with lingering as lingers:
    pass
pid = os.fork()
if not pid:
    check(hold, guarded, loss, of_asyncio)
    del member, observer, hold, guarded, loss, of_asyncio, zk, lock, again, untouched
    gc.collect()
    os.closerange(3, 256)
    # It lives on for longer than its parent's session would without it.
    time.sleep(4.5)
    sys.exit(3)
end = time.monotonic() + 4.4
while time.monotonic() < end:
    # On a busy machine the lease may lapse for a moment, but it comes back.
    until(lambda: hold.valid_for() > 0)
    assert not hold.lost.is_set()
    time.sleep(0.02)
status = ends(pid)
assert status == 3 << 8, status
assert (zk.session_id, zk.stats().sessions, told) == (session, 1, [])
assert hold.confirm() > 0 and again.locked()
assert [contender.token for contender in lock.contenders()] == [token]
assert member.loss is None
member.leave(timeout=20)
hold.release()
again.release()
with lock, lingering as taken_again:
    assert taken_again.token == lingers.token
awaited(of_asyncio.release)()
"""


def test_a_child_is_refused_by_every_call_and_its_parent_is_untouched(run: Run) -> None:
    run(FORKED + PARENT)


def test_a_child_looks_up_what_another_thread_of_its_parent_was_looking_up(run: Run) -> None:
    text = """
import builtins

find, looks, forked = builtins.__import__, threading.Event(), threading.Event()


def find_slowly(name, *more):
    if threading.current_thread() is thread:
        looks.set()
        forked.wait(50)
    return find(name, *more)


def hold():
    with lock:
        pass


thread = threading.Thread(target=hold)
builtins.__import__ = find_slowly
thread.start()
assert looks.wait(50)
pid = os.fork()
if not pid:
    hold()
    os._exit(0)
assert ends(pid) == 0
forked.set()
thread.join()
"""
    run(FORKED + text)


def test_a_block_that_forks_ends_in_the_child_without_a_word(run: Run) -> None:
    # The child leaves the block by its own exception, which nothing hides.
    text = """
try:
    with lock as hold:
        pid = os.fork()
        if not pid:
            raise KeyError("of the child")
        assert ends(pid) == 7 << 8
        assert hold.confirm() > 0
except KeyError:
    sys.exit(7)
"""
    run(FORKED + text)


# Its client is made at the top of a module, and before any process is made.
WORKER = BEGIN + """
import concurrent.futures, multiprocessing, pathlib

file = pathlib.Path(__file__ + ".number")


def add(zk=zk):
    for _ in range(5):
        with zk.mutex(path, timeout=50) as hold:
            file.write_text(str(int(file.read_text()) + 1))
    return hold.token


def lose():
    raise zklock.LockLost("lost over there", zklock.LossReason.NODE_DELETED)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_of_processes_uses_a_client_at_the_top_of_a_module(run: Run, method: str) -> None:
    text = """
if __name__ == "__main__":
    context = multiprocessing.get_context(*more)
    file.write_text("0")
    with concurrent.futures.ProcessPoolExecutor(3, mp_context=context) as pool:
        tokens = [job.result() for job in [pool.submit(add) for _ in range(6)]]
        error = pool.submit(lose).exception()
        # Objects that cannot be pickled are refused here, and the pool lives on.
        refused = pool.submit(print, zk).exception()
        assert pool.submit(len, "ab").result() == 2
    assert len(set(tokens)) == 6
    assert file.read_text() == "30"
    assert type(error) is zklock.LockLost and error.reason is zklock.LossReason.NODE_DELETED, error
    assert str(error) == "lost over there"
    assert type(refused) is TypeError and "zklock.Client(hosts)" in str(refused), refused
    assert zk.mutex(path).acquire()
"""
    run(WORKER + text, method)


def test_other_programs_may_be_started_while_holding(run: Run) -> None:
    text = """
import subprocess

with zk.mutex(path) as hold:
    # If nothing closes them for it: our descriptors are not inherited.
    listed = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, close_fds=False)
    assert "socket" not in listed.stdout and "eventfd" not in listed.stdout, listed.stdout
    assert hold.confirm() > 0
"""
    run(BEGIN + text)
