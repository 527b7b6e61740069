"""Counts, in the server, the readers that a writer's release wakes: those that can go on, and in Curator all.

Only with ZKLOCK_LONG: it is a comparison; what zklock promises is tested where its own tests are."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
import typing

import pytest
import zklock
from curators import command
from ground import Ground

pytestmark = [
    pytest.mark.skipif(not os.environ.get("ZKLOCK_LONG"), reason="takes longer than CI has time for"),
    pytest.mark.timeout(300),
]

WRITERS, READERS = 3, 200


class _Server:
    """The server's figures."""

    def __init__(self, hosts: str) -> None:
        host, _, port = hosts.partition(",")[0].rpartition(":")
        self._address = host, int(port)

    def _figures(self) -> dict[str, str]:
        with socket.create_connection(self._address, timeout=10) as line:
            line.sendall(b"mntr")
            text = b"".join(iter(lambda: line.recv(65536), b"")).decode()
        return dict(row.split("\t", 1) for row in text.splitlines() if "\t" in row)

    def watches(self) -> int:
        return int(self._figures()["zk_watch_count"])

    def notifications(self) -> int:
        """How many watches have fired so far."""
        figures = self._figures()
        return sum(int(figures[f"zk_sum_node_{kind}_watch_count"]) for kind in ("created", "deleted", "changed", "children"))

    def settled(self) -> int:
        """The same, once nothing has changed for a second."""
        until, seen, since = time.monotonic() + 60, (-1, -1), time.monotonic()
        while time.monotonic() < until:
            now = self.notifications(), self.watches()
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > 1:
                return seen[0]
            time.sleep(0.05)
        raise AssertionError("the server does not come to rest")


@pytest.fixture
def server() -> typing.Iterator[tuple[str, _Server]]:
    """A separate server, because the figures are those of the whole server."""
    ground = Ground()
    ground("start standalone tick=1000 real")
    hosts = ground("servers")
    yield hosts, _Server(hosts)
    ground.close()


def _counted(server: _Server, releases: typing.Iterable[object]) -> list[int]:
    counted = []
    before = server.settled()
    for _ in releases:
        now = server.settled()
        counted.append(now - before)
        before = now
    return counted


def _curator(hosts: str, server: _Server) -> list[int]:
    words = [*command("ReadersWoken"), hosts, "/woken", str(WRITERS), str(READERS)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        assert peer.stdout.readline() == "queued\n"

        def releases() -> typing.Iterator[None]:
            for number in range(WRITERS):
                print("release", file=peer.stdin, flush=True)
                assert peer.stdout.readline() == f"granted {number + 2}\n"
                yield

        counted = _counted(server, releases())
        peer.stdin.close()
    return counted


def _zklock(hosts: str, server: _Server) -> list[int]:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(zklock.Client(hosts)) for _ in range(WRITERS + READERS)]
        granted, go_on = threading.Semaphore(0), threading.Semaphore(0)

        def hold(lock: typing.Any) -> None:
            with lock:
                granted.release()
                go_on.acquire()

        threads = []
        for number, client in enumerate(clients):
            side = client.write if number < WRITERS else client.read
            threads.append(threading.Thread(target=hold, args=[side("/woken", timeout=120)]))
            threads[-1].start()
            # The writers queue first, one after the other.
            while number < WRITERS and len(client.read("/woken").contenders()) != number + 1:
                time.sleep(0.01)
        assert granted.acquire(timeout=30)
        until = time.monotonic() + 60
        # All except the holder wait.
        while server.watches() != WRITERS + READERS - 1:
            assert time.monotonic() < until
            time.sleep(0.05)

        def releases() -> typing.Iterator[None]:
            for _ in range(WRITERS):
                go_on.release()
                assert granted.acquire(timeout=30)
                yield

        counted = _counted(server, releases())
        go_on.release(READERS)
        for thread in threads:
            thread.join()
    return counted


def test_a_writer_wakes_the_readers_that_can_go_on_where_curators_wakes_all(
    server: tuple[str, _Server], figures: typing.Callable[[str], None]
) -> None:
    theirs = _curator(*server)
    ours = _zklock(*server)
    figures(f"{READERS} readers behind {WRITERS} writers, notifications for each release: zklock {ours}, Curator {theirs}")
    assert ours == [1, 1, READERS]
    assert sum(theirs) > sum(ours), theirs
