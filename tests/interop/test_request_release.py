"""A holder is asked to release a mutex: Curator's by us, and ours by Curator."""

from __future__ import annotations

import subprocess

import zklock
from contest import curators_steps
from ground import Ground

SOON = 60.0


def ends(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=SOON)
    assert process.returncode == 0, errors


def test_curators_revoker_asks_our_holder(ground: Ground, path: str) -> None:
    hosts = ground("servers")
    with zklock.Client(hosts) as client, client.mutex(path) as hold:
        assert not hold.wanted.wait(0.1)
        asks = curators_steps(hosts, "ask", path)
        assert hold.wanted.wait(SOON)
        ends(asks)
        assert hold.confirm() > 0


def test_we_ask_a_revocable_holder_of_curators(ground: Ground, path: str) -> None:
    hosts = ground("servers")
    with zklock.Client(hosts) as client:
        lock = client.mutex(path, timeout=SOON)
        holder = curators_steps(hosts, "hold", path)
        assert holder.stdout is not None and holder.stdout.readline().startswith("holds")
        assert not lock.acquire(blocking=False)
        assert [asked.holds for asked in lock.request_release()] == [True]
        with lock:
            ends(holder)
