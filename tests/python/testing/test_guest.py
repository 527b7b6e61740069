"""The embedded server is a good guest: forks, the end of the interpreter. For signals see ../guests/test_signals.py."""

from __future__ import annotations

from guests.programs import Start
from punctual import not_later

FORK = """
import os, sys, threading, time
import zklock.testing

server = zklock.testing.Server()
injected = server.inject("freeze", "multi")
# Others are in the midst of it all the time.
for _ in range(4):
    threading.Thread(target=lambda: [server.put("/a", b"x") for _ in iter(int, 1)], daemon=True).start()
for _ in range(20):
    child = os.fork()
    if not child:
        calls = [
            lambda: server.sessions(), lambda: server.put("/b"), lambda: server.expire(1), lambda: server.close(),
            lambda: server.__enter__(), lambda: server.wait_for_children("/a", 1),
            lambda: injected.strikes, lambda: injected.wait(), lambda: server.__exit__(None, None, None),
        ]
        status = 0
        for number, call in enumerate(calls, 1):
            try:
                call()
            except zklock.Forked as error:
                assert "only that process can control it" in str(error)
            else:
                status = number
        assert server.hosts in repr(server)
        # To drop it is nothing here.
        del server, injected
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
with zklock.Client(server.hosts) as zk, zk.mutex("/locks/a"):
    print("goes on", flush=True)
"""

FORGETS = """
import zklock.testing

server = zklock.testing.Server()
zk = zklock.Client(server.hosts)
held = zk.mutex("/locks/a")
held.acquire()
print("ends", flush=True)
"""


def test_a_child_gets_an_error_and_never_a_hang(start: Start) -> None:
    start(FORK).ends_well("goes on")


def test_the_end_of_the_interpreter_waits_for_nothing(start: Start) -> None:
    program = start(FORGETS)
    program.expect("ends")
    not_later(program.ends_well(), 1)
