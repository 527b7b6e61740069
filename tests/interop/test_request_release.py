"""A holder is asked to release a mutex: Curator's by us, and ours by Curator."""

from __future__ import annotations

import zklock
from contest import Steps
from ground import Ground

SOON = 60.0


def test_curators_revoker_asks_our_holder(ground: Ground, path: str) -> None:
    hosts = ground("servers")
    with zklock.Client(hosts) as client, client.mutex(path) as hold:
        assert not hold.wanted.wait(0.1)
        asks = Steps(hosts, "ask", path)
        assert hold.wanted.wait(SOON)
        assert list(asks.rest()) == ["has asked"]
        assert hold.confirm() > 0


def test_we_ask_a_revocable_holder_of_curators(ground: Ground, path: str) -> None:
    hosts = ground("servers")
    with zklock.Client(hosts) as client:
        lock = client.mutex(path, timeout=SOON)
        holder = Steps(hosts, "hold", path)
        assert holder.next() == "holds"
        assert not lock.acquire(blocking=False)
        assert [asked.holds for asked in lock.request_release()] == [True]
        with lock:
            assert list(holder.rest()) == ["is asked"]
