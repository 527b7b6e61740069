"""A holder is asked to release a mutex: Curator's by us, and ours by Curator."""

from __future__ import annotations

import subprocess

import zklock
from contest import curators_program
from ground import Ground

SOON = 60.0


def rest_of(process: subprocess.Popen[str]) -> list[str]:
    """The output of a process until it ends."""
    out, errors = process.communicate(timeout=SOON)
    assert process.returncode == 0, errors
    return out.splitlines()


def test_curators_revoker_asks_our_holder(ground: Ground, path: str) -> None:
    hosts = ground("servers")
    with zklock.Client(hosts) as client, client.mutex(path) as hold:
        assert not hold.wanted.wait(0.1)
        asks = curators_program("Revocation", hosts, "ask", path)
        assert hold.wanted.wait(SOON)
        assert rest_of(asks) == ["has asked"]
        assert hold.confirm() > 0


def test_we_ask_a_revocable_holder_of_curators(ground: Ground, path: str) -> None:
    hosts = ground("servers")
    with zklock.Client(hosts) as client:
        lock = client.mutex(path, timeout=SOON)
        holder = curators_program("Revocation", hosts, "hold", path)
        assert holder.stdout is not None and holder.stdout.readline() == "holds\n"
        assert not lock.acquire(blocking=False)
        assert [asked.holds for asked in lock.request_release()] == [True]
        with lock:
            assert rest_of(holder) == ["is asked"]
