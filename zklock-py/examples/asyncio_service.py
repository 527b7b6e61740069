"""A service that works only while it holds a lock, and stops its work when the lock is lost.

python asyncio_service.py [HOSTS]

Start it twice: the second one is ready to take over.
"""

from __future__ import annotations

import asyncio
import sys

import zklock


async def work(hold: zklock.AsyncHold) -> None:
    """The service itself, which runs until it is cancelled."""
    try:
        while True:
            print(f"working with token {hold.token}", flush=True)
            await asyncio.sleep(0.2)
    finally:
        print(f"work with token {hold.token} has stopped", flush=True)


async def main(hosts: str = "127.0.0.1:2181") -> None:
    async with zklock.Client(hosts) as zk:
        while True:
            try:
                async with zk.mutex("/locks/service") as hold:
                    await work(hold)
            except zklock.LockLost as loss:
                print(f"{loss}; back to the queue", flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        pass
