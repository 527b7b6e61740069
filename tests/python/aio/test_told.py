"""Promise 6: a holder learns of a lost hold within one heartbeat: by polling, awaiting and callback."""

from __future__ import annotations

import asyncio
import time

import pytest
from aio.support import SOON, queue, soon, true
from ground import Ground
from punctual import not_later
from scenes import expire

import zklock

SESSION, HEARTBEAT = 4.0, 0.4

BLOWS = {
    "expiry": zklock.LossReason.SESSION_EXPIRED,
    "node": zklock.LossReason.NODE_DELETED,
    "parent": zklock.LossReason.NODE_DELETED,
}


@pytest.mark.parametrize("blow", BLOWS)
def test_a_holder_is_told_within_a_heartbeat(path: str, ground: Ground, blow: str) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=SESSION) as zk:
            hold = await zk.mutex(path).hold()
            loop, called = asyncio.get_running_loop(), asyncio.Event()
            reasons: list[zklock.LossReason] = []

            def tell(reason: zklock.LossReason) -> None:
                reasons.append(reason)
                loop.call_soon_threadsafe(called.set)

            hold.on_lost(tell)
            waiters = [asyncio.ensure_future(hold.lost) for _ in range(3)]
            await asyncio.sleep(0)
            if blow == "expiry":
                expire(proxy)
            else:
                ground(f"delete {hold.node}" if blow == "node" else f"delete-tree {path}")
            begun = time.monotonic()
            assert await soon(asyncio.gather(*waiters)) == [BLOWS[blow]] * 3
            # A heartbeat, and the delays of a busy machine.
            not_later(time.monotonic() - begun, HEARTBEAT + 0.6)
            await soon(called.wait())
            assert reasons == [BLOWS[blow]]
            assert hold.lost.is_set() and hold.lost.reason is BLOWS[blow]
            assert (hold.state, hold.valid_for()) == (zklock.HoldState.LOST, 0)
            # A task that asks later also learns of it.
            assert await hold.lost is BLOWS[blow]
            with pytest.raises(zklock.LockLost) as caught:
                await hold.release()
            assert caught.value.reason is BLOWS[blow]

    asyncio.run(main())


def test_a_closed_client_tells_its_holders_and_a_release_is_no_loss(hosts: str, path: str, ground: Ground) -> None:
    async def main() -> None:
        async with zklock.Client(hosts) as zk:
            hold = await zk.mutex(path).hold()
            released = asyncio.ensure_future(hold.lost)
            await asyncio.sleep(0)
            await hold.release()
            assert await soon(released) is None
            assert not hold.lost.is_set() and await hold.lost is None
            hold = await zk.mutex(path).hold()
            closed = asyncio.ensure_future(hold.lost)
            await asyncio.sleep(0)
        assert await soon(closed) is zklock.LossReason.CLIENT_CLOSED
        with pytest.raises(zklock.LockLost):
            await hold.release()
        await queue(ground, path, 0)

    asyncio.run(main())


def test_a_holder_in_a_frozen_network_is_at_risk_then_lost_and_stays_lost(path: str, ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        async with zklock.Client(proxy.hosts, session_timeout=2) as zk:
            hold = await zk.mutex(path).hold()
            proxy("freeze", "both")
            assert await true(lambda: hold.state is zklock.HoldState.AT_RISK)
            assert hold.valid_for() > 0
            assert await soon(hold.lost) is zklock.LossReason.LEASE_LAPSED
            assert hold.valid_for() == 0
            proxy("thaw")
            async with zk.mutex(path, timeout=SOON) as next_hold:
                assert hold.state is zklock.HoldState.LOST and next_hold.token > hold.token
            with pytest.raises(zklock.LockLost):
                await hold.release()

    asyncio.run(main())


def test_a_loss_ends_the_work_that_it_guards(zk: zklock.Client, path: str, ground: Ground) -> None:
    """The documentation's pattern: wait for the work and the loss, whichever comes first."""

    async def main() -> None:
        with pytest.raises(zklock.LockLost):
            async with zk.aio.mutex(path) as hold:
                work = asyncio.create_task(asyncio.sleep(SOON))
                lost = asyncio.ensure_future(hold.lost)
                ground(f"delete {hold.node}")
                done, _ = await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED, timeout=SOON)
                assert done == {lost}
                work.cancel()

    asyncio.run(main())
