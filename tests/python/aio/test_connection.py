"""Reports of connections, outages and lost sessions to an asyncio program."""

from __future__ import annotations

import asyncio

from aio.support import soon
from ground import Ground
from scenes import expire

import zklock
from zklock import ConnectionState

SESSION = 4.0


def test_a_loop_is_told_of_an_outage_a_lost_session_and_the_end(ground: Ground) -> None:
    proxy = ground.proxy("1")

    async def main() -> None:
        states: asyncio.Queue[ConnectionState] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        zk = zklock.Client(proxy.hosts, session_timeout=SESSION).aio
        zk.on_connection(lambda state: loop.call_soon_threadsafe(states.put_nowait, state))
        assert zk.connection_state is None
        async with zk:
            assert await soon(states.get()) is ConnectionState.CONNECTED
            proxy("refuse", "on")
            proxy("reset")
            assert await soon(states.get()) is ConnectionState.DISCONNECTED
            assert zk.connection_state is ConnectionState.DISCONNECTED
            proxy("refuse", "off")
            assert await soon(states.get()) is ConnectionState.CONNECTED
            expire(proxy)
            while await soon(states.get()) is not ConnectionState.SESSION_LOST:
                pass
            assert await soon(states.get()) is ConnectionState.CONNECTED
        assert await soon(states.get()) is ConnectionState.CLOSED
        assert zk.connection_state is ConnectionState.CLOSED

    asyncio.run(main())
