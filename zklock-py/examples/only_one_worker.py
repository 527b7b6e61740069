"""A periodic task that only one of many workers runs, for example with Celery or in the processes of a Django site.

python only_one_worker.py [HOSTS]

Start it several times: one worker cleans up, and the others skip the task. End that worker, and another takes over.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import typing

import zklock

Task = typing.Callable[[], None]


def only_one_worker(lock: zklock.Lock) -> typing.Callable[[Task], Task]:
    """Runs a task in a single worker, and skips it in all others.

    A worker keeps the lock from its first run until it ends. If it acquired the lock again for each run, a worker
    whose clock is late would find the lock free, and do the same work a second time.
    """

    def decorate(task: Task) -> Task:
        hold: zklock.Hold | None = None

        @functools.wraps(task)
        def run_or_skip() -> None:
            nonlocal hold
            if hold is None or hold.lost.is_set():
                hold = lock.try_acquire()
            if hold is None:
                print(f"{os.getpid()} skips {task.__name__}", flush=True)
            elif hold.valid_for() > 0:
                task()

        return run_or_skip

    return decorate


# At the top of the module, as in any site. The client connects on first use, after the server has forked its workers.
zk = zklock.Client(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:2181")


@only_one_worker(zk.mutex("/locks/clean-up"))
def clean_up() -> None:
    print(f"{os.getpid()} runs clean_up", flush=True)


if __name__ == "__main__":
    # When the program ends, its client is closed, which frees the lock.
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            clean_up()
            time.sleep(1)
